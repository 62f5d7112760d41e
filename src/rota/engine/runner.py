"""One run through its steps: resolve → bind → call → outcome. Whatever happens becomes exactly one Outcome."""

import asyncio
import time
import traceback
from collections.abc import Awaitable, Mapping
from enum import Enum
from types import TracebackType
from typing import Any

from rota.domain import wire
from rota.domain.arguments import encode_result
from rota.domain.lifecycle import (
    BadResult,
    Cancelled,
    Failed,
    Interrupted,
    Outcome,
    Released,
    Succeeded,
    TimedOut,
    Unbindable,
)
from rota.domain.run import Failure, Run
from rota.engine.context import Context
from rota.engine.executors.thread import ThreadExecutor
from rota.engine.handler import Handler

TRACEBACK_LIMIT = 16_000
MESSAGE_LIMIT = 2_000


PATIENCE = 30.0
"""Seconds that a handler told to stop has before its run is settled without it."""
CLEANUP = 5.0
"""Seconds that a handler past its timeout has for its own cleanup, before its run is settled without it."""


class Stop(Enum):
    """Why a seat was told to stop, and what that makes of its run."""

    CANCEL = Cancelled()
    SHUTDOWN = Interrupted()
    LOST = Released()  # no longer ours: the store will refuse whatever we say


class Seat:
    """A run in the hands of this worker, from claim to outcome."""

    def __init__(self, run: Run, deadline: float) -> None:
        self.run = run
        self.context = Context(run)
        self.deadline = deadline  # by our monotonic clock: after it, the lease may be another's
        self.stop: Stop | None = None
        self.task: asyncio.Task[None] | None = None
        self.called_at: float | None = None
        self.overdue: asyncio.Future[Any] | None = None  # a call that outlives its run

    def tell(self, stop: Stop) -> None:
        """Ask the handler to end: by cancellation on the loop, by `ctx.stopping` in a thread.

        A task that has not begun must not be cancelled: it would end without ever leaving its seat.
        """
        if self.stop is None:
            self.stop = stop
            self.context.stop()
            if self.task is not None and self.called_at is not None:
                self.task.cancel()


class Runner:
    def __init__(self, handlers: Mapping[str, Handler], threads: ThreadExecutor) -> None:
        self._handlers = handlers
        self._threads = threads

    async def outcome(self, seat: Seat) -> Outcome:
        handler = self._handlers.get(seat.run.task)
        if handler is None:
            return Released()
        try:
            args, kwargs = bind(handler, seat)
        except Exception as error:  # a type of the user's own may raise anything while it is read
            why = f"the stored arguments do not fit {handler.name}{handler.signature.parameters}: {error}"
            return Unbindable(Failure("InvalidArguments", why[:MESSAGE_LIMIT]))
        if seat.stop is not None or time.monotonic() >= seat.deadline:
            return Released()
        seat.called_at = time.monotonic()
        try:
            result = await self._call(handler, args, kwargs, seat)
        except _TimeUp:
            late = Failure("TimeoutError", f"took longer than {seat.run.policy.timeout:g} s")
            return TimedOut(late, handler.retry.for_error(TimeoutError()))
        except asyncio.CancelledError as error:
            return Failed(_failure(error), handler.retry) if seat.stop is None else seat.stop.value
        except (
            KeyboardInterrupt,
            SystemExit,
        ) as error:  # meant for a process; here it is one handler's failure
            return Failed(_failure(error), handler.retry)
        except BaseException as error:
            return Failed(_failure(error), handler.retry.for_error(error))
        return kept(result)

    async def _call(self, handler: Handler, args: list[Any], kwargs: dict[str, Any], seat: Seat) -> Any:
        timeout = seat.run.policy.timeout
        if handler.executor == "thread":
            return await _watched(self._threads.call(lambda: handler.fn(*args, **kwargs)), seat, timeout)
        if timeout is None:
            return await handler.fn(*args, **kwargs)
        ended = await _watched(asyncio.ensure_future(_caught(handler.fn(*args, **kwargs))), seat, timeout)
        if isinstance(ended, _Raised):
            raise ended.error
        return ended


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error


async def _caught(call: Awaitable[Any]) -> Any:
    """What a call of its own task returned or raised: a SystemExit that left the task would end the event loop."""
    try:
        return await call
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return _Raised(error)


class _TimeUp(Exception):
    """Our own timeout, told apart from a TimeoutError that the handler raised."""


async def _watched(call: asyncio.Future[Any], seat: Seat, timeout: float | None) -> Any:
    """The call's result, but no longer than its timeout: a call that does not end by then outlives its run."""
    on_loop = isinstance(call, asyncio.Task)
    try:
        done, _ = await asyncio.wait((call,), timeout=timeout)
        if not done:
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
            raise  # it does not listen, or it returned early because it was told to: neither is a success
    finally:
        if not call.done():
            seat.overdue = call
        elif not call.cancelled():
            call.exception()  # seen here, even where the result is not wanted
    return call.result()


def bind(handler: Handler, seat: Seat) -> tuple[list[Any], dict[str, Any]]:
    """The stored arguments as this version of the handler takes them."""
    if not seat.run.args:
        wire.decode(seat.run.wire)  # raises with the reason why it could not be read
    args, kwargs = handler.signature.decode(seat.run.args)
    return [seat.context, *args] if handler.takes_context else args, kwargs


def kept(result: object) -> Outcome:
    """A result that can be stored, or the reason why not."""
    if result is None:
        return Succeeded()
    try:
        encoded = encode_result(result)
    except Exception as error:  # a type of the user's own may raise anything while it is written
        return BadResult(Failure(type(error).__name__, _storable(f"the result cannot be stored: {error}")))
    if len(encoded) > wire.RESULT_LIMIT:
        return BadResult(
            Failure("ValueError", f"the result takes {len(encoded):,} bytes, more than {wire.RESULT_LIMIT:,}")
        )
    return Succeeded(encoded)


def _failure(error: BaseException) -> Failure:
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    try:
        message = str(error)
        lines = traceback.format_exception(kind, error, _users_part(error.__traceback__))
    except Exception:  # a broken __str__ of the user's own must not lose the run
        message, lines = "(its message could not be read)", []
    return Failure(name, _storable(message)[:MESSAGE_LIMIT], _storable("".join(lines))[-TRACEBACK_LIMIT:])


def _users_part(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without our own frames before the handler's."""
    at = trace
    while at is not None and at.tb_frame.f_globals.get("__name__", "").startswith("rota.engine."):
        at = at.tb_next
    return at or trace


def _storable(text: str) -> str:
    """Lone surrogates have no UTF-8 form: they must not fail the settlement of a whole batch."""
    return text.encode(errors="replace").decode()
