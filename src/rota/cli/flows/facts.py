"""Flows as people ask about them: found by name, with how their periods stand and when they are looked after next."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Annotated

from cyclopts import Parameter
from msgspec import Struct

from rota.app.app import Rota
from rota.cli.options.names import unknown
from rota.cli.options.target import Target
from rota.cli.render.text import iso
from rota.domain.once import period_at
from rota.domain.period import Period
from rota.domain.schedule import Schedule
from rota.errors import UnknownTask
from rota.flow import Flow, FlowStatus, StepStatus
from rota.flow.status import StepState
from rota.store import RowQuery, RunQuery, Store

FlowName = Annotated[str, Parameter(help="The flow's name.")]
StepName = Annotated[str, Parameter(help="The step's name.")]
PeriodName = Annotated[str | None, Parameter(help="Which, such as 2026-11-15; the one of now if none is named.")]

LOOKED_BACK = 1000
"""Runs of a step in which the periods are found that only a function can name."""


class FlowPeriod(Struct, frozen=True):
    """A flow in a period; `recheck` is the schedule that looks after it, if the store has one."""

    flow: Flow
    status: FlowStatus
    recheck: Schedule | None
    zone: str

    def count(self, *states: StepState) -> int:
        return sum(step.state in states for step in self.status.steps.values())

    @property
    def next_recheck(self) -> float | None:
        return None if self.recheck is None or self.recheck.paused else self.recheck.next_at

    @property
    def healing(self) -> float | None:
        """When the recheck looks at this very period again."""
        at = self.next_recheck
        return at if at is not None and period_at(self.flow.once, at) == self.status.period else None


@asynccontextmanager
async def opened_app(target: Target) -> AsyncGenerator[tuple[Rota, Store], None]:
    """The app and its store, for flows live in code."""
    app = target.app()
    async with app.client() as client:
        yield app, await client.store()


def find_flow(app: Rota, name: str) -> Flow:
    if name not in app.flows:
        raise UnknownTask(unknown(name, app.flows, noun="flow"))
    return app.flows[name]


def find_step(flow: Flow, name: str) -> str:
    if name not in flow.steps:
        raise UnknownTask(unknown(name, flow.steps, f"flow {flow.name}", "step"))
    return name


async def standing(app: Rota, store: Store, flow: Flow, period: str | None = None) -> FlowPeriod:
    rows = (await store.rows(Schedule, RowQuery(names=[flow.name]))).items
    ours = [row for row in rows if row.task == flow.name]
    return FlowPeriod(flow, await flow.status(period), ours[0] if ours else None, zone_of_flow(app, flow))


def zone_of_flow(app: Rota, flow: Flow) -> str:
    return (flow.once.tz if isinstance(flow.once, Period) else None) or app.settings.tz


async def last_periods(store: Store, flow: Flow, count: int) -> list[str]:
    """The last so many, oldest first; of those that a function names, the ones that have runs."""
    newest = await flow.period()
    if isinstance(flow.once, Period):
        names = [newest]
        while len(names) < count:
            begin, _ = flow.once.bounds(names[0])
            names.insert(0, flow.once.name(begin - timedelta(seconds=1)))
        return names
    found: dict[str, None] = {newest: None}
    for step in list(flow.steps.values())[:1]:
        for run in (await store.runs(RunQuery(task=step.spec.task, limit=LOOKED_BACK))).runs:
            if run.origin.of == flow.name and run.origin.period:
                found.setdefault(run.origin.period)
    return list(found)[:count][::-1]


def brief(standing: FlowPeriod) -> dict[str, object]:
    """A flow and its period of now, as JSON has it."""
    status = standing.status
    return {
        "flow": status.flow,
        "steps": len(status.steps),
        "period": status.period,
        "complete": status.done,
        "done": standing.count("done", "skipped"),
        "running": standing.count("running"),
        "waiting": standing.count("waiting", "due", "paused"),
        "blocked": standing.count("blocked"),
        "failed": standing.count("failed", "cancelled"),
        "absent": standing.count("absent"),
        "next_recheck": None if standing.next_recheck is None else iso(standing.next_recheck),
    }


def step_records(statuses: Sequence[FlowStatus]) -> list[dict[str, object]]:
    return [_step(status, step) for status in statuses for step in status.steps.values()]


def _step(status: FlowStatus, step: StepStatus) -> dict[str, object]:
    return {
        "flow": status.flow,
        "period": status.period,
        "step": step.name,
        "task": step.task,
        "state": step.state,
        "since": None if step.since is None else iso(step.since),
        "seconds": step.seconds,
        "run": step.run and step.run.id,
        "attempts": 0 if step.run is None else len(step.run.attempts),
        "after": [*step.after],
        "blocked_by": [*step.blocked_by],
        "error": step.run and step.run.error and str(step.run.error),
    }
