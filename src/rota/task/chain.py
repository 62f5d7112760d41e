"""Chain: calls that follow each other: `(a.bind(1) >> b >> [c, d]).submit()`."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from rota.client.client import Client
from rota.client.handle import RunHandle
from rota.client.portal import Portal
from rota.domain.flow import CHAIN, KEPT, StepSpec, as_step
from rota.errors import InvalidArguments, InvalidOptions
from rota.task.call import Call as EncodedCall
from rota.task.definition import call_of, definition_of
from rota.task.ids import new_id

if TYPE_CHECKING:
    from rota.task.task import Bound, Task

Call: TypeAlias = "Bound[Any] | Task[..., ..., Any, Any]"
Link: TypeAlias = "Call | Sequence[Call]"


class Chain:
    """Stages of calls. All calls of a stage start when all calls of the stage before it have succeeded.

    A parameter that has the name of a task of the stage before, and no argument in the call, gets the result of that
    task. Nothing runs until `submit`.
    """

    def __init__(self, stages: tuple[tuple[Call, ...], ...]) -> None:
        self._stages = stages

    def __rshift__(self, following: Link) -> "Chain":
        stage = tuple(following) if isinstance(following, Sequence) else (following,)
        if not stage:
            raise InvalidOptions("a stage of a chain is empty; give it one task at least")
        return Chain((*self._stages, stage))

    async def submit(self) -> "ChainHandle":
        """Submit all calls in one transaction. They are durable when `submit` returns; the first stage may start."""
        specs, bound = self._specs()
        period = new_id()
        calls = _with_headers(specs, bound)
        runs = [
            replace(as_step(calls[name].to_run(), spec, specs, CHAIN, period, None), expires_after=KEPT)
            for name, spec in specs.items()
        ]
        answers = (await self._client.put(runs)).items
        handles = {
            name: definition_of(bound[name].task).handle(answer) for name, answer in zip(specs, answers, strict=True)
        }
        last = list(specs)[-len(self._stages[-1]) :]
        return ChainHandle(handles, last, len(last) == 1, self._client.portal)

    def submit_sync(self) -> "ChainHandle":
        """`submit` from synchronous code; raises if an event loop runs here."""
        return definition_of(_task_of(self._stages[0][0])).submitter.portal().call(self.submit)

    @property
    def _client(self) -> Client:
        return definition_of(_task_of(self._stages[0][0])).submitter.client()

    def _specs(self) -> tuple[dict[str, StepSpec], dict[str, "Bound[Any]"]]:
        specs: dict[str, StepSpec] = {}
        calls: dict[str, Bound[Any]] = {}
        before: tuple[str, ...] = ()
        for stage in self._stages:
            names: list[str] = []
            for call in stage:
                name = _free_name(_task_of(call).name, specs)
                calls[name], takes = bind_step(call, {}, before)
                specs[name] = StepSpec(name=name, task=calls[name].task.name, after=before, takes=takes)
                names.append(name)
            before = tuple(names)
        return specs, calls


class ChainHandle:
    """A submitted chain: `steps` has a handle for each call."""

    def __init__(self, steps: dict[str, RunHandle[Any]], last: list[str], single: bool, portal: Portal) -> None:
        self.steps = steps
        self._portal = portal
        self._last = last
        self._single = single

    def __repr__(self) -> str:
        return f"<ChainHandle {' '.join(self.steps)}>"

    async def result(self, timeout: float | None = None) -> Any:
        """Return the result of the last call; a list of results if the last stage has several calls.

        Raises RunFailed or RunCancelled as soon as a call of the chain has failed or was cancelled. Raises TimeoutError
        after `timeout` seconds; the chain continues then.
        """
        waits = {name: asyncio.ensure_future(handle.result()) for name, handle in self.steps.items()}
        try:
            async with asyncio.timeout(timeout):
                results = dict(zip(waits, await asyncio.gather(*waits.values()), strict=True))
        finally:
            for wait in waits.values():
                wait.cancel()
            await asyncio.gather(*waits.values(), return_exceptions=True)
        found = [results[name] for name in self._last]
        return found[0] if self._single else found

    async def cancel(self, note: str | None = None) -> int:
        """Cancel the runs that have not ended; returns how many."""
        return sum([await handle.cancel(note) for handle in reversed(self.steps.values())])

    def result_sync(self, timeout: float | None = None) -> Any:
        """`result` from synchronous code; raises if an event loop runs here."""
        return self._portal.call(lambda: self.result(timeout))

    def cancel_sync(self, note: str | None = None) -> int:
        """`cancel` from synchronous code; raises if an event loop runs here."""
        return self._portal.call(lambda: self.cancel(note))


def _task_of(call: Call) -> "Task[..., ..., Any, Any]":
    from rota.task.task import Bound

    return call.task if isinstance(call, Bound) else call


def _with_headers(specs: Mapping[str, StepSpec], bound: "Mapping[str, Bound[Any]]") -> dict[str, EncodedCall]:
    """Return the calls of the steps. A step gets the headers of the steps before it, which are earlier in `specs`."""
    calls: dict[str, EncodedCall] = {}
    for name, spec in specs.items():
        calls[name] = call_of(bound[name])
        for parent in spec.after:
            if headers := calls[parent].options.headers:
                calls[name] = calls[name].with_headers(headers)
    return calls


def _free_name(name: str, taken: Mapping[str, object]) -> str:
    names = [name, *(f"{name}-{number}" for number in range(2, len(taken) + 3))]
    return next(free for free in names if free not in taken)


def bind_step(
    call: Call, given: Mapping[str, Any], parents: Sequence[str], filled_later: bool = False
) -> tuple["Bound[Any]", tuple[str, ...]]:
    """Return the bound call of a step, and the parents whose results it takes: those that a parameter is named after.

    A bound call takes no results. `filled_later`: a function gives the missing arguments when the step starts.
    """
    from rota.task.task import Bound

    task = _task_of(call)
    own = definition_of(task)
    if own.once is not None:
        raise InvalidOptions(f"{own.name} has a once= of its own, which does not hold for a step; submit it by itself")
    if isinstance(call, Bound):
        if call_of(call).options.id is not None:
            raise InvalidOptions(f"{own.name}: an id of its own is for a submit; leave out id= for a step")
        if given:
            raise InvalidOptions(f"{own.name} is bound already; leave out args=, or give the task itself")
        return call, ()
    signature = own.signature
    takes = tuple(name for name in parents if name in signature.parameters.parameters and name not in given)
    if not takes and not filled_later:
        return Bound(task, own.call((), dict(given))), ()
    missing = [] if filled_later else [name for name in signature.required if name not in (*takes, *given)]
    if missing:
        raise InvalidArguments(
            f"{own.name}: nothing gives its parameter {missing[0]!r}: neither args= nor a step before it by that name"
        )
    return Bound(task, own.partial_call(dict(given))), takes
