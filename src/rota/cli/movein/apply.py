"""Puts the rows of an import into the store, as `rota schedules put` does."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rota.app.app import Rota
from rota.app.core import core_of
from rota.cli.options.names import unknown
from rota.cli.options.target import Target, check_shared
from rota.cli.schedules.find import opened
from rota.client.client import Client
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.errors import InvalidOptions, UnknownTask
from rota.movein.plan import Row
from rota.schedules.schedules import put_made
from rota.store import RowQuery
from rota.task import Task, definition_of
from rota.task.remote import call_by_spec
from rota.views.values import Record, iso


async def put_rows(
    target: Target, app: Rota | None, rows: Sequence[Row], cut: datetime | None, unknown_ok: bool
) -> list[Record]:
    """Put a schedule for each row. All are made and checked before the first is put; a second import changes them."""
    check_shared(target.backend())
    known = core_of(app).registry.names() if app else {}
    async with opened(target) as (stored, client):
        specs = {spec.name: spec for spec in (await client.rows(TaskSpec)).items if spec.executor}
        made = [_made(row, known, specs, unknown_ok) for row in rows]
        await _check_free(client, made, cut)
        kept = [await put_made(stored, schedule, None, row.paused) for row, schedule in zip(rows, made, strict=True)]
    return [{"id": each.id, "task": each.task, "next_at": iso(each.next_at), "paused": each.paused} for each in kept]


def _made(
    row: Row, known: Mapping[str, Task[..., ..., Any, Any]], specs: Mapping[str, TaskSpec], unknown_ok: bool
) -> Schedule:
    assert row.trigger is not None
    if row.task in known:
        call = definition_of(known[row.task]).call(tuple(row.args), dict(row.kwargs), row.options)
    elif row.task in specs or unknown_ok:
        call = call_by_spec(specs.get(row.task) or TaskSpec(row.task), row.args, row.kwargs, row.options)
    else:
        hint = unknown(row.task, {*known, *specs}, "app or store")
        raise UnknownTask(f"{row.where}: {hint} (--to writes the tasks, --unknown-ok takes any name)")
    return call.to_schedule(row.name, row.trigger, row.timed)


async def _check_free(client: Client, made: Sequence[Schedule], cut: datetime | None) -> None:
    """Refuse names that other schedules have, and a cut-over that has passed by the store's clock."""
    reply = await client.rows(Schedule, RowQuery(names=[each.id for each in made]))
    if cut is not None and cut.timestamp() <= reply.now:
        raise InvalidOptions(f"--at {iso(cut.timestamp())} has passed by the store's clock; name a later instant")
    tasks = {each.id: each.task for each in made}
    for row in reply.items:
        if row.task != tasks[row.id]:
            raise InvalidOptions(
                f"there is a schedule {row.id} already, which calls {row.task}; delete it first, or use another store"
            )
