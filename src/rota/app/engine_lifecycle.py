"""EngineLifecycle: how the engine of an app starts and stops, from any event loop and any thread, and at the end of the
process."""

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Never

from rota.app.any_loop_lock import AnyLoopLock
from rota.client.client import Client
from rota.client.portal import Portal, refuse_on_a_loop
from rota.engine.supervisor import Supervisor
from rota.errors import NotRunning
from rota.forks import PerProcess

log = logging.getLogger("rota")

LOOK_AGAIN = 1.0
"""Seconds between two checks whether the loop that stops the engine is still running."""


class AsyncOnly:
    """`with app:` raises a TypeError that says what to write. Type checkers see no such method and refuse it."""

    if not TYPE_CHECKING:

        def __enter__(self) -> Never:
            raise TypeError("`with app:` needs `async with app:`, or in synchronous code `with app.running():`")

        def __exit__(self, *error: object) -> None: ...


class _Here:
    """The engine of one process. A forked child has none until it starts its own."""

    def __init__(self) -> None:
        self.engine: Supervisor | None = None
        self.lingers = False
        """Whether the engine has ended, and requests may still use the store."""
        self.lock = AnyLoopLock()  # start and stop, one after the other
        self.calls = threading.Lock()  # serialises calls from synchronous code


class EngineLifecycle:
    """`grace` returns how many seconds running handlers have at a stop, if the caller does not say."""

    def __init__(self, portal: Callable[[], Portal], client: Callable[[], Client], grace: Callable[[], float]) -> None:
        self._portal = portal
        self._client = client
        self._grace = grace
        self._latest: _Here | None = None  # in a forked child, first the one of its parent
        self._here = PerProcess(self._made)

    def notice_forks(self) -> None:
        """Warn once in a forked child that it has no engine. The fork itself logs nothing: most children call another
        program at once and never use the app."""
        self._here.get()

    def _made(self) -> _Here:
        before, self._latest = self._latest, _Here()
        if before is not None and before.engine is not None:
            log.warning(
                "this process (pid %d) was forked from one whose engine runs: it is only a client until it starts an "
                "engine of its own; start engines after the fork",
                os.getpid(),
            )
        return self._latest

    @property
    def engine(self) -> Supervisor | None:
        """The engine that was started here, alive or not."""
        return self._here.get().engine

    @property
    def running(self) -> Supervisor | None:
        engine = self.engine
        return engine if engine is not None and engine.alive else None

    async def start(self, started: Callable[[], Awaitable[Supervisor | None]]) -> None:
        """Start an engine, unless one is alive. Clear away the rest of an engine that died."""
        here = self._here.get()
        async with here.lock:
            if here.engine is not None and here.engine.alive:
                return
            if here.engine is not None:
                await self._clear_away(here, here.engine)
            here.engine = await started()

    async def stop(self, grace: float | None = None) -> None:
        """Stop the engine. The app is stopped afterwards even if a part of it failed to stop; then that error is
        raised, once."""
        here = self._here.get()
        async with here.lock:
            try:
                if here.engine is not None:
                    await self._end(here, here.engine, self._grace() if grace is None else grace)
            finally:
                here.lingers = False
                await self._close()

    async def end(self, grace: float | None = None) -> None:
        """Stop the engine alone: requests that are under way go on using the store. `stop` follows, at the latest with
        the process."""
        here = self._here.get()
        async with here.lock:
            if here.engine is not None:
                here.lingers = True
                await self._end(here, here.engine, self._grace() if grace is None else grace)

    def start_sync(self, start: Callable[[], Awaitable[None]]) -> None:
        """Start on the portal's loop, until `stop_sync` or the end of the process."""
        refuse_on_a_loop()
        with self._here.get().calls:
            _stop_at_exit(self)
            self._portal().call(start)

    def stop_sync(self, grace: float | None = None) -> None:
        refuse_on_a_loop()
        with self._here.get().calls:
            self._portal().call(lambda: self.stop(grace))

    def end_sync(self) -> None:
        refuse_on_a_loop()
        here = self._here.get()
        with here.calls:
            if here.engine is not None:
                self._portal().call(self.end)

    def _stop_engine(self) -> None:
        """Stop the engine, unless the stop of another thread was under way and has ended it: the portal's thread ends
        with the engine, and a process that ends cannot start another one (Python 3.12)."""
        refuse_on_a_loop()
        here = self._here.get()
        with here.calls:
            if here.engine is not None or here.lingers:
                self._portal().call(self.stop)

    async def _end(self, here: _Here, engine: Supervisor, grace: float) -> None:
        loop = engine.loop
        try:
            if loop.is_closed():
                engine.abandon()
                log.error(
                    "worker %s was not stopped before its event loop was closed: its runs start again when their "
                    "leases lapse",
                    engine.name,
                )
            elif loop is asyncio.get_running_loop():
                await engine.stop(grace)
            elif loop.is_running():
                await self._end_elsewhere(engine, grace)
            else:
                raise NotRunning("the engine's event loop does not turn: run `app.stop()` on that loop")
        finally:
            if engine.ended:
                here.engine = None

    async def _end_elsewhere(self, engine: Supervisor, grace: float) -> None:
        """Stop the engine on its own loop: an engine cannot be stopped on another one."""

        async def end() -> None:
            try:
                await engine.stop(grace)
            finally:
                await self._client().close()  # the client of this loop; the caller closes its own

        ending = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(end(), engine.loop))
        while not ending.done():
            await asyncio.wait((ending,), timeout=LOOK_AGAIN)
            if engine.loop.is_closed() and not ending.done():
                ending.cancel()
                engine.abandon()
                raise NotRunning("the engine's event loop was closed while the engine stopped there")
        ending.result()

    async def _clear_away(self, here: _Here, engine: Supervisor) -> None:
        try:
            await self._end(here, engine, 0.0)
        except NotRunning:
            raise
        except Exception:
            log.exception("worker %s had died, and a part of it failed to stop", engine.name)

    async def _close(self) -> None:
        client, portal = self._client(), self._portal()
        await client.close()
        if portal.here:
            await portal.leave(client.close)
        else:
            await asyncio.to_thread(portal.close, client.close)

    def at_exit(self) -> None:
        """Stop the engine at the end of the process. After Ctrl-C the stop no longer waits for handlers. A forked child
        that never used the app has nothing to stop."""
        here = self._here.found()
        if here is None or (here.engine is None and not here.lingers):
            return
        engine = here.engine
        try:
            try:
                self._stop_engine()
            except KeyboardInterrupt:
                if engine is None:
                    return
                engine.loop.call_soon_threadsafe(engine.hurry)
                with suppress(NotRunning):  # the stop under way ends this call's loop
                    self._stop_engine()
        except Exception:
            name = "an app" if engine is None else f"worker {engine.name}"
            log.exception("%s did not stop well at the end of its process", name)


_exiting: list[EngineLifecycle] = []  # keeps them alive: an engine that nobody refers to still holds runs


def _stop_at_exit(lifecycle: EngineLifecycle) -> None:
    """Stop this engine with its process.

    An engine needs threads in order to stop, and `atexit` comes too late: `concurrent.futures` takes no more work by
    then. Functions that are registered with `threading` run before that, the latest first. `concurrent.futures.thread`
    registers its own when it is first imported.
    """
    if not _exiting:
        import_module("concurrent.futures.thread")
        register: Callable[[Callable[[], None]], object] = getattr(threading, "_register_atexit", atexit.register)
        with suppress(RuntimeError):  # the process is ending now
            register(_at_exit)
    if lifecycle not in _exiting:
        _exiting.append(lifecycle)


def _at_exit() -> None:
    for lifecycle in _exiting:
        lifecycle.at_exit()
