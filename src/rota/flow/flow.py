"""Flow: steps that follow each other, defined in code. One period of a flow is a group of runs that wait for each
other."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from msgspec import Struct

from rota.client.client import Client
from rota.client.portal import Portal
from rota.domain.decision import Decision, Reason
from rota.domain.flow import (
    KEPT,
    OnFailure,
    StepSpec,
    as_step,
    check_after,
    check_flow_name,
    downstream,
    group_of,
    key_of,
)
from rota.domain.guards import Mark
from rota.domain.intake import check_name
from rota.domain.once import Once, check_period, memory_of, period_at
from rota.domain.period import Period
from rota.domain.period_formats import Formats
from rota.domain.results import FailOn
from rota.domain.run import NewRun, Run, State
from rota.domain.triggers import Trigger
from rota.engine.context import Context
from rota.engine.steps import Answer, Inputs, StepCode
from rota.errors import InvalidOptions
from rota.flow.status import FlowStatus, step_statuses
from rota.store import MarkRow, RowQuery, RunQuery
from rota.task import Bound, Task, bind_step, call_of, definition_of

BACKFILL_CAP = 1000
PAGE = 1000
AnyTask = Task[..., ..., Any, Any]
StepArgs = Mapping[str, Any] | Callable[[Inputs], Answer] | None
"""Arguments by name, or a function that returns them when a step starts."""


class Step(Struct, frozen=True):
    """One step of a flow; pass it to `after=` of the steps that follow."""

    spec: StepSpec
    call: Bound[Any]
    code: StepCode
    expect: Trigger | str | None = None

    @property
    def name(self) -> str:
        return self.spec.name


class Flow:
    """A flow, made by `app.flow`. Each period is started once; a step starts as soon as the steps before it have
    succeeded, and `recheck` puts missing steps.

    The name of a flow is a task, too: a run of that task does what `recheck` does.
    """

    def __init__(
        self,
        name: str,
        once: Once,
        *,
        client: Callable[[], Client],
        portal: Callable[[], Portal],
        known: Callable[[str], AnyTask | None],
        formats: Formats,
        on_failure: OnFailure = "block",
        fail_on: FailOn | None = None,
        args: StepArgs = None,
    ) -> None:
        self.name = check_flow_name(name)
        self.once = once
        self.on_failure = check_on_failure(on_failure)
        self.steps: dict[str, Step] = {}
        self._client = client
        self._portal = portal
        self._known = known
        self._formats = formats
        self._fail_on = fail_on
        self._args = args

    def __repr__(self) -> str:
        return f"<Flow {self.name}: {' '.join(self.steps) or 'no steps'}>"

    # -- defining --------------------------------------------------------------------------------------------------

    def step(
        self,
        task: AnyTask | Bound[Any],
        *,
        name: str | None = None,
        after: "Sequence[Step | AnyTask | str] | Step | AnyTask | str" = (),
        when: Callable[[Inputs], Answer] | None = None,
        args: StepArgs = None,
        on_failure: OnFailure | None = None,
        expect: Trigger | str | None = None,
    ) -> Step:
        """Add a step that starts when all steps in `after` have succeeded.

        A parameter of the task that has the name of an earlier step gets that step's result. `args` are other
        arguments, or a function that returns them when the step starts; both win over the flow's `args`. `when` is a
        function: if it returns False, the step is skipped and the steps behind it go on. `on_failure` says what a
        failure of the step does: `block` the steps behind it, `continue` without it, or `stop` the whole period.
        `expect` says when the step should be done; otherwise it is `late`.
        """
        own = definition_of(task.task if isinstance(task, Bound) else task)
        try:
            step_name = check_name(name or own.name)
            followed = check_after(step_name, self._followed(after), specs_of(self))
            policy = check_on_failure(on_failure or self.on_failure)
            self._check(task.task if isinstance(task, Bound) else task, step_name)
        except (TypeError, ValueError) as error:
            raise InvalidOptions(f"flow {self.name}: {error}") from None
        code = StepCode(
            when,
            args if callable(args) else None,
            self._args if callable(self._args) and isinstance(task, Task) and own.signature.names else None,
            self._fail_on if own.own_fail_on is None else None,
        )
        given = self._shared(task, followed) | ({} if args is None or callable(args) else dict(args))
        call, takes = bind_step(task, given, followed, filled_later=bool(code.args or code.shared_args))
        if code.when or code.args:
            takes = followed  # `when` and `args` may read the result of any of them
        spec = StepSpec(
            name=step_name,
            task=own.name,
            after=followed,
            on_failure=policy,
            takes=takes,
            coded=code != StepCode(),
        )
        step = self.steps[step_name] = Step(spec, call, code, expect)
        own.keep_marks(memory_of(self.once))
        return step

    def _shared(self, task: AnyTask | Bound[Any], followed: Sequence[str]) -> dict[str, Any]:
        """Return the flow's `args` that `task` takes and that no earlier step provides. A bound call gets none: it is
        complete."""
        if self._args is None or callable(self._args) or isinstance(task, Bound):
            return {}
        wanted = [name for name in definition_of(task).signature.names if name not in followed]
        return {name: value for name, value in self._args.items() if name in wanted}

    def _check(self, task: AnyTask, step: str) -> None:
        if self._known(task.name) is not task:
            raise ValueError(f"step {step}: {task.name} is not a task of this app")
        if definition_of(task).once is not None:
            raise ValueError(f"step {step}: {task.name} has a once= of its own; the flow's is the one that counts")
        check_flow_name(step)

    def _followed(self, after: "Sequence[Step | AnyTask | str] | Step | AnyTask | str") -> list[str]:
        several = [after] if isinstance(after, str | Step | Task) else list(after)
        return [self._name_of(each) for each in several]

    def _name_of(self, followed: "Step | AnyTask | str") -> str:
        if isinstance(followed, str):
            return followed
        if isinstance(followed, Step):
            if self.steps.get(followed.name) is not followed:
                raise ValueError(f"{followed.name} is a step of another flow")
            return followed.name
        names = [name for name, step in self.steps.items() if step.spec.task == followed.name]
        if len(names) > 1 and followed.name not in names:
            raise ValueError(f"{followed.name} is the task of several steps ({', '.join(names)}); say which by name")
        return names[0] if len(names) == 1 else followed.name

    # -- periods ---------------------------------------------------------------------------------------------------

    async def period(self, period: str | date | None = None) -> str:
        """Return the name of a period: the current one by the store's clock, or the one that `period` names or
        contains."""
        try:
            if period is None:
                return period_at(self.once, await self._client().now())
            if isinstance(period, datetime):
                return period_at(self.once, _aware(period).timestamp())
            name = period.isoformat() if isinstance(period, date) else self._formats.read(period)
            return self.once.check(name) if isinstance(self.once, Period) else check_period(name)
        except (TypeError, ValueError) as error:
            raise InvalidOptions(f"flow {self.name}: {error}") from None

    async def start(self, period: str | date | None = None) -> dict[str, Decision]:
        """Put all steps of a period in one step of the store.

        Steps that are done are refused and unfinished ones are joined, so that starting twice changes nothing. Steps
        that have failed or were cancelled get a new run.
        """
        return await self._put(await self.period(period), list(self.steps))

    async def recheck(self, period: str | date | None = None) -> dict[str, Decision]:
        """Put the missing steps of a period. Steps that a person has cancelled stay so, and so does a period that one
        of its steps has stopped."""
        name = await self.period(period)
        newest = {step: run for step, run in (await self._newest(name))[1].items() if step in self.steps}
        if any(run.state is State.FAILED and run.member and run.member.stops for run in newest.values()):
            return {}
        cancelled = [step for step, run in newest.items() if run.reason in (Reason.CANCELLED, Reason.DROPPED)]
        return await self._put(name, [step for step in self.steps if step not in cancelled])

    async def rerun(
        self, step: "str | Step", period: str | date | None = None, downstream: bool = True
    ) -> dict[str, Decision]:
        """Do a step again, with `downstream` also all steps that follow from it.

        Raises InvalidOptions while a step to be rerun is running: it would finish with results of the old inputs.
        """
        name = await self.period(period)
        steps = self.downstream(step) if downstream else [self._step(step)]
        newest = (await self._newest(name))[1]
        for each in steps:
            if each in newest and newest[each].state is State.RUNNING:
                run = newest[each].id
                raise InvalidOptions(f"flow {self.name}: step {each} runs; wait for its end, or cancel {run}")
        await self._clear(name, steps)
        return await self._put(name, steps)

    async def reset(
        self, period: str | date | None = None, step: "str | Step | None" = None, downstream: bool = False
    ) -> list[str]:
        """Forget that steps are done: all, or `step`, or with `downstream` also those that follow from it. The next
        start or recheck does them again.

        Returns the names of the steps that were done. A failed step is forgotten too, but not returned.
        """
        name = await self.period(period)
        if step is None:
            return await self._clear(name, list(self.steps))
        return await self._clear(name, self.downstream(step) if downstream else [self._step(step)])

    async def backfill(self, first: str | date, last: str | date) -> dict[str, dict[str, Decision]]:
        """Start every period from `first` to `last`."""
        if not isinstance(self.once, Period):
            raise InvalidOptions(f"flow {self.name}: only a function names its periods; start them one by one")
        begin, end = await self.period(first), await self.period(last)
        try:
            names = self.once.between(begin, end, BACKFILL_CAP)
        except ValueError as error:
            raise InvalidOptions(f"flow {self.name}: {error}") from None
        return {name: await self._put(name, list(self.steps)) for name in names}

    async def status(self, period: str | date | None = None) -> FlowStatus:
        name = await self.period(period)
        now, runs = await self._newest(name)
        marks = await self._marks(name)
        return FlowStatus(flow=self.name, period=name, now=now, steps=step_statuses(specs_of(self), runs, marks, now))

    async def wait(self, period: str | date | None = None, timeout: float | None = None) -> FlowStatus:
        """Return when the period is done, or when nothing of it changes any more by itself: `done` says which. Raise
        TimeoutError after `timeout` seconds."""
        name = await self.period(period)
        async with asyncio.timeout(timeout):
            heard = await self._client().news(0.0)
            while (status := await self.status(name)).moving:
                heard = await self._client().news(since=heard)
        return status

    # -- the same from synchronous code ----------------------------------------------------------------------------

    def start_sync(self, period: str | date | None = None) -> dict[str, Decision]:
        """`start` from synchronous code. Like all methods here, it raises where an event loop runs."""
        return self._portal().call(lambda: self.start(period))

    def recheck_sync(self, period: str | date | None = None) -> dict[str, Decision]:
        return self._portal().call(lambda: self.recheck(period))

    def rerun_sync(
        self, step: "str | Step", period: str | date | None = None, downstream: bool = True
    ) -> dict[str, Decision]:
        return self._portal().call(lambda: self.rerun(step, period, downstream))

    def reset_sync(
        self, period: str | date | None = None, step: "str | Step | None" = None, downstream: bool = False
    ) -> list[str]:
        return self._portal().call(lambda: self.reset(period, step, downstream))

    def backfill_sync(self, first: str | date, last: str | date) -> dict[str, dict[str, Decision]]:
        return self._portal().call(lambda: self.backfill(first, last))

    def status_sync(self, period: str | date | None = None) -> FlowStatus:
        return self._portal().call(lambda: self.status(period))

    def wait_sync(self, period: str | date | None = None, timeout: float | None = None) -> FlowStatus:
        return self._portal().call(lambda: self.wait(period, timeout))

    # -- the steps -------------------------------------------------------------------------------------------------

    def downstream(self, step: "str | Step") -> list[str]:
        return downstream(specs_of(self), self._step(step))

    def _step(self, step: "str | Step") -> str:
        name = step.name if isinstance(step, Step) else step
        if name not in self.steps:
            raise InvalidOptions(f"flow {self.name} has no step {name!r}; there are: {', '.join(self.steps) or 'none'}")
        return name

    # -- the store -------------------------------------------------------------------------------------------------

    async def _put(self, period: str, steps: Sequence[str]) -> dict[str, Decision]:
        if not steps:
            return {}
        expires_at = await self._expiry(period)
        runs = [self._run(step, period, expires_at) for step in steps]
        return dict(zip(steps, (await self._client().put(runs)).items, strict=True))

    def _run(self, step: str, period: str, expires_at: float) -> NewRun:
        found = self.steps[step]
        return as_step(call_of(found.call).to_run(), found.spec, specs_of(self), self.name, period, expires_at)

    async def _expiry(self, period: str) -> float:
        """Return when the steps of a period expire: steps that are never reached do not wait for ever."""
        now = await self._client().now()
        end = self.once.bounds(period)[1].timestamp() if isinstance(self.once, Period) else now + memory_of(self.once)
        return max(end, now) + KEPT

    async def _clear(self, period: str, steps: Sequence[str]) -> list[str]:
        edits = [MarkRow(self.steps[step].spec.task, key_of(self.name, step, period), None) for step in steps]
        known = await self._marks(period)
        changed = (await self._client().mark(edits)).items
        done = {step for step, mark in known.items() if mark.succeeded_at is not None}
        return [step for step, was in zip(steps, changed, strict=True) if was and step in done]

    async def _newest(self, period: str) -> tuple[float, dict[str, Run]]:
        """Return the store's time, and the latest run of each step."""
        found: dict[str, Run] = {}
        now = 0.0
        async for page in self._client().pages(RunQuery(group=group_of(self.name, period), limit=PAGE)):
            now = page.now
            for run in page.runs:
                if run.member is not None:
                    found.setdefault(run.member.step, run)
        return now, found

    async def _marks(self, period: str) -> dict[str, Mark]:
        async def read(step: str) -> Mark:
            query = RowQuery(task=self.steps[step].spec.task, key=key_of(self.name, step, period))
            rows = (await self._client().rows(MarkRow, query)).items
            return (rows[0].mark if rows else None) or Mark()

        return dict(zip(self.steps, await asyncio.gather(*map(read, self.steps)), strict=True))


def specs_of(flow: Flow) -> dict[str, StepSpec]:
    """Return what the code says of each step, by the name of the step."""
    return {name: step.spec for name, step in flow.steps.items()}


def codes_of(flow: Flow) -> dict[str, StepCode]:
    """Return what a worker must know of the steps, by flow and step."""
    return {f"{flow.name}/{name}": step.code for name, step in flow.steps.items() if step.code != StepCode()}


def handler_of(flow: Flow) -> Callable[..., Any]:
    """Return the handler of the flow's own task. Its runs come from the recheck schedule, or from a submit by name."""

    async def start(ctx: Context, period: str | None = None) -> dict[str, str]:
        if period is None and ctx.nominal is not None:
            period = period_at(flow.once, ctx.nominal.timestamp())
        answers = await flow.recheck(period)
        return {step: str(decision.reason) for step, decision in answers.items()}

    return start


def check_on_failure(policy: object) -> OnFailure:
    if policy not in ("block", "continue", "stop"):
        raise ValueError(f"on_failure={policy!r}: choose block, continue or stop")
    return policy


def _aware(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise ValueError(f"{instant!r} has no time zone; give a period's name, a date, or an aware datetime")
    return instant
