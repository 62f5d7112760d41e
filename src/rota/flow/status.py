"""The status of a flow in a period: the state of each step, and what blocks it."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from rota.domain import needs
from rota.domain.decision import Reason
from rota.domain.flow import Steps
from rota.domain.guards import Mark
from rota.domain.run import Run, State

StepState = Literal[
    "done", "skipped", "running", "due", "waiting", "blocked", "paused", "failed", "cancelled", "absent"
]
"""due: the step may start now or at its time. absent: the store knows no run of the step; it was never started or is
forgotten."""


class StepStatus(Struct, frozen=True, kw_only=True):
    """One step in one period. `since` is when the step got into this state, by the store's clock.

    `blocked_by` are the steps at the root of the wait: those that will not succeed by themselves.
    """

    name: str
    task: str
    state: StepState
    after: tuple[str, ...] = ()
    since: float | None = None
    run: Run | None = None
    blocked_by: tuple[str, ...] = ()

    @property
    def seconds(self) -> float | None:
        """Seconds that the last call of the step took."""
        return self.run.attempts[-1].seconds if self.run is not None and self.run.attempts else None


class FlowStatus(Struct, frozen=True, kw_only=True):
    """One period of a flow: its steps in the order of their definition."""

    flow: str
    period: str
    now: float
    steps: dict[str, StepStatus]

    @property
    def done(self) -> bool:
        return all(step.state in ("done", "skipped") for step in self.steps.values())

    @property
    def moving(self) -> bool:
        """Does a step run, or will one start without a person's help?"""
        return any(step.state in ("running", "due", "waiting") for step in self.steps.values())

    @property
    def started(self) -> bool:
        return any(step.state != "absent" for step in self.steps.values())

    @property
    def blocked(self) -> dict[str, StepStatus]:
        return {name: step for name, step in self.steps.items() if step.state == "blocked"}


def step_statuses(
    steps: Steps, runs: Mapping[str, Run], marks: Mapping[str, Mark], now: float
) -> dict[str, StepStatus]:
    """Return the status of every step from its newest run and its mark. A marked success counts, whatever became of
    later runs."""
    found: dict[str, StepStatus] = {}
    for name, spec in steps.items():  # a step comes after the steps that it follows
        run, mark = runs.get(name), marks.get(name, Mark())
        state, since = _state(run, mark, now)
        roots: tuple[str, ...] = ()
        if state == "waiting" and run is not None:
            roots = _roots(found, run)
            if roots:
                ends = [at for root in roots if root in found and (at := found[root].since) is not None]
                state, since = "blocked", max(ends, default=since)
        found[name] = StepStatus(
            name=name, task=spec.task, state=state, after=spec.after, since=since, run=run, blocked_by=roots
        )
    return found


def _state(run: Run | None, mark: Mark, now: float) -> tuple[StepState, float | None]:
    if run is not None and run.state is State.RUNNING:
        return "running", run.claimed_at
    if run is not None and run.state is State.SUCCEEDED and run.reason is Reason.SKIPPED:
        return "skipped", run.finished_at
    if mark.succeeded_at is not None:
        return "done", mark.succeeded_at
    if run is None:
        return "absent", None
    if run.state is State.PAUSED:
        return "paused", None
    if run.state is State.QUEUED:
        return ("waiting", run.created_at) if run.needs else ("due", max(run.due_at, run.created_at))
    if run.state is State.SUCCEEDED:
        return "absent", None  # it succeeded, but its mark was cleared: it may run again
    return ("failed" if run.state is State.FAILED else "cancelled"), run.finished_at


def _roots(found: Mapping[str, StepStatus], run: Run) -> tuple[str, ...]:
    """Return the steps for which `run` waits and that have failed, were cancelled or paused, were never started, or
    have left the code; also those further up."""
    roots: dict[str, None] = {}
    for need in run.needs:
        name = needs.named(need)
        if name is None:
            continue
        parent = name.key.rpartition("@")[0].rpartition("/")[2]
        step = found.get(parent)
        if step is None or step.state in ("failed", "cancelled", "absent", "paused"):
            roots[parent] = None
        roots |= dict.fromkeys(step.blocked_by if step is not None else ())
    return tuple(roots)
