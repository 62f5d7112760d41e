"""Read what the code declares and what the store keeps, at one moment of the store's clock."""

from rota.app.app import Rota
from rota.app.core import core_of
from rota.cli.options.target import Target
from rota.cli.schedules.find import opened
from rota.client.client import Client
from rota.client.fleet import is_alive
from rota.domain.flow import group_of
from rota.domain.once import period_at
from rota.domain.rehearsal import FlowShape
from rota.domain.spec import TaskSpec
from rota.flow import Flow, specs_of
from rota.store import RunQuery, WorkerSeen
from rota.views.forecast import Inventory, usual_durations

LOOKED_BACK = 2 * 24 * 60
"""Minutes of recorded durations: all that a store keeps."""


async def read_inventory(target: Target, app: Rota | None) -> Inventory:
    async with opened(target) as (stored, client):
        schedules = await stored.list()
        published = await client.rows(TaskSpec)
        workers = await client.rows(WorkerSeen)
        stats = await client.stats(LOOKED_BACK)
        flows = [await _shape(client, flow, workers.now) for flow in (app.flows.values() if app else ())]
    seats = sum(worker.report.seats for worker in workers.items if is_alive(worker, workers.now))
    return Inventory(
        now=published.now,
        tz=app.settings.tz if app else target.tz(),
        owner=app.settings.name if app else "",
        declared=core_of(app).registry.declared() if app else [],
        stored={schedule.id: schedule for schedule in schedules},
        specs=core_of(app).registry.specs() if app else [],
        published={spec.name: spec for spec in published.items},
        durations=usual_durations(stats.items),
        seats=seats,
        flows={flow.name: flow for flow in flows},
    )


async def _shape(client: Client, flow: Flow, now: float) -> FlowShape:
    """Return the flow's steps, and its current period if that has begun."""
    period = period_at(flow.once, now)
    runs = (await client.runs(RunQuery(group=group_of(flow.name, period), limit=1))).runs
    return FlowShape(flow.name, flow.once, specs_of(flow), frozenset([period] if runs else ()))
