"""A proxy between a client and a server that cuts, delays and swallows requests on demand.

    async with FaultProxy(server.address) as proxy:      # in the running loop
        client = await asyncpg.connect(server.url_at(proxy.address))
        proxy.fail_next("cut after", match=b"INSERT")

    with FaultProxy(server.address) as proxy: ...        # in a loop and a thread of its own

It works for the protocols of Redis and PostgreSQL and hardly parses them: a request is all that a client sends between
two replies, and its reply is what the server sends next.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from storekit.links import Fault, Faults, Link
from storekit.servers.places import Address, free_port

__all__ = ["Fault", "FaultProxy", "Link"]

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds after which a call from another thread stops waiting for the loop of the proxy."""


class FaultProxy:
    """Forwards connections to `server`; each connection is a link.

    `fail_next` is for single requests of any link or of one link (`proxy.links[0].fail_next`); `refuse`, `black_hole`
    and `delay` last until `heal`. Every method, also of a link, may be called from any thread and is in force when it
    returns.
    """

    def __init__(self, server: Address, listen: Address | None = None) -> None:
        self.server = server
        self.address: Address = ("127.0.0.1", free_port()) if listen is None else listen
        self.accepted = 0
        self.faults = Faults()
        self.links: list[Link] = []
        self._tasks: dict[asyncio.Task[None], Link] = {}
        self._listener: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._home: int | None = None
        self._thread: threading.Thread | None = None

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault proxy", daemon=True)
        self._thread.start()
        try:
            self._elsewhere(self._open())
        except BaseException:
            self._end_thread()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._elsewhere(self._close())
        finally:
            self._end_thread()

    @property
    def struck(self) -> list[Fault]:
        """The faults of `fail_next` that have happened, in order."""
        return list(self.faults.struck)

    async def until_struck(self, count: int = 1) -> None:
        """Wait until `count` faults of `fail_next` have happened; from any loop."""
        assert self._loop is not None
        waiting = self.faults.until_struck(count)
        if self._at_home:
            await waiting
        else:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(waiting, self._loop))

    def fail_next(
        self, fault: Fault, *, times: int = 1, match: bytes = b"", skip: int = 0, seconds: float = 0.0
    ) -> None:
        """Apply `fault` to the next `times` requests that contain `match`, after the first `skip` of them.

        `seconds` is for "delay". PostgreSQL clients send a statement with arguments in two requests, the text and then
        the values: match a value to reach its execution.
        """
        self._do(lambda: self.faults.add(fault, times, match, skip, seconds))

    def refuse(self) -> None:
        """Refuse new connections; existing ones stay."""
        self._do(self._stop_listening)

    def black_hole(self) -> None:
        """Swallow all that is sent on existing and on new connections. New ones are accepted and never answered."""

        def step() -> None:
            self.faults.black_hole = True
            for link in self.links:
                link.swallowing = True

        self._do(step)

    def delay(self, seconds: float) -> None:
        """Forward every request `seconds` later."""

        def step() -> None:
            self.faults.delay = seconds

        self._do(step)

    def cut(self) -> None:
        """Cut all existing connections."""

        def step() -> None:
            for link in self.links:
                link.cut()

        self._do(step)

    def heal(self) -> None:
        """Remove all faults. Connections that swallowed data are cut, because a part of their stream is missing."""

        def step() -> None:
            self.faults.forget()
            for link in self.links:
                link.faults.forget()
                if link.swallowing:
                    link.cut()
            if self._listener is None:
                self._listen()

        self._do(step)

    async def _open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._home = threading.get_ident()
        self._listen()

    async def _close(self) -> None:
        self._stop_listening()
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._home = None
        for error in ended:
            if isinstance(error, Exception):
                raise error

    def _listen(self) -> None:
        assert self._loop is not None
        listener = socket.socket(socket.AF_UNIX if isinstance(self.address, Path) else socket.AF_INET)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(str(self.address) if isinstance(self.address, Path) else self.address)
            listener.listen(100)
            listener.setblocking(False)
        except BaseException:
            listener.close()
            raise
        self._listener = listener
        self._loop.add_reader(listener, self._accept, listener)

    def _stop_listening(self) -> None:
        if self._listener is None or self._loop is None:
            return
        self._loop.remove_reader(self._listener)
        self._listener.close()
        self._listener = None
        if isinstance(self.address, Path):
            self.address.unlink(missing_ok=True)

    def _accept(self, listener: socket.socket) -> None:
        assert self._loop is not None
        with contextlib.suppress(OSError):  # the client has left already
            client, _ = listener.accept()
            self.accepted += 1
            link = Link(client, self.server, self.faults)
            task = self._loop.create_task(link.run())
            link.task = task
            self.links.append(link)
            self._tasks[task] = link
            task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self.links.remove(self._tasks[task])
        if task.cancelled() or task.exception() is None:
            del self._tasks[task]

    @property
    def _at_home(self) -> bool:
        return threading.get_ident() == self._home

    def _do(self, step: Callable[[], T]) -> T:
        if self._at_home:
            return step()

        async def there() -> T:
            return step()

        return self._elsewhere(there())

    def _elsewhere(self, steps: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None, "the proxy has not been entered"
        return asyncio.run_coroutine_threadsafe(steps, self._loop).result(PATIENCE)

    def _end_thread(self) -> None:
        assert self._loop is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()
