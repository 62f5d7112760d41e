"""Calls the handler of a run: resolve → bind → call → outcome. Whatever happens becomes exactly one Outcome."""

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from rota.domain import codec
from rota.domain.ended import ENDED
from rota.domain.lifecycle import (
    BadResult,
    Crashed,
    Discarded,
    Failed,
    Outcome,
    Released,
    Skipped,
    Succeeded,
    TimedOut,
    Unbindable,
)
from rota.domain.policy import Retry
from rota.domain.results import FailOn, chosen
from rota.domain.run import Failure, storable
from rota.engine.executors.process import (
    ChildBadResult,
    ChildDied,
    ChildRaised,
    ChildStopped,
    ChildTimeout,
    ChildUnbindable,
    ProcessExecutor,
)
from rota.engine.executors.thread import ThreadExecutor
from rota.engine.executors.time_limit import first_within
from rota.engine.fans import FanStopped, Unspread, spread_here
from rota.engine.handler import Handler
from rota.engine.injection import Injection, Overrides, Shared
from rota.engine.middleware import around
from rota.engine.outcomes import MESSAGE_LIMIT, failure, raised, returned, verdict_from, with_wait
from rota.engine.seats import Seat, Stop
from rota.engine.steps import Forgotten, NotKnown, NotWanted, Steps, Unread
from rota.engine.world import REAL, World
from rota.errors import StoreError

log = logging.getLogger("rota")

PATIENCE = 30.0
"""Seconds that a handler told to stop has before its run is settled without it."""
CLEANUP = 5.0
"""Seconds that a handler past its timeout has for its own cleanup, before its run is settled without it."""

Arguments = tuple[list[Any], dict[str, Any]]


class Runner:
    def __init__(
        self,
        handlers: Mapping[str, Handler],
        world: World = REAL,
        steps: Steps | None = None,
        overrides: Callable[[], Overrides] = dict,
    ) -> None:
        """`overrides` says which dependencies are replaced by others now."""
        self.handlers = handlers
        self.stopwatch = world.stopwatch
        self._steps = steps
        self._now = world.monotonic
        self._threads = ThreadExecutor(ends=world.thread_ends)
        self._processes = ProcessExecutor()
        self._shared = Shared(self._threads.call if world.threads else None)
        self._injection = Injection(self._shared, overrides)
        self._plain = {name: handler for name, handler in handlers.items() if _is_plain(handler)}

    async def close(self) -> None:
        await self._shared.close()
        self._threads.close()
        await self._processes.close()

    def waiting(self, outcome: Failed | TimedOut, seat: Seat) -> Outcome:
        """Return `outcome` with the wait that a function of the task says, if the call is to be repeated."""
        handler = self.handlers.get(seat.run.task)
        return outcome if handler is None else with_wait(outcome, _retry(handler, seat), seat.run.failures + 1)

    async def outcome(self, seat: Seat) -> Outcome:
        handler = self.handlers.get(seat.run.task)
        if handler is None:
            return Released()
        prepared = seat.run.member is not None or seat.run.origin.kind == ENDED
        if prepared and (ended := await self._prepare(handler, seat)) is not None:
            return ended
        try:
            arguments = bind(handler, seat)
        except Exception as error:  # a type of the user's own may raise anything while it is read
            why = f"the stored arguments do not fit {handler.name}{handler.signature.parameters}: {error}"
            return Unbindable(Failure("InvalidArguments", storable(why, MESSAGE_LIMIT)))
        if prepared or handler.yields:
            self._prepare_fans(handler, seat, arguments)
        now = self._now()
        if seat.stop is not None or now >= seat.deadline:
            return Released()
        seat.called_at = now
        try:
            if handler.executor == "process":
                return await self._in_a_child(handler, seat)
            if handler.middleware:
                result = await around(
                    handler.middleware, seat.context, lambda: self._call_with(handler, arguments, seat)
                )
            else:
                result = await self._call(handler, arguments, seat)
            return await self._ended(result, handler, seat) if prepared else self._returned(result, handler, seat)
        except BaseException as error:  # SystemExit too: here it is one handler's failure
            return self.unsuccessful(error, seat)

    def plain_call(self, seat: Seat) -> Coroutine[Any, Any, Any] | None:
        """Return the call of a run that needs nothing but its arguments, to be awaited; None if `outcome` has to see to
        the run. Most runs are such, and their calls need no coroutine around that of the handler."""
        run, handler = seat.run, self._plain.get(seat.run.task)
        if handler is None or run.member is not None or run.policy.timeout is not None or run.origin.kind == ENDED:
            return None
        if not seat.args or seat.stop is not None or (now := self._now()) >= seat.deadline:
            return None
        try:
            arguments = handler.signature.decode_plain(seat.args)
        except Exception:  # `outcome` says what is wrong
            return None
        seat.called_at = now
        call: Coroutine[Any, Any, Any]
        call = handler.fn(seat.context, *arguments) if handler.takes_context else handler.fn(*arguments)
        return call

    def unsuccessful(self, error: BaseException, seat: Seat) -> Outcome:
        """Return the outcome of a call that raised `error`."""
        handler = self.handlers[seat.run.task]
        if isinstance(error, _TimeUp):
            return _too_late(handler, seat)
        if isinstance(error, asyncio.CancelledError):
            return Failed(failure(error), _retry(handler, seat)) if seat.stop is None else seat.stop.value
        if isinstance(error, GeneratorExit) and _is_abandoned(seat):
            raise error
        return _raised(error, handler, seat)

    async def _prepare(self, handler: Handler, seat: Seat) -> Outcome | None:
        """Make the arguments of a flow's step from the results of the steps before; an outcome if that fails."""
        seat.called_at = self._now()  # from now on the task can be cancelled
        timeout = asyncio.timeout(seat.run.policy.timeout)
        try:
            if self._steps is not None:
                async with timeout:
                    seat.args = await self._steps.arguments(seat.run, handler.signature)
        except asyncio.CancelledError as error:
            return Failed(failure(error), _retry(handler, seat)) if seat.stop is None else seat.stop.value
        except NotWanted as no:
            return Skipped(str(no))
        except NotKnown as why:
            return Unbindable(Failure("NotKnown", str(why)))
        except (Unread, StoreError) as error:
            log.warning("%s %s is given back: %s", seat.run.task, seat.run.id, error)
            return Released()
        except (Forgotten, FanStopped) as error:
            return Discarded(failure(error))
        except Exception as error:  # the user's own `when` or `args`
            return _too_late(handler, seat) if timeout.expired() else raised(error, _retry(handler, seat))
        return None

    def _call(self, handler: Handler, arguments: Arguments, seat: Seat) -> Awaitable[Any]:
        """Return the call, to be awaited. The usual one needs no coroutine around that of the handler."""
        if handler.executor == "loop" and handler.dependencies is None and seat.run.policy.timeout is None:
            called: Awaitable[Any] = handler.fn(*arguments[0], **arguments[1])
            return called
        return self._call_with(handler, arguments, seat)

    async def _call_with(self, handler: Handler, arguments: Arguments, seat: Seat) -> Any:
        """Call a handler in a thread, with what it needs, or with a timeout."""
        args, kwargs = arguments
        timeout, needs = seat.run.policy.timeout, handler.dependencies
        if handler.executor == "thread":
            work = partial(handler.fn, *args, **kwargs)
            if needs is not None:
                loop = asyncio.get_running_loop()
                call = self._injection.call_plain
                work = partial(call, handler.fn, needs, handler.signature, seat.context, arguments, loop)
            return await _watched(self._threads.call(partial(_in_thread, seat, work)), seat, timeout)
        if needs is None:
            called = handler.fn(*args, **kwargs)
        else:
            called = self._injection.called(handler.fn, needs, handler.signature, seat.context, arguments)
        if timeout is None:
            return await called
        ended = await _watched(asyncio.ensure_future(_caught(called)), seat, timeout)
        if isinstance(ended, _Raised):
            raise ended.error
        return ended

    async def _in_a_child(self, handler: Handler, seat: Seat) -> Outcome:
        """Call the handler in a child process, which decodes and encodes. If the child dies, only this run is lost."""
        value: Any = None
        try:
            if handler.middleware:
                value = await around(handler.middleware, seat.context, lambda: self._child_value(handler, seat))
                result = None
            else:
                result = await self._processes.call(handler, seat.context, seat.args, seat.run.policy.timeout)
        except ChildTimeout:
            return _too_late(handler, seat)
        except ChildDied as error:
            return Crashed(Failure("ChildDied", str(error), error.traceback))
        except ChildUnbindable as error:
            return Unbindable(Failure("InvalidArguments", str(error)))
        except ChildStopped as error:
            if not error.succeeded:
                raise
            result = error.result  # the handler finished before it saw the stop
        except ChildBadResult as error:
            return BadResult(Failure("ChildBadResult", str(error)))
        except ChildRaised as error:
            asked = verdict_from(*error.verdict, error.failure) if error.verdict else None
            return asked or Failed(error.failure, _retry(handler, seat).for_names(error.kind_names))
        if seat.stop is not None and seat.context.noticed:
            stopped: Outcome = seat.stop.value
            return stopped
        if handler.middleware:
            return await self._ended(value if result is None else _decoded(handler, result), handler, seat)
        if self._reader(handler, seat) is None and not _spreads(seat):
            return Succeeded(result)
        return await self._ended(None if result is None else _decoded(handler, result), handler, seat)

    async def _child_value(self, handler: Handler, seat: Seat) -> Any:
        """Return the result of a child as a value, for middleware."""
        result = await self._processes.call(handler, seat.context, seat.args, seat.run.policy.timeout)
        return None if result is None else _decoded(handler, result)

    async def _ended(self, result: object, handler: Handler, seat: Seat) -> Outcome:
        """Return the outcome of a call that returned `result`. If its run is to make children of the result, the number
        of children is the result that is stored."""
        member, fans = seat.run.member, None if self._steps is None else self._steps.fans
        if fans is None or member is None or member.spreads is None:
            return self._returned(result, handler, seat)
        if self._reader(handler, seat) is not None:
            judged = self._returned(result, handler, seat)
            if not isinstance(judged, Succeeded):
                return judged
        return Succeeded(b"%d" % await fans.spread(seat.context, member.spreads, result))

    def _prepare_fans(self, handler: Handler, seat: Seat, arguments: Arguments) -> None:
        """Let a gather read its results. Let a handler that yields put children meanwhile, unless something is to see
        the whole list first: middleware, or what judges the result."""
        member, fans = seat.run.member, None if self._steps is None else self._steps.fans
        spread = None
        if fans is not None and member is not None:
            if member.gathers is not None:
                fans.attach((*arguments[0], *arguments[1].values()))
            if member.spreads is not None and not handler.middleware and self._reader(handler, seat) is None:
                spread = fans.begin(seat.context, member.spreads)
        if handler.yields:
            spread_here.set(spread)

    def _returned(self, result: object, handler: Handler, seat: Seat) -> Outcome:
        return returned(result, self._reader(handler, seat), seat.context.warn)

    def _reader(self, handler: Handler, seat: Seat) -> FailOn | None:
        """Return what judges the result: the task's `fail_on`, or else that of the run's flow."""
        if seat.run.member is None or self._steps is None:
            return handler.fail_on
        return chosen(self._steps.fail_on(seat.run), handler.fail_on)


def _is_plain(handler: Handler) -> bool:
    """Return whether the calls of this handler may need nothing but their arguments."""
    on_loop = handler.executor == "loop" and inspect.iscoroutinefunction(handler.fn) and handler.signature.plain
    alone = handler.dependencies is None and not handler.middleware
    return on_loop and alone and not handler.yields and handler.fail_on is None


def _decoded(handler: Handler, result: bytes) -> Any:
    """Return the result of a child as its annotation says, or as plain JSON: a failure often has another shape."""
    try:
        return handler.signature.decode_result(result)
    except Exception:  # a type of the user's own may raise anything while it is read
        return msgspec.json.decode(result)


def _spreads(seat: Seat) -> bool:
    return seat.run.member is not None and seat.run.member.spreads is not None


def _is_abandoned(seat: Seat) -> bool:
    """Return whether the coroutine of this call is being closed because nobody runs it any more: its loop ended under
    it, or a simulation crashed. Such a close throws GeneratorExit into the handler, which says nothing about the
    handler; it comes from the garbage collector, outside the task of the seat."""
    try:
        return asyncio.current_task() is not seat.task
    except RuntimeError:  # no event loop runs here
        return True


def _raised(error: BaseException, handler: Handler, seat: Seat) -> Outcome:
    if isinstance(error, Unspread):
        log.warning("%s %s is given back: %s", seat.run.task, seat.run.id, error)
        return Released()
    return raised(error, _retry(handler, seat))


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error


async def _caught(call: Awaitable[Any]) -> Any:
    """Return the result of `call`, or its exception as a value: a SystemExit that leaves its task would end the event
    loop."""
    try:
        return await call
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return _Raised(error)


class _TimeUp(TimeoutError):
    """The timeout of the run, which is not a TimeoutError that the handler raised. Middleware sees it."""


def _in_thread(seat: Seat, work: Callable[[], Any]) -> Any:
    """Call a handler, and note where: if it never ends, people want to see its stack."""
    seat.thread = threading.get_ident()
    return work()


def _retry(handler: Handler, seat: Seat) -> Retry:
    """Return the retry that counts: the one that was submitted with the run, else the one in the code of the task."""
    policy = seat.run.policy
    if policy.overridden_retry:  # an operator's, with the rules of the code: no store has their exceptions
        return replace(policy.retry, rules=handler.retry.rules, after=handler.retry.after)
    return policy.retry if policy.own_retry else handler.retry


def _too_late(handler: Handler, seat: Seat) -> TimedOut:
    limit = (seat.run.policy.timeout or 0.0) + seat.context.extended
    late = Failure("TimeoutError", f"took longer than {limit:g} s")
    return TimedOut(late, _retry(handler, seat).for_error(TimeoutError()))


async def _watched(call: asyncio.Future[Any], seat: Seat, timeout: float | None) -> Any:
    """Return the result of `call`, awaited for at most `timeout` and the time that the handler adds. A call that does
    not end by then outlives its run."""
    on_loop = isinstance(call, asyncio.Task)
    try:
        if not await first_within((call,), timeout, seat.context):
            seat.context.stop()
            if on_loop:
                call.cancel()
                await asyncio.wait((call,), timeout=CLEANUP)
            raise _TimeUp
    except asyncio.CancelledError:
        if on_loop:
            call.cancel()
        if seat.stop is Stop.LOST:
            raise
        done, _ = await asyncio.wait((call,), timeout=PATIENCE)
        if not done or (not on_loop and seat.context.noticed):
            raise  # the call ignores the stop, or returned early because of it: neither is a success
    finally:
        if not call.done():
            seat.overdue = call
        elif not call.cancelled():
            call.exception()  # marks the exception as seen, also where the result is not used
    return call.result()


def bind(handler: Handler, seat: Seat) -> Arguments:
    """Return the stored arguments as this version of the handler takes them."""
    if not seat.args:
        codec.decode(seat.run.body)  # raises with the reason why it could not be read
    args, kwargs = handler.signature.decode(seat.args)
    return [seat.context, *args] if handler.takes_context else args, kwargs
