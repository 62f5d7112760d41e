"""Flows: the state of a period and of its steps, and what a start of a period answered."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from msgspec import Struct

from rota.domain.decision import Decision, Reason
from rota.domain.once import period_at
from rota.domain.period import Period
from rota.domain.schedule import Schedule
from rota.flow import Flow, FlowStatus, StepStatus
from rota.flow.status import StepState
from rota.store import Reads, RowQuery, RunQuery
from rota.views.values import Record, iso, record

LOOKED_BACK = 1000
"""Runs of a step among which the periods are found that a function names."""


class FlowView(Struct, frozen=True):
    """A flow in one period; the numbers count its steps by state."""

    flow: str
    steps: int
    period: str
    complete: bool
    done: int
    running: int
    waiting: int
    blocked: int
    failed: int
    absent: int
    next_recheck: str | None


class StepView(Struct, frozen=True):
    """A step in one period; `seconds` is how long its last call took."""

    flow: str
    period: str
    step: str
    task: str
    state: str
    since: str | None
    seconds: float | None
    run: str | None
    attempts: int
    after: tuple[str, ...]
    blocked_by: tuple[str, ...]
    error: str | None


class FlowPeriod(Struct, frozen=True):
    """A flow in a period. `recheck` is the schedule that restarts missing steps, if the store has one."""

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
        """When the recheck looks at this period again; None if its next tick belongs to another period."""
        at = self.next_recheck
        return at if at is not None and period_at(self.flow.once, at) == self.status.period else None


async def flow_period(store: Reads, flow: Flow, tz: str, period: str | None = None) -> FlowPeriod:
    """Return `flow` in `period`, or in the current one. `tz` is the zone of a flow that names none."""
    rows = (await store.rows(Schedule, RowQuery(names=[flow.name]))).items
    rechecks = [row for row in rows if row.task == flow.name]
    zone = (flow.once.tz if isinstance(flow.once, Period) else None) or tz
    return FlowPeriod(flow, await flow.status(period), rechecks[0] if rechecks else None, zone)


async def last_periods(store: Reads, flow: Flow, count: int) -> list[str]:
    """Return the last `count` periods, oldest first; if a function names the periods, those that have runs."""
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


def flow_view(found: FlowPeriod) -> FlowView:
    status = found.status
    return FlowView(
        flow=status.flow,
        steps=len(status.steps),
        period=status.period,
        complete=status.done,
        done=found.count("done", "skipped"),
        running=found.count("running"),
        waiting=found.count("waiting", "due", "paused"),
        blocked=found.count("blocked"),
        failed=found.count("failed", "cancelled"),
        absent=found.count("absent"),
        next_recheck=iso(found.next_recheck),
    )


def flow_detail(found: FlowPeriod, statuses: Sequence[FlowStatus]) -> Record:
    """Return the flow with the steps of each period in `statuses`."""
    periods = [{"period": each.period, "done": each.done, "steps": step_records([each])} for each in statuses]
    return record(flow_view(found)) | {"zone": found.zone, "periods": periods}


def step_records(statuses: Sequence[FlowStatus]) -> list[Record]:
    return [record(step_view(status, step)) for status in statuses for step in status.steps.values()]


def step_view(status: FlowStatus, step: StepStatus) -> StepView:
    return StepView(
        flow=status.flow,
        period=status.period,
        step=step.name,
        task=step.task,
        state=step.state,
        since=iso(step.since),
        seconds=step.seconds,
        run=step.run.id if step.run else None,
        attempts=0 if step.run is None else len(step.run.attempts),
        after=tuple(step.after),
        blocked_by=tuple(step.blocked_by),
        error=str(step.run.error) if step.run and step.run.error else None,
    )


def start_records(flow: str, period: str, answers: Mapping[str, Decision]) -> list[Record]:
    """Return what a start or a rerun of `period` answered for each step."""
    return [
        {"flow": flow, "period": period, "step": step, "reason": str(answer.reason), "run": answer.run}
        for step, answer in answers.items()
    ]


def backfill_record(flow: str, period: str, answers: Mapping[str, Decision]) -> Record:
    """Return how many steps of `period` a backfill put, how many it joined, and how many were done before."""
    reasons = [answer.reason for answer in answers.values()]
    return {
        "flow": flow,
        "period": period,
        "put": reasons.count(Reason.ACCEPTED),
        "joined": reasons.count(Reason.JOINED),
        "done": reasons.count(Reason.ALREADY_DONE),
    }
