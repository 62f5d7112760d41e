"""`rota move`: everything that waits goes to another store."""

import asyncio
from typing import Annotated

from cyclopts import Parameter

from rota.cli.groups import Shared
from rota.cli.show import Show
from rota.cli.text import plural
from rota.cli.who import who
from rota.errors import InvalidOptions
from rota.moving import Moved, move
from rota.settings import masked
from rota.stores import connect
from rota.stores.sqlite import SqliteBackend


def move_store(
    *,
    source: Annotated[str, Parameter(name="--from", help="The store to leave, as a URL.")],
    target: Annotated[str, Parameter(name="--to", help="The store to go to.")],
    show: Shared[Show],
) -> None:
    """Move schedules with their next ticks, queued and paused runs, and marks from one store to another.

    Stop the workers first, or let them finish, and what submits: what runs stays and ends where it is. A run that had
    been tried before begins afresh. Interrupted, it can be run again. A namespace or schema goes into the URLs.
    """
    if source == target:
        raise InvalidOptions("--from and --to are the same store")
    moved = asyncio.run(_move(source, target))
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
        return
    what = f"{plural(moved.schedules, 'schedule')}, {plural(moved.runs, 'run')} and {plural(moved.marks, 'mark')}"
    show.line(f"Moved {what} from {masked(source)} to {masked(target)}.")
    if moved.afresh:
        show.line(
            f"{plural(moved.afresh, 'run')} had been tried before: tries and fences count from zero now, and what was "
            "saved is not carried."
        )
    if moved.left:
        show.line(f"{plural(moved.left, 'run')} stayed there: not taken, or behind one that is running.")
    if moved.running:
        show.line(f"{plural(moved.running, 'run')} still running there: wait for the end, then move again.")


async def _move(source: str, target: str) -> Moved:
    leave = connect(source)
    if isinstance(leave, SqliteBackend):
        leave.create = False
    async with leave.open() as old, connect(target).open() as new:
        return await move(old, new, who())
