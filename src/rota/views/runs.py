"""Runs: one as JSON, found by part of its id, and lists that no single query of a store gives."""

import heapq
from collections.abc import AsyncIterator, Sequence

from msgspec.structs import replace

from rota.domain.run import Attempt, Run, State
from rota.domain.secrets import MASK, RESULT, hidden, secrets_of
from rota.domain.spec import TaskSpec
from rota.domain.text import clean
from rota.errors import InvalidOptions, RunNotFound
from rota.store import Page, Reads, RunQuery
from rota.store.paging import pages
from rota.views.values import Record, from_json, record

FIRST = ("id", "task", "key", "state", "reason", "note", "queue", "priority", "created_at", "due_at")
"""Fields that come first in the JSON of a run, because readers look for them first."""

SHORTEST = 6
"""Characters that a part of an id needs at least."""
WINDOW = 1000
"""Recent runs among which a part of an id is looked up, and how many of them one read fetches."""
CANDIDATES = 5
"""Ids that the error names if a part fits several runs."""

SCAN = 500
"""Runs per read of a list that is filtered here."""


def run_view(run: Run) -> Record:
    """Return all fields of `run`; a new field of `Run` appears here without a change."""
    found = record(run)
    del found["body"]
    found["attempts"] = [attempt_view(attempt) for attempt in run.attempts]
    if names := secrets_of(run.body):
        found |= {field: hidden(found[field], names) for field in ("args", "saved")}
        found["result"] = result_view(run, names)
    return {name: found[name] for name in FIRST} | found


def attempt_view(attempt: Attempt) -> Record:
    """Return an attempt without its log, which `logs_view` shows."""
    found = record(attempt)
    return {**found, "log": bool(found["log"])}


def logs_view(run: Run) -> list[Record]:
    """Return what the attempts of `run` have logged at their ends, for a task with `logs=True`."""
    fields = ("fence", "worker", "outcome", "claimed_at", "ended_at")
    return [
        {name: record(attempt)[name] for name in fields} | {"text": clean(attempt.logged)}
        for attempt in run.attempts
        if attempt.log
    ]


def result_view(run: Run, names: Sequence[str] | None = None) -> object:
    """Return the result of `run` as people may see it: without its secrets."""
    names = secrets_of(run.body) if names is None else names
    result = from_json(run.result or b"null")
    return MASK if RESULT in names and result is not None else hidden(result, names)


async def find_runs(store: Reads, given: Sequence[str]) -> list[str]:
    """Look up every id in `given`, in order; raises if one is unknown or fits several runs."""
    return [await find_run(store, text) for text in given]


async def find_run(store: Reads, given: str) -> str:
    """Return the id of the one recent run whose id equals `given`, begins or ends with it.

    Ids begin with the time, so runs that were submitted together differ at the end.
    """
    exact, text = given.strip(), given.strip().lower()
    if found := (await store.runs(RunQuery(ids=[exact, text]))).runs:
        return exact if exact in [run.id for run in found] else text
    if len(text) < SHORTEST:
        raise InvalidOptions(f"{given!r} is too short: give at least {SHORTEST} characters of the run's id")
    newest = [run.id for run in (await store.runs(RunQuery(limit=WINDOW))).runs]
    fitting = [id for id in newest if id.startswith(text) or id.endswith(text)]
    if not fitting:
        raise RunNotFound(f"no run {given}: it never was, or it ended so long ago that it is forgotten")
    if len(fitting) > 1:
        more = f" and {len(fitting) - CANDIDATES} more" if len(fitting) > CANDIDATES else ""
        raise InvalidOptions(f"{given!r} fits {len(fitting)} runs: {', '.join(fitting[:CANDIDATES])}{more}")
    return fitting[0]


async def next_runs(store: Reads, task: str | None, count: int) -> Page:
    """Return the `count` runs that workers claim next, in the order of claims.

    Due runs come first, by priority and then by due time; then runs that are not due yet, by due time. Runs of paused
    and disabled tasks are left out, and runs that wait for other runs or for a limit.
    """
    specs = (await store.rows(TaskSpec)).items
    off = {spec.name for spec in specs if spec.paused or not spec.enabled}
    waiting: list[tuple[tuple[float, ...], int, Run]] = []
    now = (await store.depths()).now
    arrived = 0
    async for run, seen in _each(store, RunQuery(state=[State.QUEUED], task=task)):
        now, arrived = seen, arrived - 1  # newest first: a later item of the list arrived earlier
        if run.task not in off and not run.parked and not run.needs:
            waiting.append((_turn(run, now), arrived, run))
            if len(waiting) > 2 * (count + SCAN):
                waiting = heapq.nsmallest(count, waiting, key=_order)
    return Page(now, [run for *_, run in heapq.nsmallest(count, waiting, key=_order)], None)


def _turn(run: Run, now: float) -> tuple[float, ...]:
    return (0.0, -run.priority, run.due_at) if run.due_at <= now else (1.0, run.due_at, -run.priority)


def _order(entry: tuple[tuple[float, ...], int, Run]) -> tuple[tuple[float, ...], int]:
    return entry[:2]


async def _each(store: Reads, query: RunQuery) -> AsyncIterator[tuple[Run, float]]:
    """Yield every run of `query`, each with the store's time at which it was read."""
    async for page in pages(store, replace(query, limit=SCAN)):
        for run in page.runs:
            yield run, page.now
