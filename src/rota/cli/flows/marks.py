"""`rota marks`: list, set and clear what is remembered as done."""

from typing import Annotated

from cyclopts import App, Parameter

from rota.cli.options.names import check_known_somewhere
from rota.cli.options.parameters import LOOK, Flag, OnlyTask, Shared, TaskName
from rota.cli.options.target import Target, check_shared
from rota.cli.render.show import Column, Record, Show
from rota.cli.render.text import relative
from rota.domain.guards import Mark
from rota.domain.keys import check_key
from rota.errors import InvalidOptions
from rota.store import MarkRow, Reply, RowQuery
from rota.views.marks import mark_view
from rota.views.values import record

MOST = 100_000

Key = Annotated[str, Parameter(help="What it is about, such as 2026-11-15 or race_day/today@2026-11-15.")]

marks = App(name="marks", help="Look at what is remembered as done; set and clear it.", group=LOOK)


@marks.command
def ls(
    task: OnlyTask = None,
    /,
    *,
    key: Annotated[str | None, Parameter(help="Only about this key.")] = None,
    limit: Annotated[int, Parameter(help="At most so many, by task and key.")] = 100,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """List marks: the last success of each task and key, its last end, and how often it failed in a row."""
    if not 1 <= limit <= MOST:
        raise InvalidOptions(f"--limit {limit}: from 1 to {MOST:,}")

    async def read() -> Reply[MarkRow]:
        async with target.client() as client:
            if task is not None:
                await check_known_somewhere([task], client, target)
            return await client.rows(MarkRow, RowQuery(task=task, key=key, limit=limit + 1))

    found = target.run(read(), code=True)
    show.records(
        [record(mark_view(row)) for row in found.items[:limit]], _columns(found), "No marks: nothing is remembered."
    )
    if len(found.items) > limit:
        show.note(f"more than {limit:,}: name a task, or say --limit")


@marks.command(name="set")
def set_mark(
    task: TaskName,
    key: Key,
    /,
    *,
    unknown_ok: Annotated[bool, Flag, Parameter(help="Take a task that neither app nor store know.")] = False,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Let something count as done, as of now by the store's clock; steps that wait for it may start."""

    async def put() -> None:
        check_shared(target.backend())
        async with target.client() as client:
            if not unknown_ok:
                await check_known_somewhere([task], client, target)
            now = await client.now()
            await client.mark([MarkRow(task, _key(key), Mark(succeeded_at=now, finished_at=now))])

    target.run(put(), code=True)
    _show_change(show, task, key, True, "counts as done from now on")


@marks.command(name="clear")
def clear_mark(task: TaskName, key: Key, /, *, target: Shared[Target], show: Shared[Show]) -> None:
    """Forget that something is done: it may run again. Nothing is started by that."""

    async def drop() -> bool:
        async with target.client() as client:
            known = (await client.rows(MarkRow, RowQuery(task=task, limit=1))).items
            if not known:
                await check_known_somewhere([task], client, target)
            return (await client.mark([MarkRow(task, _key(key), None)])).items[0]

    changed = target.run(drop(), code=True)
    _show_change(show, task, key, changed, "is forgotten, so that it may run again" if changed else "was not marked")


def _key(key: str) -> str:
    try:
        return check_key(key)
    except (TypeError, ValueError) as error:
        raise InvalidOptions(str(error)) from None


def _show_change(show: Show, task: str, key: str, changed: bool, words: str) -> None:
    if show.json:
        show.value({"task": task, "key": key, "changed": changed})
    else:
        show.line(f"{task} {key} {words}")


def _columns(found: Reply[MarkRow]) -> list[Column]:
    rows = {(row.task, row.key): row.mark or Mark() for row in found.items}

    def ago(record: Record, name: str) -> str:
        instant: float | None = getattr(rows[str(record["task"]), str(record["key"])], name)
        return "" if instant is None else relative(instant, found.now)

    return [
        Column("task"),
        Column("key", whole=True),
        Column("succeeded_at", lambda r: ago(r, "succeeded_at"), title="succeeded", right=True),
        Column("finished_at", lambda r: ago(r, "finished_at"), title="ended", right=True, rank=1),
        Column("failures", lambda r: str(r["failures"] or ""), title="failed in a row", right=True, rank=2),
    ]
