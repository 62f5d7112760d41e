"""Steps: make the arguments of a flow's step when it starts, from the results of the steps before it."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from rota.domain import needs, once
from rota.domain.arguments import Signature, encode_result
from rota.domain.ended import ENDED, ending_of
from rota.domain.fan import Gathers
from rota.domain.results import FailOn
from rota.domain.run import Member, Run, State
from rota.engine.fans import ChildrenOf, Fans, FanStopped
from rota.store import Reads, RunQuery, Store
from rota.store.paging import first_run

Answer = Any | Awaitable[Any]


class Inputs(Struct, frozen=True):
    """What `when=` and `args=` of a step are called with: its period, and the results of the steps before it.

    The result of a step that was skipped or has failed is None.
    """

    flow: str
    step: str
    period: str
    results: dict[str, Any]


class StepCode(Struct, frozen=True):
    """What the code of a flow says about a step when it starts."""

    when: Callable[[Inputs], Answer] | None = None
    args: Callable[[Inputs], Answer] | None = None
    shared_args: Callable[[Inputs], Answer] | None = None
    """The flow's `args=` for all steps: a step takes those that it has parameters for and gets from nowhere else."""
    fail_on: FailOn | None = None
    """The `fail_on` of the flow, used if the step's task has none."""

    @property
    def prepares(self) -> bool:
        """Whether the code needs the results of the steps before."""
        return self.when is not None or self.args is not None or self.shared_args is not None


class FlowCode(Struct, frozen=True):
    """What the code of an app says about its flows: the steps by flow and step, and how a period is written."""

    steps: Mapping[str, StepCode] = MappingProxyType({})
    written: Callable[[str], str] = str
    children_of: ChildrenOf | None = None
    tasks: frozenset[str] = frozenset()
    """The tasks whose code the app has: the children of a fan are made where their task is known."""


class NotWanted(Exception):
    """`when` says no."""


class Forgotten(Exception):
    """A result that the step takes is no longer kept."""


class Unread(Exception):
    """The store could not return the results of the steps before. That is never the fault of the step's code."""


class NotKnown(Exception):
    """This worker has the task, but not the code of the flow."""


class Steps:
    """The steps of this worker's flows. Chains need no code: their runs say what they take."""

    def __init__(self, store: Store, code: FlowCode) -> None:
        self._store = store
        self._flows = code
        self.fans = None if code.children_of is None else Fans(store, code.children_of)

    async def arguments(self, run: Run, signature: Signature) -> bytes:
        """Return the arguments of the call of `run`. Raises NotWanted if it should not be called at all, NotKnown if it
        should not be called by this worker."""
        member = run.member
        if run.origin.kind == ENDED:
            return await self._ending(run, signature)
        if member is None:
            return run.args
        if member.spreads is not None and member.spreads.task not in self._flows.tasks:
            raise NotKnown(f"this worker has no code of task {member.spreads.task}, whose runs {run.task} makes")
        flow, _, period = member.group.rpartition("@")
        code = self._code(member)
        if member.coded and code == StepCode():
            raise NotKnown(f"this worker has no code of flow {flow} that says how step {member.step} is called")
        if member.gathers is not None and self.fans is not None:
            return await self._gathered(run, member.gathers, self.fans)
        if not member.takes and not code.prepares:
            return run.args
        results = await self._results(member)
        given = msgspec.json.decode(run.args, type=dict[str, Raw])
        values = {step: msgspec.json.decode(raw) for step, raw in results.items()}
        inputs = Inputs(flow, member.step, self._flows.written(period), values)
        if code.when is not None and not await _answer(code.when(inputs)):
            raise NotWanted(f"not wanted in {period}")
        for step, raw in results.items():
            if step in signature.parameters.parameters and step not in given:
                given[step] = Raw(raw)
        if code.args is not None:
            given |= _encoded(await _answer(code.args(inputs)))
        if code.shared_args is not None:
            shared = _encoded(await _answer(code.shared_args(inputs)))
            given = {name: value for name, value in shared.items() if signature.takes(name)} | given
        return msgspec.json.encode(given)

    async def _gathered(self, run: Run, gathers: Gathers, fans: Fans) -> bytes:
        """Return the arguments of a gather: one of them names the results of the children."""
        try:
            results = await fans.gathered(gathers)
        except FanStopped:
            raise
        except Exception as error:
            raise Unread(f"the children of {gathers.fan} cannot be read: {error}") from error
        given = msgspec.json.decode(run.args, type=dict[str, Raw])
        return msgspec.json.encode(given | {gathers.parameter: Raw(msgspec.json.encode(results))})

    async def _ending(self, run: Run, signature: Signature) -> bytes:
        """Return the arguments of a callback: its first parameter gets the end of the run that called it."""
        try:
            found = None if run.origin.of is None else await first_run(self._store, RunQuery(ids=[run.origin.of]))
        except Exception as error:
            raise Unread(f"the run {run.origin.of} cannot be read: {error}") from error
        names = list(signature.parameters.parameters)
        return msgspec.json.encode({names[0]: ending_of(run.args, found)} if names else {})

    def fail_on(self, run: Run) -> FailOn | None:
        """Return the `fail_on` of the run's flow, if it has one."""
        return None if run.member is None else self._code(run.member).fail_on

    def _code(self, member: Member) -> StepCode:
        return self._flows.steps.get(f"{member.group.rpartition('@')[0]}/{member.step}", StepCode())

    async def _results(self, member: Member) -> dict[str, bytes]:
        try:
            return {step: await earlier_result(self._store, member, need) for step, need in member.takes.items()}
        except Forgotten:
            raise
        except Exception as error:
            raise Unread(f"the results of the steps before {member.step} cannot be read: {error}") from error


async def earlier_result(store: Reads, member: Member, need: str) -> bytes:
    """Return the result of the last success of a step before; null if that step failed or was cancelled. Raise
    Forgotten if its run is no longer kept."""
    name = needs.named(need)
    assert name is not None
    query = RunQuery(group=member.group, task=name.task, key=name.key, state=[State.SUCCEEDED], limit=1)
    run = await first_run(store, query) or await first_run(store, replace(query, state=()))
    if run is None:
        raise Forgotten(
            f"the result of {name.key} is forgotten (period {once.period_of(name.key)}); run that step again"
        )
    return run.result if run.state is State.SUCCEEDED and run.result is not None else b"null"


def _encoded(arguments: Mapping[str, Any]) -> dict[str, Raw]:
    return {name: Raw(encode_result(value)) for name, value in arguments.items()}


async def _answer(value: Answer) -> Any:
    return await value if inspect.isawaitable(value) else value
