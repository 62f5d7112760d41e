"""Chain: calls that follow each other: `(a.bind(1) >> b >> [c, d]).submit()`."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast, overload

from msgspec import Struct
from msgspec.structs import replace

from rota.client.client import Client
from rota.client.handle import RunHandle, accept, any_json
from rota.domain.fan import CHUNK, MOST, child_id, gather_id, need_of
from rota.domain.flow import CHAIN, KEPT, StepSpec, as_step
from rota.domain.run import NewRun
from rota.errors import InvalidArguments, InvalidOptions
from rota.store import Command, RunQuery
from rota.task.call import Call as EncodedCall
from rota.task.definition import call_of, definition_of
from rota.task.fan_out import Each, Fanned, FanOut, fan_out_of, gathers_of
from rota.task.ids import new_id

if TYPE_CHECKING:
    from rota.task.task import Bound, Task

Call: TypeAlias = "Bound[Any] | Task[..., ..., Any, Any]"
Stage: TypeAlias = "tuple[Call, ...] | FanOut"
"""Calls that start together, or one call for each item of a list."""
X = TypeVar("X")
S = TypeVar("S")
R_co = TypeVar("R_co", covariant=True)


class Chain(Generic[R_co]):
    """Stages of calls. All calls of a stage start when all calls of the stage before it have succeeded.

    A parameter that has the name of a task of the stage before, and no argument in the call, gets the result of that
    task. The other results go to the parameters that have no argument and no default, by position. Nothing runs until
    `submit`.
    """

    def __init__(self, stages: tuple[Stage, ...]) -> None:
        self._stages = stages

    @overload
    def __rshift__(self: "Chain[Iterable[X]]", following: "Each[X, S]") -> "Fanned[S]": ...
    @overload
    def __rshift__(self: "Chain[AsyncIterator[X]]", following: "Each[X, S]") -> "Fanned[S]": ...
    @overload
    def __rshift__(self, following: "Task[..., ..., Any, S] | Bound[S]") -> "Chain[S]": ...
    @overload
    def __rshift__(self, following: Sequence[Call]) -> "Chain[list[Any]]": ...
    def __rshift__(self, following: Any) -> Any:
        if isinstance(following, Fanned):
            raise InvalidOptions("map() begins a chain; `>> task.each()` fans out what the task before it returns")
        if isinstance(following, Each):
            each = fan_out_of(following)  # pyright: ignore[reportUnknownArgumentType]
            if isinstance(self._stages[-1], FanOut) or len(self._stages[-1]) != 1:
                raise InvalidOptions(f"{each.task.name}: one task before each() gives the items, not a list of tasks")
            return Fanned[Any](self._stages, each)
        stage = tuple(cast("Sequence[Call]", following)) if isinstance(following, Sequence) else (following,)
        if not stage:
            raise InvalidOptions("a stage of a chain is empty; give it one task at least")
        return Chain[Any]((*self._stages, stage))

    async def submit(self) -> "ChainHandle[R_co]":
        """Submit all calls. They are durable when `submit` returns; the first stage may start. One transaction puts
        them, and up to 1,000 runs of a `map`; the other runs of the `map` follow, 1,000 at a time."""
        specs, bound, fans = self._specs()
        runs, made = _runs_of(specs, bound, fans)
        client = self._client
        for fan in made:
            await client.fan(fan.id, fan.total, fan.each.allowed)
        answers = (await client.put([*runs.values(), *_children(made, 0)])).items
        for answer in answers[len(runs) :]:
            accept(answer)
        await self._put_others(client, made)
        mappers = {fan.mapper for fan in made}
        handles = {
            name: RunHandle[Any](client, answer.run, any_json, answer)
            if name in mappers
            else definition_of(bound[name].task).handle(answer)
            for name, answer in zip(specs, answers, strict=False)
        }
        last = list(specs)[-len(self._stages[-1]) :] if not isinstance(self._stages[-1], FanOut) else []
        return ChainHandle(handles, last, len(last) == 1, client, [fan.id for fan in made])

    async def _put_others(self, client: Client, made: "Sequence[_MadeFan]") -> None:
        """Put the children of a `map` beyond the first CHUNK. If one is refused, the gather is cancelled: it would wait
        for ever."""
        for first in range(CHUNK, max([fan.total or 0 for fan in made], default=0), CHUNK):
            try:
                for answer in (await client.put(_children(made, first))).items:
                    accept(answer)
            except Exception:
                await client.control(Command.CANCEL, [gather_id(fan.id) for fan in made], "not all runs were put")
                raise

    def submit_sync(self) -> "ChainHandle[R_co]":
        """`submit` from synchronous code; raises if an event loop runs here."""
        return definition_of(self._first).submitter.portal().call(self.submit)

    @property
    def _client(self) -> Client:
        return definition_of(self._first).submitter.client()

    @property
    def _first(self) -> "Task[..., ..., Any, Any]":
        first = self._stages[0]
        return first.task if isinstance(first, FanOut) else _task_of(first[0])

    def _specs(self) -> tuple[dict[str, StepSpec], "dict[str, Bound[Any]]", "dict[str, _Fan]"]:
        """Return the steps, their calls, and the fans by the names of their gathers."""
        specs: dict[str, StepSpec] = {}
        calls: dict[str, Bound[Any]] = {}
        fans: dict[str, _Fan] = {}
        before: tuple[str, ...] = ()
        each: FanOut | None = None
        for stage in self._stages:
            if isinstance(stage, FanOut):
                each = stage
                continue
            names: list[str] = []
            for call in stage:
                name = _free_name(_task_of(call).name, specs)
                takes: tuple[str, ...] = ()
                places: dict[str, str] = {}
                if each is not None:
                    calls[name] = _partial(_task_of(call))
                    fans[name] = _Fan(each, before[0] if before else None)
                else:
                    calls[name], takes, places = _bind_link(call, before)
                task = calls[name].task.name
                specs[name] = StepSpec(name=name, task=task, after=before, takes=takes, places=places)
                names.append(name)
            before, each = tuple(names), None
        return specs, calls, fans


class _Fan(Struct, frozen=True):
    """A fan-out of a chain. `mapper` is the step whose result is the list; None: the list is known."""

    each: FanOut
    mapper: str | None


class _MadeFan(Struct, frozen=True):
    id: str
    each: FanOut
    mapper: str | None

    @property
    def total(self) -> int | None:
        return None if self.each.calls is None else len(self.each.calls)


def _runs_of(
    specs: Mapping[str, StepSpec], bound: "Mapping[str, Bound[Any]]", fans: Mapping[str, _Fan]
) -> tuple[dict[str, NewRun], list[_MadeFan]]:
    """Return the runs of the steps, and the fans with their ids."""
    period, calls = new_id(), _with_headers(specs, bound)
    spreading = {fan.mapper: fan.each for fan in fans.values()}
    runs: dict[str, NewRun] = {}
    made: list[_MadeFan] = []
    for name, spec in specs.items():
        needs: tuple[str, ...] = ()
        id = None
        if name in fans:
            fan = _MadeFan(_fan_id(fans[name], runs), fans[name].each, fans[name].mapper)
            made.append(fan)
            id = gather_id(fan.id)
            spec = replace(spec, gathers=gathers_of(fan.id, bound[name].task))
            needs = () if fan.total == 0 else (need_of(fan.id),)
        run = calls[name].to_run(id)
        if name in spreading:
            spec = replace(spec, spreads=spreading[name].spreads(run.id))
        step = as_step(run, spec, specs, CHAIN, period, None)
        runs[name] = replace(step, expires_after=KEPT, needs=(*step.needs, *needs))
    return runs, made


def _fan_id(fan: _Fan, runs: Mapping[str, NewRun]) -> str:
    return new_id() if fan.mapper is None else runs[fan.mapper].id


def _children(made: Sequence[_MadeFan], first: int) -> list[NewRun]:
    """Return CHUNK children of a list that is known, from the index `first` on."""
    return [child for fan in made for child in fan.each.children(fan.id, first, first + CHUNK)]


class ChainHandle(Generic[R_co]):
    """A submitted chain: `steps` has a handle for each call, but not for the runs of a fan-out."""

    def __init__(
        self, steps: dict[str, RunHandle[Any]], last: list[str], single: bool, client: Client, fans: Sequence[str]
    ) -> None:
        self.steps = steps
        self._client = client
        self._last = last
        self._single = single
        self._fans = fans

    def __repr__(self) -> str:
        return f"<ChainHandle {' '.join(self.steps)}>"

    async def result(self, timeout: float | None = None) -> R_co:
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
        found: Any = [results[name] for name in self._last]
        return found[0] if self._single else found  # type: ignore[no-any-return]

    async def cancel(self, note: str | None = None) -> int:
        """Cancel the runs that have not ended, also those of a fan-out; returns how many."""
        cancelled = sum([await handle.cancel(note) for handle in reversed(self.steps.values())])
        return cancelled + sum([await self._cancel_children(fan, note) for fan in self._fans])

    async def _cancel_children(self, fan: str, note: str | None) -> int:
        cancelled = 0
        for first in range(0, MOST, CHUNK):
            ids = [child_id(fan, index) for index in range(first, first + CHUNK)]
            found = (await self._client.runs(RunQuery(ids=ids, limit=CHUNK))).runs
            left = [run.id for run in found if not run.state.final]
            if left:
                cancelled += sum(map(bool, (await self._client.control(Command.CANCEL, left, note)).items))
            if len(found) < CHUNK:
                break
        return cancelled

    def result_sync(self, timeout: float | None = None) -> R_co:
        """`result` from synchronous code; raises if an event loop runs here."""
        return self._client.portal.call(lambda: self.result(timeout))

    def cancel_sync(self, note: str | None = None) -> int:
        """`cancel` from synchronous code; raises if an event loop runs here."""
        return self._client.portal.call(lambda: self.cancel(note))


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


def _partial(task: "Task[..., ..., Any, Any]") -> "Bound[Any]":
    from rota.task.task import Bound

    return Bound(task, definition_of(task).partial_call({}))


def _bind_link(call: Call, parents: Sequence[str]) -> tuple["Bound[Any]", tuple[str, ...], dict[str, str]]:
    """Return the bound call of a step of a chain, the parents whose results it takes by name, and those whose results
    it takes by position, by parameter."""
    from rota.task.task import Bound

    signature = definition_of(_task_of(call)).signature
    if isinstance(call, Bound):
        return *bind_step(call, {}, parents), {}
    named = [name for name in parents if name in signature.parameters.parameters]
    free = [name for name in signature.required if name not in named]
    places = dict(zip(free, (name for name in parents if name not in named), strict=False))
    bound, takes = bind_step(call, {}, parents, given_later=tuple(places))
    return bound, takes, places


def bind_step(
    call: Call,
    given: Mapping[str, Any],
    parents: Sequence[str],
    filled_later: bool = False,
    given_later: Sequence[str] = (),
) -> tuple["Bound[Any]", tuple[str, ...]]:
    """Return the bound call of a step, and the parents whose results it takes: those that a parameter is named after.

    A bound call takes no results. `filled_later`: a function gives the missing arguments when the step starts.
    `given_later`: parameters that get results by position.
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
    if not takes and not filled_later and not given_later:
        return Bound(task, own.call((), dict(given))), ()
    expected = (*takes, *given, *given_later)
    missing = [] if filled_later else [name for name in signature.required if name not in expected]
    if missing:
        raise InvalidArguments(
            f"{own.name}: nothing gives its parameter {missing[0]!r}: neither args= nor a step before it by that name"
        )
    return Bound(task, own.partial_call(dict(given))), takes
