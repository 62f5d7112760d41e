"""`rota events`: what happens in a store, line by line."""

from typing import Annotated

from cyclopts import Parameter

from rota.cli.options.parameters import Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Column, Show
from rota.client.event_stream import EventStream
from rota.errors import InvalidOptions
from rota.views.events import event_view

COLUMNS = [Column(name) for name in ("at", "name", "of", "id", "task", "key", "state", "reason", "worker", "cursor")]


def events(
    *,
    since: Annotated[
        str | None, Parameter(help="Begin after this cursor, which every event has; else begin now.")
    ] = None,
    task: Annotated[tuple[str, ...], Parameter(help="Only events of this task; repeat it for several.")] = (),
    limit: Annotated[int | None, Parameter(help="Stop after so many events; else go on for ever.")] = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Print what happens to runs, tasks and schedules, until you interrupt it.

    One line per event; with --json one object per line. An event named gap says that events before it are gone.
    """
    if limit is not None and limit < 1:
        raise InvalidOptions(f"--limit {limit}: a number from 1")
    target.run(_follow(target, since, task, limit, show))


async def _follow(target: Target, since: str | None, tasks: tuple[str, ...], limit: int | None, show: Show) -> None:
    async with target.client() as client:
        stream = await EventStream(client, since, tasks).start()
        if not show.json:
            show.row({column.field: column.field for column in COLUMNS}, COLUMNS)
        left = limit
        async for event in stream:
            show.row(event_view(event), COLUMNS)
            left = None if left is None else left - 1
            if left == 0:
                return
