"""One child process, seen from its parent."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from multiprocessing import spawn
from typing import Any, Self, cast

import msgspec

from rota.domain import codec
from rota.engine import logs
from rota.engine.context import Context
from rota.engine.executors.messages import (
    HEADER,
    NOTES,
    Answer,
    Began,
    Call,
    Noted,
    Returned,
    Setup,
    Stop,
    ToChild,
    ToParent,
    frame,
)
from rota.engine.executors.thread import ThreadExecutor
from rota.engine.executors.time_limit import first_within

START = 120.0
"""Seconds for a child to start, to import the handler's module and to bind its arguments."""
DEATH = 5.0
"""Seconds to wait for the end of a killed child, which may wait for a disk."""
LEAVE = 10.0
"""Seconds that a child which is no longer needed has to end by itself."""
LINGER = 1.0
"""Seconds to wait for the end of a child that closed its connection."""
DRAIN = 0.2
"""Seconds to read from a dead child, if a process that it started keeps the connection open."""
MESSAGE_LIMIT = 4 * codec.RESULT_LIMIT
STACK_LIMIT = 64 * 1024

BOOT = (
    "import sys; sys.path[:] = sys.argv[3:]; "
    "from rota.engine.executors.child import main; main(int(sys.argv[1]), int(sys.argv[2]))"
)

_decoder = msgspec.msgpack.Decoder(ToParent)


class ChildError(Exception):
    """A call in a child had no result."""


class ChildDied(ChildError):
    """The child died during the call. `called` is false if the handler had not been called yet; `traceback` is the
    Python stack of a crash, if the child could still write it."""

    def __init__(self, message: str, called: bool = True, traceback: str = "") -> None:
        super().__init__(message)
        self.called = called
        self.traceback = traceback


class ChildTimeout(ChildError):
    """The call took too long, and its child was killed."""


class Child(asyncio.Protocol):
    """One child process, seen from the parent.

    `gone` has the exit code; `lost` is done when no more messages can come; `over` is done when both are.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", crashes: int, threads: ThreadExecutor) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = process
        self._crashes = crashes
        self._buffer = bytearray()
        self._transport: asyncio.WriteTransport | None = None
        self._context: Context | None = None
        self._began: asyncio.Future[None] = self._loop.create_future()
        self._answer: asyncio.Future[Answer] = self._loop.create_future()
        self._dismissed = False
        self._stack = ""
        self.pid = process.pid
        self.calls = 0
        self.lost: asyncio.Future[None] = self._loop.create_future()
        self.over: asyncio.Future[None] = self._loop.create_future()
        self.gone: asyncio.Future[int] = threads.call(process.wait)
        self.gone.add_done_callback(lambda _: self._bury())

    @classmethod
    async def start(cls, threads: ThreadExecutor) -> Self:
        """Start a child from the loop's own thread: it dies with the *thread* that started it (PR_SET_PDEATHSIG)."""
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        crashes, crash = os.pipe()
        os.set_blocking(crashes, False)
        os.set_blocking(crash, False)
        data = spawn.get_preparation_data("rota-child")
        try:
            child = cls(_popen(theirs.fileno(), crash, data["sys_path"]), crashes, threads)
        except BaseException:
            ours.close()
            os.close(crashes)
            raise
        finally:
            theirs.close()
            os.close(crash)
        try:
            await loop.create_unix_connection(lambda: child, sock=ours)
        except BaseException:
            child.kill()
            ours.close()
            raise
        main = {key: value for key, value in data.items() if key.startswith("init_main_from_")}
        child._say(Setup([os.fsencode(word) for word in sys.argv], main, logs.in_force))
        return child

    @property
    def answered(self) -> bool:
        """Whether the child is ready for another call."""
        return (self.calls == 0 or self._answer.done()) and not self.lost.done()

    async def call(self, order: Call, context: Context, timeout: float | None) -> Answer:
        self.calls += 1
        self._context = context
        self._began, self._answer = self._loop.create_future(), self._loop.create_future()
        self._say(order)
        if not await self._heard(self._began, START):
            await self._end()
            raise ChildDied(
                f"the child process {self.pid} did not get to call {order.module}.{order.name} within {START:g} s: "
                "its module takes too long to import",
                called=False,
            )
        if not await self._heard(self._answer, timeout, context):
            await self._end()
            raise ChildTimeout(f"the child process {self.pid} was killed after {timeout:g} s")
        return self._answer.result()

    async def stop(self, patience: float) -> Answer | None:
        """Ask the handler to end. None if it did not end within `patience` seconds."""
        self._say(Stop())
        try:
            await asyncio.wait((self._answer, self.lost), timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not self._answer.done():
                self.kill()
        if self._answer.done():
            return self._answer.result()
        await self._end()
        return None

    def retire(self) -> None:
        """Disconnect: the child ends by itself, or is killed after LEAVE."""
        if self._transport is not None:
            self._transport.close()
        self._loop.call_later(LEAVE, self.kill)

    def dismiss(self) -> None:
        """Kill the child because its worker stops."""
        self._dismissed = True
        self.kill()

    def kill(self) -> None:
        """Kill the child and all processes of its group."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    # -- what is heard ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= HEADER:
            end = HEADER + int.from_bytes(self._buffer[:HEADER], "big")
            if end > MESSAGE_LIMIT:
                return self.kill()  # the handler wrote into the connection
            if len(self._buffer) < end:
                return None
            try:
                message = _decoder.decode(self._buffer[HEADER:end])
            except ValueError:
                return self.kill()
            del self._buffer[:end]
            self._hear(message)
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose()

    def _hear(self, message: ToParent) -> None:
        if isinstance(message, Noted):
            self._note(message)
            return
        if not self._began.done():
            self._began.set_result(None)
        if not isinstance(message, Began) and not self._answer.done():
            if isinstance(message, Returned) and message.noticed and self._context is not None:
                self._context.stopping  # noqa: B018  (the handler has seen it in the child)
            self._context = None
            self._answer.set_result(message)

    def _note(self, note: Noted) -> None:
        """Call the same method of the parent's context, which checks the values again and ignores bad ones."""
        if self._context is not None and note.method in NOTES:
            with suppress(TypeError, ValueError):
                getattr(self._context, note.method)(*msgspec.json.decode(note.args))

    def _say(self, message: ToChild) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame(message))

    async def _heard(
        self, message: "asyncio.Future[Any]", timeout: float | None, context: Context | None = None
    ) -> bool:
        """Wait for `message`; False after `timeout` and the time that the handler adds. Raises if the child dies."""
        await first_within((message, self.lost), timeout, context)
        if not message.done() and self.lost.done():
            raise await self._death()
        return message.done()

    # -- how it ends -----------------------------------------------------------------------------------------------

    def _lose(self) -> None:
        """No more messages can come: the child closed its end of the connection, or is dead."""
        if not self.lost.done():
            self.lost.set_result(None)
        if self._transport is not None:
            self._transport.abort()
        if self.gone.done() and not self.over.done():
            self.over.set_result(None)

    def _bury(self) -> None:
        with suppress(BlockingIOError):
            self._stack = os.read(self._crashes, STACK_LIMIT).decode(errors="replace")
        os.close(self._crashes)
        if self.lost.done():
            self._lose()
        else:
            self._loop.call_later(DRAIN, self._lose)

    async def _end(self) -> None:
        self.kill()
        await asyncio.wait((self.gone,), timeout=DEATH)

    async def _death(self) -> ChildDied:
        await asyncio.wait((self.gone,), timeout=LINGER)
        await self._end()
        called = self._began.done()
        when = "while it ran the handler" if called else "before it called the handler"
        if self._dismissed:
            how = "was killed because its worker stops"
        else:
            how = _how(self.gone.result()) if self.gone.done() else "fell silent, and cannot be killed,"
        return ChildDied(f"the child process {self.pid} {how} {when}", called, self._stack)


def _popen(connection: int, crash: int, path: list[str]) -> "subprocess.Popen[bytes]":
    """Start the interpreter with the options of multiprocessing, without the three words that it puts at the end."""
    interpreter, *options = spawn.get_command_line()[:-3]
    # Block both signals until the child can handle them.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        return subprocess.Popen(
            [_python(interpreter), *options, "-c", BOOT, str(connection), str(crash), *path],
            stdin=subprocess.DEVNULL,
            pass_fds=(connection, crash),
            process_group=0,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _python(given: str | bytes) -> str:
    """Return the interpreter to start. Python in uWSGI takes the program uwsgi for its interpreter."""
    interpreter = os.fsdecode(given)
    inside = os.path.join(sys.prefix, "bin", "python3")
    embedded = "uwsgi" in sys.modules and interpreter == sys.executable
    return inside if embedded and os.access(inside, os.X_OK) else interpreter


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = "; out of memory?" if -code == signal.SIGKILL else ""
    return f"was killed by {name} ({signal.strsignal(-code)}{hint})"
