"""The child's side of the process executor: a process that calls handlers, one at a time, until its parent disconnects.

The main thread calls handlers. A second thread reads the messages of the parent, so that the child can receive a stop
while a handler runs and notices that its parent died. The parent's code says which function is called, never stored
data.
"""

import asyncio
import ctypes
import faulthandler
import importlib
import inspect
import os
import queue
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing import spawn
from typing import Any

import msgspec
from msgspec.structs import replace

from rota.domain.arguments import Signature, encode_result
from rota.domain.depends import Dependencies, dependencies_of, hidden_parameters
from rota.domain.lifecycle import Succeeded
from rota.domain.run import Run, storable
from rota.domain.tail import LINE, Tail
from rota.engine.context import Context, context_here
from rota.engine.executors.importable import around_of, resolve
from rota.engine.executors.messages import (
    HEADER,
    Answer,
    BadResult,
    Began,
    Call,
    Cancelled,
    Noted,
    Raised,
    Returned,
    Setup,
    Stop,
    ToChild,
    ToParent,
    Unbindable,
    frame,
)
from rota.engine.injection import Injection, PlainShared
from rota.engine.log_tails import keep_tails
from rota.engine.logs import configure
from rota.engine.outcomes import MESSAGE_LIMIT, failure, stored

FAREWELL = 5.0
"""Seconds that the exit hooks of the user's modules have when the child ends."""
PR_SET_PDEATHSIG = 1


serving = False
"""Whether the process executor started this process."""

Found = tuple[Callable[..., Any], Signature, Dependencies | None]
"""A function, its arguments, and what it needs beside them."""

_decoder = msgspec.msgpack.Decoder(ToChild)


def main(connection: int, crashes: int) -> None:
    """Serve calls. `connection` is the child's end of the socket, `crashes` a pipe for the stack of a crash."""
    global serving
    serving = True
    for fd in (connection, crashes):
        os.set_inheritable(fd, False)
    faulthandler.enable(crashes, all_threads=False)
    _leave_signals_to_the_parent()
    if sys.platform == "linux":  # dies with its parent, even if the handler never lets the other thread run
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    Server(socket.socket(fileno=connection)).serve()


def _leave_signals_to_the_parent() -> None:
    """A signal to every process of the service must not end a run before the drain seconds of the parent are over.

    The signal handler does nothing, instead of SIG_IGN: processes that the task starts would inherit SIG_IGN, and
    `terminate()` would have no effect on them. The parent started this process with these signals blocked.
    """
    ours = (signal.SIGINT, signal.SIGTERM)
    for number in ours:
        signal.signal(number, _nothing)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ours)

    def as_usual() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    os.register_at_fork(after_in_child=as_usual)


def _nothing(number: int, at: object) -> None:
    return


class Server:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._seats: queue.SimpleQueue[Seat | None] = queue.SimpleQueue()
        self._current: Seat | None = None
        self._setup = Setup([], {})
        self._found: dict[tuple[str, str, bool], Found] = {}
        self._shared = PlainShared()
        self._injection = Injection(self._shared)
        os.register_at_fork(after_in_child=connection.close)  # a fork must neither send nor keep the socket open

    def serve(self) -> None:
        threading.Thread(target=self._listen, name="rota-parent", daemon=True).start()
        while (seat := self._seats.get()) is not None:
            answer = self._serve(seat)
            for stream in (sys.stdout, sys.stderr):
                with suppress(Exception):  # the next run may end without a chance to flush
                    stream.flush()
            self._send(seat, answer)
        self._shared.close()

    def _serve(self, seat: "Seat") -> Answer:
        call = seat.call
        context_here.set(seat.context)
        try:
            fn, signature, needs = self._find(call)
        except BaseException as error:
            return raised(error)
        try:
            args, kwargs = signature.decode(call.args)
        except Exception as error:
            return Unbindable(
                storable(f"the stored arguments do not fit {call.name}{signature.parameters}: {error}", MESSAGE_LIMIT)
            )
        if call.takes_context:
            args.insert(0, seat.context)
        self._send(seat, Began())
        on_loop = inspect.iscoroutinefunction(fn)
        work: Callable[[], Any] = partial(fn, *args, **kwargs)
        if needs is not None:
            arguments = (args, kwargs)
            made = (fn, needs, signature, seat.context, arguments)
            work = (
                partial(self._injection.called, *made) if on_loop else partial(self._injection.call_plain, *made, None)
            )
        return seat.answer(work, on_loop)

    def _find(self, call: Call) -> Found:
        key = (call.module, call.name, call.takes_context)
        if key not in self._found:
            if call.module == "__main__":
                spawn.prepare(self._setup.main)
            module = importlib.import_module(call.module)
            if self._setup.logs is not None and self._setup.logs.replace:
                configure(self._setup.logs)  # the import may have set up logging
            fn = resolve(module, call.name)
            signature = Signature(fn, int(call.takes_context), hidden_parameters(fn))
            self._found[key] = (
                fn,
                signature,
                dependencies_of(fn, Context, signature.names, around_of(module, call.name)),
            )
        return self._found[key]

    def _send(self, seat: "Seat", message: ToParent) -> None:
        """Send `message`, unless `seat` is no longer the current call: a thread may outlive its call."""
        with self._sending:
            if seat is not self._current:
                return
            if isinstance(message, Answer):
                self._current = None
            try:
                self._connection.sendall(frame(message))
            except OSError:
                os._exit(1)

    # -- the other thread ------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        while (message := self._hear()) is not None:
            match message:
                case Setup():
                    self._setup = message
                    sys.argv = [os.fsdecode(word) for word in message.argv]
                    if message.logs is not None:
                        configure(message.logs)
                case Call():
                    seat = Seat(message, self._send)
                    with self._sending:
                        self._current = seat
                    self._seats.put(seat)
                case Stop():
                    if (current := self._current) is not None:
                        current.stop()
        if self._current is None:
            self._seats.put(None)
            threading.Event().wait(FAREWELL)
        os._exit(1)  # nobody waits for the end of this call

    def _hear(self) -> ToChild | None:
        header = self._read(HEADER)
        body = self._read(int.from_bytes(header, "big")) if header else b""
        return _decoder.decode(body) if body else None

    def _read(self, size: int) -> bytes:
        """Read `size` bytes; empty if the parent has closed its end or is dead."""
        data = bytearray()
        while len(data) < size:
            try:
                part = self._connection.recv(size - len(data))
            except OSError:
                part = b""
            if not part:
                return b""
            data += part
        return bytes(data)


class Seat:
    """One call, from the parent's message to the answer."""

    keeps_tails = False

    def __init__(self, call: Call, send: "Callable[[Seat, Noted], None]") -> None:
        self.call = call
        run = replace(call.run, args=call.args)
        self.context = ForwardingContext(run, lambda note: send(self, note), call.period)
        if call.logs:
            self.context.tail = Tail()
            if not self.keeps_tails:
                Seat.keeps_tails = True
                keep_tails()
        self._lock = threading.Lock()
        self._stopped = False
        self._cancel: Callable[[], object] | None = None

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            self.context.stop()
            if self._cancel is not None:
                self._cancel()

    def answer(self, fn: Callable[[], Any], is_async: bool) -> Answer:
        try:
            if is_async:
                result, error = asyncio.run(self._awaited(fn))
            else:
                result, error = fn(), None
        except BaseException as raised_here:  # SystemExit too: here it is one handler's failure
            result, error = None, raised_here
        if isinstance(error, asyncio.CancelledError) and self._stopped:
            return Cancelled()
        if error is not None:
            return raised(error)
        return returned(result, self.context.noticed)

    async def _awaited(self, fn: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        """Call `fn` on an event loop of its own, so that nothing of one run goes on in the next."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        with self._lock:
            self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
            if self._stopped:
                self._cancel()
        try:
            return await fn(), None
        except BaseException as error:
            return None, error
        finally:
            with self._lock:
                self._cancel = None


class ForwardingContext(Context):
    """Checks what the handler notes, and sends it to the parent's context."""

    def __init__(self, run: Run, send: Callable[[Noted], None], period: str | None) -> None:
        super().__init__(run, period=period)
        self._send = send

    def progress(self, share: float, message: str = "") -> None:
        super().progress(share, message)
        self._send(Noted("progress", encode_result([share, message])))

    def checkpoint(self, value: Any) -> None:
        super().checkpoint(value)
        self._send(Noted("checkpoint", encode_result([value])))

    def extend(self, seconds: float) -> None:
        super().extend(seconds)
        self._send(Noted("extend", encode_result([seconds])))

    def log_line(self, line: str) -> None:
        """Each line goes at once: what a handler logged last before its process died is the most useful."""
        self._send(Noted("log_line", encode_result([storable(line, LINE)])))

    def warn(self, message: str) -> None:
        super().warn(message)
        self._send(Noted("warn", encode_result([message])))


# -- values ------------------------------------------------------------------------------------------------------------


def returned(result: object, noticed: bool) -> Answer:
    outcome = stored(result)
    return Returned(outcome.result, noticed) if isinstance(outcome, Succeeded) else BadResult(outcome.error.message)


def raised(error: BaseException) -> Raised:
    plain = failure(error)
    plain = replace(plain, type=_as_in_the_parent(plain.type))
    kinds = tuple(_as_in_the_parent(f"{kind.__module__}.{kind.__qualname__}") for kind in type(error).__mro__)
    words = getattr(error, "__rota_verdict__", None)
    if words is None:
        return Raised(plain, kinds)
    ours = (kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "rota.errors")
    try:
        return Raised(plain, kinds, next(ours, type(error).__name__), encode_result(list(words)))
    except (TypeError, ValueError):  # arguments that cannot be sent: then it is an exception like any other
        return Raised(plain, kinds)


def _as_in_the_parent(name: str) -> str:
    """multiprocessing runs the parent's main module under another name."""
    return name.replace("__mp_main__.", "__main__.", 1)
