"""Read what the code declares and what the store keeps, at one moment of the store's clock."""

from collections.abc import Iterable, Sequence

from rota.client.client import Client
from rota.client.fleet import is_alive
from rota.domain.flow import group_of
from rota.domain.once import period_at
from rota.domain.rehearsal import FlowShape
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.flow import Flow, specs_of
from rota.store import RowQuery, RunQuery, WorkerSeen
from rota.views.forecast import Inventory, usual_durations

LOOKED_BACK = 2 * 24 * 60
"""Minutes of recorded durations: all that a store keeps."""
PAGE = 1000


async def inventory_of(
    client: Client,
    tz: str,
    owner: str = "",
    declared: Sequence[Schedule] = (),
    specs: Sequence[TaskSpec] = (),
    flows: Iterable[Flow] = (),
) -> Inventory:
    """`owner` is the name of the app, `declared`, `specs` and `flows` what its code says; without an app, nothing."""
    schedules = [schedule async for schedule in client.all_rows(Schedule, RowQuery(limit=PAGE))]
    published = await client.rows(TaskSpec)
    workers = await client.rows(WorkerSeen)
    stats = await client.stats(LOOKED_BACK)
    shapes = [await _shape(client, flow, workers.now) for flow in flows]
    return Inventory(
        now=published.now,
        tz=tz,
        owner=owner,
        declared=declared,
        stored={schedule.id: schedule for schedule in schedules},
        specs=specs,
        published={spec.name: spec for spec in published.items},
        durations=usual_durations(stats.items),
        seats=sum(worker.report.seats for worker in workers.items if is_alive(worker, workers.now)),
        flows={flow.name: flow for flow in shapes},
    )


async def _shape(client: Client, flow: Flow, now: float) -> FlowShape:
    """Return the flow's steps, and its current period if that has begun."""
    period = period_at(flow.once, now)
    runs = (await client.runs(RunQuery(group=group_of(flow.name, period), limit=1))).runs
    return FlowShape(flow.name, flow.once, specs_of(flow), frozenset([period] if runs else ()))
