"""Fan-out: `resize.map(paths) >> gather` and `find.bind(dir) >> resize.each() >> gather`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast, get_origin

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from rota.domain import codec
from rota.domain.fan import MOST, Failures, Gathers, Spreads, allowed_of
from rota.domain.headers import merged
from rota.domain.intake import Options
from rota.domain.run import Callback, NewRun, Run, State
from rota.engine.gathered import Results
from rota.errors import InvalidArguments, InvalidOptions
from rota.task.call import Call
from rota.task.definition import Definition, definition_of

if TYPE_CHECKING:
    from rota.task.chain import Chain, Stage
    from rota.task.task import Task

X = TypeVar("X")
G = TypeVar("G")
Q = ParamSpec("Q")
X_contra = TypeVar("X_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class FanOut:
    """A run of the task for each item of a list: `calls`, if the list is known now, or what the task before it in a
    chain returns."""

    def __init__(
        self,
        task: "Task[..., ..., Any, Any]",
        options: Options,
        failures: Failures,
        args: Mapping[str, Any] | None,
        items: Iterable[Any] | None = None,
    ) -> None:
        self.task = task
        self._definition = definition_of(task)
        self._options = options
        self._args = dict(args or {})
        name = self._definition.name
        try:
            self.allowed = allowed_of(failures)
        except ValueError as error:
            raise InvalidOptions(f"{name}: {error}") from None
        if options.id is not None:
            raise InvalidOptions(f"{name}: an id of its own is for a submit; rota gives ids to the runs of a fan-out")
        if options.unique is not None:
            raise InvalidOptions(f"{name}: each item of a fan-out makes a run; leave out unique={options.unique!r}")
        if self._definition.once is not None:
            raise InvalidOptions(f"{name} has a once= of its own, which holds for no fan-out; submit it by itself")
        self._parameter = _parameter(self._definition, self._args)
        self.calls: list[Call] | None = None if items is None else self._calls_of(items)
        """The calls of a list that is known now."""

    def spreads(self, fan: str) -> Spreads:
        """Return what a run stores that makes children of its result."""
        run = self._definition.partial_call(self._args, self._options).to_run()
        body = codec.decode(run.body)
        policy = self._definition.spec.policy if body.policy is None else body.policy
        return Spreads(
            fan,
            run.task,
            bytes(body.args).decode(),
            policy,
            run.priority,
            run.queue,
            run.expires_after,
            run.expires_at,
            delay=run.delay,
            due_at=run.at,
            key=run.key,
            headers=dict(self._options.headers) if self._options.headers else None,
            on_end=msgspec.json.encode(self._options.callbacks(())).decode(),
        )

    def children(self, fan: str, first: int, last: int) -> list[NewRun]:
        """Return some of the children of a list that is known."""
        return [call.to_child(fan, first + at) for at, call in enumerate((self.calls or [])[first:last])]

    def _calls_of(self, items: Iterable[Any]) -> list[Call]:
        calls: list[Call] = []
        if isinstance(items, str | bytes | Mapping):
            raise InvalidArguments(f"{self.task.name}.map({items!r:.50}): give a list of items; for one, write [item]")
        for item in items:
            if len(calls) == MOST:
                raise InvalidArguments(f"{self.task.name}: more than {MOST:,} items; a fan-out has at most {MOST:,}")
            try:
                calls.append(self._definition.call((), self._args | {self._parameter: item}, self._options))
            except InvalidArguments as error:
                raise InvalidArguments(f"item {len(calls)}: {error}") from None
        return calls


class Each(Generic[X_contra, R_co]):
    """`resize.each()`: a run of the task for each item that the task before it in a chain returns or yields."""

    def __init__(self, fan_out: FanOut) -> None:
        self._fan_out = fan_out

    def __repr__(self) -> str:
        return f"<Each {self._fan_out.task.name}>"


def fan_out_of(each: Each[Any, Any]) -> FanOut:
    return each._fan_out  # pyright: ignore[reportPrivateUsage]


class Fanned(Generic[R_co]):
    """A chain whose last stage is a fan-out: `>> gather` says which task gets the results."""

    def __init__(self, stages: "tuple[Stage, ...]", fan_out: FanOut) -> None:
        self._stages = stages
        self._fan_out = fan_out

    def __repr__(self) -> str:
        return f"<Fanned {self._fan_out.task.name}>"

    def __rshift__(self, gather: "Task[..., Concatenate[Results[R_co], Q], Any, G]") -> "Chain[G]":
        """The task `gather` is called once, when all runs have ended, with their `Results`."""
        from rota.task.chain import Chain
        from rota.task.task import Task

        if not isinstance(cast("object", gather), Task):
            raise InvalidOptions(
                f"{self._fan_out.task.name}: one task follows a fan-out and gets its Results, as in "
                f"`{self._fan_out.task.name}.map(items) >> gather`, not {gather!r}"
            )
        results_parameter(gather)
        return Chain((*self._stages, self._fan_out, (gather,)))


def results_parameter(gather: "Task[..., ..., Any, Any]") -> str:
    """Return the parameter of a gather that gets the results; raise InvalidOptions if there is none, or another one
    that nothing gives."""
    definition = definition_of(gather)
    hints = definition.signature.hints
    found = [name for name, hint in hints.items() if hint is Results or get_origin(hint) is Results]
    if len(found) != 1:
        raise InvalidOptions(
            f"{definition.name} follows a fan-out: one of its parameters gets the results; "
            f"annotate it, as in `def {definition.name}(results: Results[int])`"
        )
    if missing := [name for name in definition.signature.required if name != found[0]]:
        raise InvalidOptions(f"{definition.name}: nothing gives its parameter {missing[0]!r}; give it a default")
    if definition.executor == "process":
        raise InvalidOptions(f"{definition.name} reads its results from the store; leave out executor='process'")
    return found[0]


def gathers_of(fan: str, gather: "Task[..., ..., Any, Any]") -> Gathers:
    return Gathers(fan, results_parameter(gather))


def spread_children(
    definition: Definition, run: Run, spreads: Spreads, items: Sequence[Any], first: int
) -> list[NewRun]:
    """Return the children that `run` makes of some items of its result; `first` is the index of the first one."""
    given = {name: msgspec.json.decode(raw) for name, raw in msgspec.json.decode(spreads.args, type=_RAWS).items()}
    parameter = _parameter(definition, given)
    own = {each.state: each for each in msgspec.json.decode(spreads.on_end, type=list[Callback])}
    options = Options(
        priority=spreads.priority,
        queue=spreads.queue,
        key=spreads.key,
        headers=merged(run.headers, spreads.headers) or None,
        on_success=own.get(State.SUCCEEDED),
        on_failure=own.get(State.FAILED),
        on_cancel=own.get(State.CANCELLED),
    )
    times: dict[str, Any] = {"delay": spreads.delay, "at": spreads.due_at}
    times |= {"expires_after": spreads.expires_after, "expires_at": spreads.expires_at}
    children: list[NewRun] = []
    for index, item in enumerate(items, first):
        try:
            new = definition.call((), given | {parameter: item}, options).to_child(spreads.fan, index)
        except InvalidArguments as error:
            raise InvalidArguments(f"item {index}: {error}") from None
        body = codec.with_policy(new.body, spreads.policy)
        children.append(replace(new, body=body, **times))
    return children


_RAWS = dict[str, Raw]


def _parameter(definition: Definition, args: Mapping[str, Any]) -> str:
    """Return the parameter that gets an item: the first one that `args` does not give."""
    free = [name for name in definition.signature.names if name not in args]
    if not free:
        raise InvalidOptions(f"{definition.name}: no parameter is left for the items; leave one out of args=")
    return free[0]
