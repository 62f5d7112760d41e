"""`rota move`: move everything that waits to another store."""

import asyncio
from typing import Annotated

from cyclopts import Parameter

from rota.cli.options.parameters import Flag, Shared
from rota.cli.options.user import who
from rota.cli.render.show import Show
from rota.cli.render.text import plural
from rota.client.fleet import is_alive
from rota.client.transfer import Moved, count, move
from rota.errors import InvalidOptions, RotaError
from rota.settings import masked
from rota.store import Backend, Store, WorkerSeen
from rota.stores import connect
from rota.stores.sqlite import SqliteBackend


def move_store(
    *,
    source: Annotated[str, Parameter(name="--from", help="The store to leave, as a URL; it is emptied.")],
    target: Annotated[str, Parameter(name="--to", help="The store to go to.")],
    dry_run: Annotated[bool, Flag, Parameter(help="Only count what would go; change nothing.")] = False,
    yes: Annotated[bool, Flag, Parameter(name=("--yes", "-y"), help="Move although workers are alive there.")] = False,
    show: Shared[Show],
) -> None:
    """Move schedules with their next ticks, queued and paused runs, and marks from one store to another.

    What is moved is gone from the old store. First stop its workers and whatever submits to it: running runs are not
    moved. A run that had been tried before begins afresh. If the command is interrupted, run it again. Write a
    namespace or schema into the URLs.
    """
    if source == target:
        raise InvalidOptions("--from and --to are the same store")
    moved = asyncio.run(_count(source) if dry_run else _move(source, target, yes))
    if show.json:
        show.value(
            {
                "schedules": moved.schedules,
                "runs": moved.runs,
                "afresh": moved.afresh,
                "marks": moved.marks,
                "running": moved.running,
                "left": moved.left,
            }
        )
    elif dry_run:
        _show_count(show, moved, masked(source), masked(target))
    else:
        _show_moved(show, moved, masked(source), masked(target))


def _show_count(show: Show, found: Moved, source: str, target: str) -> None:
    show.line(f"Would move {_what(found)} from {source} to {target}; nothing was changed.")
    if found.running:
        show.line(f"{plural(found.running, 'run')} running there would stay, and so would what waits for its end.")


def _show_moved(show: Show, moved: Moved, source: str, target: str) -> None:
    show.line(f"Moved {_what(moved)} from {source} to {target}.")
    if moved.schedules or moved.runs:
        show.line("In the old store, the moved schedules are deleted and the moved runs are cancelled.")
    if moved.afresh:
        show.line(
            f"{plural(moved.afresh, 'run')} had been tried before: tries and fences count from zero now, and what was "
            "saved is not carried."
        )
    if moved.left:
        show.line(f"{plural(moved.left, 'run')} stayed there: not taken, or behind one that is running.")
    if moved.running:
        show.line(f"{plural(moved.running, 'run')} still running there: wait for the end, then move again.")
    show.line(f"Next: set ROTA_URL={target}, or url in rota.toml, wherever workers start and programs submit.")


def _what(moved: Moved) -> str:
    return f"{plural(moved.schedules, 'schedule')}, {plural(moved.runs, 'run')} and {plural(moved.marks, 'mark')}"


async def _count(source: str) -> Moved:
    async with _left(source).open() as old:
        return await count(old)


async def _move(source: str, target: str, although_alive: bool) -> Moved:
    async with _left(source).open() as old:
        if not although_alive:
            await _check_nobody_works(old, source)
        async with connect(target).open() as new:
            return await move(old, new, who())


async def _check_nobody_works(old: Store, source: str) -> None:
    """Raise if a worker of the old store is alive: it would start runs that are being moved, and declare its schedules
    again when it restarts."""
    seen = await old.rows(WorkerSeen)
    alive = [worker for worker in seen.items if is_alive(worker, seen.now)]
    if alive:
        verb = "is" if len(alive) == 1 else "are"
        raise RotaError(
            f"{plural(len(alive), 'worker')} {verb} alive on {masked(source)}: stop the workers first "
            "(rota workers lists them), or move all the same with --yes"
        )


def _left(source: str) -> Backend:
    """Return the store to move from; a missing SQLite file is not created."""
    backend = connect(source)
    if isinstance(backend, SqliteBackend):
        backend.create = False
    return backend
