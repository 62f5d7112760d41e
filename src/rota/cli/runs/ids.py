"""Run ids as people type them: whole, or a beginning or end that only one recent run has."""

from collections.abc import Sequence

from rota.client.client import Client
from rota.errors import InvalidOptions, RunNotFound
from rota.store import RunQuery

SHORTEST = 6
WINDOW, PAGE = 1000, 100
CANDIDATES = 5


async def find_all(client: Client, given: Sequence[str]) -> list[str]:
    """The ids that are meant, in order; raises before anything is done if one is not clear."""
    return [await find(client, text) for text in given]


async def find(client: Client, given: str) -> str:
    """The one run whose id is, begins with or ends with what was given. Ids begin with the time, so the end of one
    tells neighbours apart."""
    text = given.strip().lower()
    if len(text) < SHORTEST:
        raise InvalidOptions(f"{given!r} is too short: give at least {SHORTEST} characters of the run's id")
    store = await client.store()
    if (await store.runs(RunQuery(ids=[text]))).runs:
        return text
    found: list[str] = []
    cursor: str | None = None
    for _ in range(WINDOW // PAGE):
        page = await store.runs(RunQuery(limit=PAGE, cursor=cursor))
        found.extend(run.id for run in page.runs if run.id.startswith(text) or run.id.endswith(text))
        cursor = page.cursor
        if cursor is None:
            break
    if not found:
        raise RunNotFound(f"no run {given}: it never was, or it ended so long ago that it is forgotten")
    if len(found) > 1:
        more = f" and {len(found) - CANDIDATES} more" if len(found) > CANDIDATES else ""
        raise InvalidOptions(f"{given!r} fits {len(found)} runs: {', '.join(found[:CANDIDATES])}{more}")
    return found[0]
