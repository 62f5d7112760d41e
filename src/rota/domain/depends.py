"""Depends: what a handler needs beside its arguments, read from its signature when the task is defined.

A dependency is a function that a worker calls before the handler: its value is a parameter of the handler, and never an
argument of a run. FastAPI's own `Depends` is read too. It is told by the name of its module, so that FastAPI need not
be there.
"""

import functools
import inspect
from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin

from msgspec import Struct

from rota.domain.arguments import type_hints

Kind: TypeAlias = Literal["value", "async", "manager", "async manager"]
"""How a dependency is made: by a call, an awaited call, or by a context manager, which ends it as well."""

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
FASTAPI = "fastapi.params"
OF_REQUESTS = ("fastapi.", "starlette.")
DEEPEST = 50
"""How deep dependencies may need each other."""


class DependsMarker(Struct, frozen=True):
    """What `Depends(…)` puts into a signature."""

    dependency: Callable[..., Any] | None
    use_cache: bool = True
    shared: bool = False
    theirs: bool = False
    """Whether it is FastAPI's."""


class CallArgumentMarker(Struct, frozen=True):
    """What `CallArgument(…)` puts into a signature."""

    name: str | None = None


def Depends(  # noqa: N802 - it is written as a type, like FastAPI's
    dependency: Callable[..., Any] | None = None, *, use_cache: bool = True, shared: bool = False
) -> Any:
    """Say that a parameter of a handler is the value of `dependency`, which the worker calls:
    `db: DB = Depends(get_db)`, or `db: Annotated[DB, Depends(get_db)]`.

    `dependency` is a plain or async function, one that yields, one under `@contextmanager` or `@asynccontextmanager`,
    or a class; by default the annotation. Its parameters may be dependencies, the Context and `CallArgument()`. It is
    called once for a call of the handler, and ended after it, in reverse order; with `use_cache=False` once for each
    parameter. With `shared=True`, a worker calls it once, when it is first needed, and ends it when the worker stops.
    """
    if dependency is not None and not callable(dependency):
        raise TypeError(f"Depends({dependency!r}): a function, without the brackets of a call")
    return DependsMarker(dependency, use_cache, shared)


def CallArgument(name: str | None = None) -> Any:  # noqa: N802 - it is written as a type, like Depends
    """Say that a parameter of a dependency is an argument of the call, by default the argument of the same name."""
    return CallArgumentMarker(name)


class FromContext(Struct, frozen=True):
    """A parameter that is the Context of the run."""


class FromArgument(Struct, frozen=True):
    """A parameter that is an argument of the call."""

    name: str


class Dependency(Struct, frozen=True, eq=False):
    """One dependency, with all that it needs itself."""

    name: str
    key: Hashable
    """What two uses of one function have in common."""
    make: Callable[..., Any]
    kind: Kind
    cached: bool
    shared: bool
    theirs: bool
    needs: "Mapping[str, Dependency | FromContext | FromArgument]"

    @property
    def is_async(self) -> bool:
        return self.kind in ("async", "async manager")


class Dependencies(Struct, frozen=True, eq=False):
    """The dependencies of one handler."""

    by_name: Mapping[str, Dependency]
    """Those that are parameters of the handler."""
    order: tuple[str, ...]
    """The positional parameters of the handler, dependencies among them."""
    around: tuple[Dependency, ...] = ()
    """Those that the handler has no parameter for: they are made first and ended last."""
    arguments: bool = False
    """Whether one of them reads an argument of the call."""

    def every(self) -> list[Dependency]:
        """Return all of them, also those that others need."""
        left, found = [*self.around, *self.by_name.values()], list[Dependency]()
        while left:
            found.append(left.pop())
            left.extend(need for need in found[-1].needs.values() if isinstance(need, Dependency))
        return found


class Reader:
    """Reads dependencies. `context` is the type of the Context; `arguments` are the names of the call's arguments, if
    they are known."""

    def __init__(self, context: type, arguments: Collection[str] | None = None) -> None:
        self.context = context
        self.arguments = arguments

    def read(self, marker: DependsMarker, hint: Any, path: tuple[str, ...] = ()) -> Dependency:
        """Return the dependency that `marker` says, at a parameter annotated `hint`; raise ValueError if a worker
        could not make it."""
        of = marker.dependency if marker.dependency is not None else _bare(hint)
        if of is None or of is Any or not callable(of):
            raise ValueError(f"Depends() needs a function, or a parameter with a class as annotation: not {hint!r}")
        key, of = _key_of(of), getattr(of, "__rota_depends__", of)
        name = _name_of(of)
        path = (*path, name)
        if len(path) > DEEPEST:
            raise ValueError(f"the dependencies {' → '.join(path[:5])} … need each other without end")
        needs = self._needs(of, path, marker)
        kind, make = _kind_of(of)
        return Dependency(name, key, make, kind, marker.use_cache, marker.shared, marker.theirs, needs)

    def _needs(
        self, of: Callable[..., Any], path: tuple[str, ...], marker: DependsMarker
    ) -> dict[str, Dependency | FromContext | FromArgument]:
        hints, found = _hints_of(of), dict[str, Dependency | FromContext | FromArgument]()
        for parameter in _parameters_of(of):
            need = self._need(parameter, hints.get(parameter.name, parameter.empty), path, marker)
            if need is None:
                continue
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise ValueError(f"{_named(path)}: its parameter {parameter.name} cannot be given by name")
            if marker.shared and not (isinstance(need, Dependency) and need.shared):
                raise ValueError(
                    f"{_named(path)} is shared by all runs of a worker, but its parameter {parameter.name} is of one "
                    "run; make that shared too, or this not"
                )
            found[parameter.name] = need
        return found

    def _need(
        self, parameter: inspect.Parameter, hint: Any, path: tuple[str, ...], marker: DependsMarker
    ) -> Dependency | FromContext | FromArgument | None:
        """Return what the parameter of a dependency gets; None for its own default."""
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return None
        if (inner := marker_of(parameter, hint)) is not None:
            return self.read(inner, hint, path)
        if (argument := _marker_in(parameter, hint, CallArgumentMarker)) is not None:
            name = argument.name or parameter.name
            if self.arguments is not None and name not in self.arguments:
                raise ValueError(f"{_named(path)}: CallArgument({name!r}), but the task has no such argument")
            return FromArgument(name)
        if hint is self.context:
            return FromContext()
        if (wanted := _of_a_request(parameter, hint)) is not None:
            raise ValueError(
                f"{_named(path)} needs a request: its parameter {parameter.name} is of the type {wanted}, and a worker "
                "has none; give the task what it needs as an argument, or use a dependency without a request"
            )
        if marker.theirs:
            raise ValueError(
                f"{_named(path)} needs a request: FastAPI reads its parameter {parameter.name} from the query, and a "
                "worker has none; use a dependency without it, or rota.Depends, which takes the default"
            )
        if parameter.default is parameter.empty:
            raise ValueError(
                f"{_named(path)}: nothing gives its parameter {parameter.name} a value; give it a default, Depends(…), "
                "CallArgument() or the annotation Context"
            )
        return None


def dependencies_of(
    fn: Callable[..., Any], context: type, arguments: Collection[str], around: Collection[Callable[..., Any]] = ()
) -> Dependencies | None:
    """Return what the handler `fn` needs beside its `arguments`; None if nothing. `around` are dependencies of every
    handler."""
    reader = Reader(context, arguments)
    hints = type_hints(fn)
    parameters = list(inspect.signature(fn).parameters.values())
    found = dict[str, Dependency]()
    for parameter in parameters:
        hint = hints.get(parameter.name, parameter.empty)
        if (marker := marker_of(parameter, hint)) is not None:
            found[parameter.name] = reader.read(marker, hint)
    first = tuple(reader.read(DependsMarker(each), None) for each in around)
    if not found and not first:
        return None
    order = tuple(p.name for p in parameters if p.kind in POSITIONAL)
    made = Dependencies(found, order, first)
    reads = any(isinstance(need, FromArgument) for each in made.every() for need in each.needs.values())
    return Dependencies(found, order, first, reads)


def hidden_parameters(fn: Callable[..., Any]) -> frozenset[str]:
    """Return the names of the parameters of `fn` that are dependencies: callers do not give them."""
    parameters = inspect.signature(fn).parameters.values()
    if not any(p.default is not p.empty or p.annotation is not p.empty for p in parameters):
        return frozenset()
    hints = type_hints(fn)
    return frozenset(p.name for p in parameters if marker_of(p, hints.get(p.name, p.empty)) is not None)


def check_executor(dependencies: Dependencies, executor: str, on_loop: bool) -> None:
    """Raise ValueError for a dependency that a child process could not make. `on_loop`: the handler is async."""
    if executor != "process":
        return
    for each in dependencies.every():
        if each.is_async and (each.shared or not on_loop):
            why = "shared" if each.shared else "for a plain handler"
            raise ValueError(
                f"the dependency {each.name} is async and {why}, but a child process has an event loop only while it "
                'calls an async handler; write a plain function, or leave out executor="process"'
            )


def marker_of(parameter: inspect.Parameter, hint: Any) -> DependsMarker | None:
    """Return the `Depends(…)` of a parameter, ours or FastAPI's."""
    ours: DependsMarker | None = _marker_in(parameter, hint, DependsMarker)
    if ours is not None:
        return ours
    for value in (parameter.default, *_extras(hint)):
        if any(kind.__name__ == "Depends" and kind.__module__ == FASTAPI for kind in type(value).__mro__):
            return DependsMarker(value.dependency, value.use_cache, theirs=True)
    return None


def _marker_in(parameter: inspect.Parameter, hint: Any, kind: type[Any]) -> Any:
    return next((value for value in (parameter.default, *_extras(hint)) if isinstance(value, kind)), None)


def _extras(hint: Any) -> tuple[Any, ...]:
    return tuple(hint.__metadata__) if get_origin(hint) is Annotated else ()


def _bare(hint: Any) -> Any:
    """Return a hint without Annotated; the class of a generic class."""
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return None if hint is inspect.Parameter.empty else hint


def _of_a_request(parameter: inspect.Parameter, hint: Any) -> str | None:
    """Return the name of what FastAPI would read from the request for this parameter, if it says so itself."""
    for value in (parameter.default, *_extras(hint)):
        if type(value).__module__ == FASTAPI:
            return type(value).__name__
    bare = _bare(hint)
    for kind in (bare, *get_args(bare)):
        for base in getattr(kind, "__mro__", ()):
            if base.__module__.startswith(OF_REQUESTS):
                return str(kind.__name__)
    return None


def _kind_of(of: Callable[..., Any]) -> tuple[Kind, Callable[..., Any]]:
    code = _code_of(of)
    if inspect.isasyncgenfunction(code):
        return "async manager", asynccontextmanager(of)
    if inspect.isgeneratorfunction(code):
        return "manager", contextmanager(of)
    made_by = getattr(code, "__code__", None)
    if made_by is _ASYNC_MANAGER:
        return "async manager", of
    if made_by is _MANAGER:
        return "manager", of
    return ("async" if inspect.iscoroutinefunction(code) else "value"), of


def _code_of(of: Any) -> Any:
    """Return the function that a call of `of` runs."""
    while isinstance(of, functools.partial):
        of = of.func
    return of if inspect.isroutine(of) or isinstance(of, type) else type(of).__call__


def _hints_of(of: Any) -> dict[str, Any]:
    code = _code_of(of)
    if isinstance(code, type):
        code = inspect.getattr_static(code, "__init__")
    return type_hints(code) if hasattr(inspect.unwrap(code), "__annotations__") else {}


def _parameters_of(of: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(of).parameters.values())
    except ValueError:  # a class of C, which does not say
        return []


def _key_of(of: Callable[..., Any]) -> Hashable:
    try:
        hash(of)
    except TypeError:
        return id(of)
    return of


def _name_of(of: Any) -> str:
    while isinstance(of, functools.partial):
        of = of.func
    return str(getattr(of, "__qualname__", type(of).__qualname__)).rpartition("<locals>.")[2]


def _named(path: tuple[str, ...]) -> str:
    return f"the dependency {' → '.join(path)}"


def _nothing() -> Any:
    yield


_MANAGER = contextmanager(_nothing).__code__
_ASYNC_MANAGER = asynccontextmanager(_nothing).__code__
