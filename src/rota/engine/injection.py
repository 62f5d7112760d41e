"""Injection: makes the dependencies of a handler, calls it with them, and ends them in reverse order.

What a plain handler needs is made and ended in the handler's own thread: a connection may belong to one thread. Only
async dependencies of a plain handler are made on the event loop, each in a task that also ends it.
"""

import asyncio
import contextvars
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from typing import Any, Protocol, TypeAlias

from rota.domain.arguments import Signature
from rota.domain.depends import Dependencies, Dependency, DependsMarker, FromArgument, FromContext, Reader
from rota.engine.context import Context

log = logging.getLogger("rota")

CLEANUP = 10.0
"""Seconds that a shared dependency has to end when its worker stops."""

Overrides: TypeAlias = Mapping[Any, Callable[..., Any]]
"""Functions that are called in place of others."""
Off: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls a plain function away from the event loop."""


class SharedValues(Protocol):
    """The dependencies that all runs of a worker share."""

    async def get(self, dependency: Dependency) -> Any: ...

    def get_plain(self, dependency: Dependency, loop: asyncio.AbstractEventLoop | None) -> Any:
        """The same from the thread of a plain handler."""
        ...


class Call:
    """One call of a handler: what its dependencies can read, and their values so far."""

    def __init__(
        self, dependencies: Dependencies, signature: Signature, context: Context, args: Sequence[Any], kwargs: Any
    ) -> None:
        self.context = context
        self.values: dict[Hashable, Any] = {}
        self.given: Mapping[str, Any] = {}
        if dependencies.arguments:
            own = args[1:] if args and args[0] is context else args
            self.given = signature.all_arguments(own, kwargs)


class Injection:
    """For one worker. `overrides` says which functions stand in for others now: tests change that."""

    def __init__(self, shared: SharedValues, overrides: Callable[[], Overrides] = dict) -> None:
        self._shared = shared
        self._overrides = overrides
        self._replaced: dict[tuple[Hashable, Hashable], Dependency] = {}

    async def called(
        self,
        fn: Callable[..., Awaitable[Any]],
        dependencies: Dependencies,
        signature: Signature,
        context: Context,
        arguments: tuple[Sequence[Any], dict[str, Any]],
    ) -> Any:
        """Call an async handler. An exception of the handler passes through its dependencies, which cannot turn it into
        a success; an exception of a dependency that ends takes its place."""
        args, kwargs = arguments
        call, overrides, stack = (
            Call(dependencies, signature, context, args, kwargs),
            self._overrides(),
            AsyncExitStack(),
        )
        try:
            for each in dependencies.around:
                await self._value(each, call, stack, overrides)
            values = {
                name: await self._value(each, call, stack, overrides) for name, each in dependencies.by_name.items()
            }
            positional, named = arranged(dependencies, args, kwargs, values)
            result = await fn(*positional, **named)
        except GeneratorExit:  # the coroutine is thrown away together with its loop: nothing can be awaited any more
            raise
        except BaseException as error:
            await stack.__aexit__(type(error), error, error.__traceback__)
            raise
        await stack.aclose()
        return result

    async def _value(self, wanted: Dependency, call: Call, stack: AsyncExitStack, overrides: Overrides) -> Any:
        if overrides:
            wanted = self._in_place_of(wanted, overrides)
        if wanted.cached and wanted.key in call.values:
            return call.values[wanted.key]
        if wanted.shared:
            value = await self._shared.get(wanted)
        else:
            given = {
                name: await self._value(need, call, stack, overrides)
                if isinstance(need, Dependency)
                else _read(need, call)
                for name, need in wanted.needs.items()
            }
            match wanted.kind:
                case "value":
                    value = wanted.make(**given)
                case "async":
                    value = await wanted.make(**given)
                case "manager":
                    value = stack.enter_context(wanted.make(**given))
                case "async manager":
                    value = await stack.enter_async_context(wanted.make(**given))
        call.values[wanted.key] = value
        return value

    def call_plain(
        self,
        fn: Callable[..., Any],
        dependencies: Dependencies,
        signature: Signature,
        context: Context,
        arguments: tuple[Sequence[Any], dict[str, Any]],
        loop: asyncio.AbstractEventLoop | None,
    ) -> Any:
        """Call a plain handler in this thread. `loop` makes its async dependencies."""
        args, kwargs = arguments
        call, overrides, stack = Call(dependencies, signature, context, args, kwargs), self._overrides(), ExitStack()
        try:
            for each in dependencies.around:
                self._plain_value(each, call, stack, overrides, loop)
            values = {
                name: self._plain_value(each, call, stack, overrides, loop)
                for name, each in dependencies.by_name.items()
            }
            positional, named = arranged(dependencies, args, kwargs, values)
            result = fn(*positional, **named)
        except BaseException as error:
            stack.__exit__(type(error), error, error.__traceback__)
            raise
        stack.close()
        return result

    def _plain_value(
        self,
        wanted: Dependency,
        call: Call,
        stack: ExitStack,
        overrides: Overrides,
        loop: asyncio.AbstractEventLoop | None,
    ) -> Any:
        if overrides:
            wanted = self._in_place_of(wanted, overrides)
        if wanted.cached and wanted.key in call.values:
            return call.values[wanted.key]
        if wanted.shared:
            value = self._shared.get_plain(wanted, loop)
        else:
            given = {
                name: self._plain_value(need, call, stack, overrides, loop)
                if isinstance(need, Dependency)
                else _read(need, call)
                for name, need in wanted.needs.items()
            }
            if wanted.is_async:
                assert loop is not None  # check_executor refuses it at the definition
                value = _on_loop(loop, wanted, given, stack)
            elif wanted.kind == "manager":
                value = stack.enter_context(wanted.make(**given))
            else:
                value = wanted.make(**given)
        call.values[wanted.key] = value
        return value

    def _in_place_of(self, wanted: Dependency, overrides: Overrides) -> Dependency:
        found = None if isinstance(wanted.key, int) else overrides.get(wanted.key)
        if found is None:
            return wanted
        known = (wanted.key, found)
        if known not in self._replaced:
            marker = DependsMarker(found, wanted.cached, wanted.shared, wanted.theirs)
            self._replaced[known] = Reader(Context).read(marker, None)
        return self._replaced[known]


def _read(need: FromContext | FromArgument, call: Call) -> Any:
    if isinstance(need, FromContext):
        return call.context
    if need.name not in call.given:
        raise TypeError(f"CallArgument({need.name!r}): this call has no such argument")
    return call.given[need.name]


def arranged(
    dependencies: Dependencies, args: Sequence[Any], kwargs: dict[str, Any], values: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call with the dependencies at their places among them."""
    if not values:
        return list(args), kwargs
    left = iter(args)
    positional, named = list[Any](), {**kwargs, **values}
    for name in dependencies.order:
        positional.append(named.pop(name) if name in values else next(left))
    return [*positional, *left], named


# -- async dependencies of plain handlers, and shared ones -------------------------------------------------------------


class Lifetime:
    """An async context manager that one task enters and leaves, for users in other tasks and threads."""

    def __init__(self, manager: AbstractAsyncContextManager[Any], context: contextvars.Context | None = None) -> None:
        loop = asyncio.get_running_loop()
        self.entered: asyncio.Future[Any] = loop.create_future()
        self._leave: asyncio.Future[BaseException | None] = loop.create_future()
        self._task = loop.create_task(self._hold(manager), name="rota dependency", context=context)

    async def _hold(self, manager: AbstractAsyncContextManager[Any]) -> BaseException | None:
        """Return the exception of the end, if it raised one: no exception leaves this task."""
        try:
            value = await manager.__aenter__()
        except BaseException as error:
            if not self.entered.done():
                self.entered.set_exception(_carried(error))
                self.entered.exception()  # marks it as seen, also if nobody waits any more
            return None
        if not self.entered.done():
            self.entered.set_result(value)
        try:
            cause = await self._leave
        except asyncio.CancelledError as cancelled:
            cause = cancelled
        try:
            await manager.__aexit__(type(cause) if cause else None, cause, cause.__traceback__ if cause else None)
        except BaseException as raised:
            return raised
        return None

    async def leave(self, error: BaseException | None = None, seconds: float | None = None) -> None:
        """End the manager, and raise what that raises. After `seconds`, cancel it."""
        if not self._leave.done():
            self._leave.set_result(error)
        done, _ = await asyncio.wait((self._task,), timeout=seconds)
        if not done:
            self._task.cancel()
            raise TimeoutError(f"it did not end within {seconds:g} s")
        raised = None if self._task.cancelled() else self._task.result()
        if raised is not None and raised is not error:
            raise _carried(raised)


def _carried(error: BaseException) -> BaseException:
    """Return an exception that a future can carry to another task: SystemExit would end the event loop."""
    if isinstance(error, Exception | asyncio.CancelledError):
        return RuntimeError(f"StopIteration: {error.value!r}") if isinstance(error, StopIteration) else error
    return RuntimeError(f"{type(error).__name__}: {error}")


def _on_loop(loop: asyncio.AbstractEventLoop, wanted: Dependency, given: dict[str, Any], stack: ExitStack) -> Any:
    """Return the value of an async dependency, made on `loop`, to a thread."""

    async def enter() -> tuple[Any, Lifetime | None]:
        if wanted.kind == "async":
            return await wanted.make(**given), None
        lifetime = Lifetime(wanted.make(**given))
        return await lifetime.entered, lifetime

    value, lifetime = asyncio.run_coroutine_threadsafe(_guarded(enter()), loop).result()
    if lifetime is not None:

        def leave(kind: object, error: BaseException | None, trace: object) -> None:
            asyncio.run_coroutine_threadsafe(lifetime.leave(error), loop).result()

        stack.push(leave)
    return value


async def _guarded(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await work
    except BaseException as error:
        raise _carried(error) from error


class Shared:
    """The shared dependencies of an engine: each is made when a run first needs it, on the engine's loop."""

    def __init__(self, off: Off | None) -> None:
        """`off` calls plain functions, which may block; without it they are called here."""
        self._off = off
        self._context = contextvars.copy_context()  # what is shared belongs to no run
        self._lifetimes: dict[Hashable, Lifetime] = {}

    async def get(self, dependency: Dependency) -> Any:
        lifetime = self._lifetimes.get(dependency.key)
        if lifetime is None:
            lifetime = Lifetime(self._made(dependency), self._context.copy())
            self._lifetimes[dependency.key] = lifetime
        try:
            return await asyncio.shield(lifetime.entered)
        except BaseException:
            if lifetime.entered.done() and self._lifetimes.get(dependency.key) is lifetime:
                del self._lifetimes[dependency.key]  # the next run tries again
            raise

    def get_plain(self, dependency: Dependency, loop: asyncio.AbstractEventLoop | None) -> Any:
        assert loop is not None
        return asyncio.run_coroutine_threadsafe(self.get(dependency), loop).result()

    @asynccontextmanager
    async def _made(self, wanted: Dependency) -> AsyncGenerator[Any]:
        given = {name: await self.get(need) for name, need in wanted.needs.items() if isinstance(need, Dependency)}
        self._lifetimes[wanted.key] = self._lifetimes.pop(wanted.key)  # behind what it needs: the last is ended first
        match wanted.kind:
            case "async manager":
                async with wanted.make(**given) as value:
                    yield value
            case "async":
                yield await wanted.make(**given)
            case "manager":
                manager = wanted.make(**given)
                value = await self._called(manager.__enter__)
                try:
                    yield value
                finally:
                    await self._called(lambda: manager.__exit__(None, None, None))
            case "value":
                yield await self._called(lambda: wanted.make(**given))

    async def _called(self, work: Callable[[], Any]) -> Any:
        return work() if self._off is None else await self._off(work)

    async def close(self) -> None:
        """End all of them, the last first. One that fails to end is logged."""
        while self._lifetimes:
            key, lifetime = self._lifetimes.popitem()
            try:
                await lifetime.leave(seconds=CLEANUP)
            except Exception:
                log.exception("the shared dependency %s did not end well", getattr(key, "__qualname__", key))


class PlainShared:
    """The shared dependencies of a child process: plain functions."""

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}
        self._stack = ExitStack()

    async def get(self, dependency: Dependency) -> Any:
        return self.get_plain(dependency)

    def get_plain(self, dependency: Dependency, loop: asyncio.AbstractEventLoop | None = None) -> Any:
        if dependency.key not in self._values:
            needs = dependency.needs.items()
            given = {name: self.get_plain(need) for name, need in needs if isinstance(need, Dependency)}
            made = dependency.make(**given)
            value = self._stack.enter_context(made) if dependency.kind == "manager" else made
            self._values[dependency.key] = value
        return self._values[dependency.key]

    def close(self) -> None:
        self._stack.close()
