"""Lifespans: the engine of an app runs as long as a web server serves, with whatever else starts and stops there."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias, cast

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rota.app import embedded
from rota.app.app import Rota
from rota.app.core import core_of
from rota.app.servers import gunicorn_grace, gunicorn_worker
from rota.web.termination import stopped_first

log = logging.getLogger("rota.web")

LAST_WORDS = 1.0
"""Seconds that an application which failed to start has to raise its exception."""

Lifespan: TypeAlias = Callable[[Any], AbstractAsyncContextManager[Any]]
"""What `FastAPI(lifespan=…)`, `Starlette(lifespan=…)` and `Litestar(lifespan=[…])` take."""


def composed(app: Rota, inner: Lifespan | None = None, outer: Lifespan | None = None) -> Lifespan:
    """Return a lifespan that runs the engine of `app`: within `outer`, around `inner`. What they yield is merged."""

    @asynccontextmanager
    async def lifespan(api: Any) -> AsyncGenerator[Any]:
        async with within(api, outer) as first, working(app), within(api, inner) as second:
            states = [cast("Mapping[str, Any]", state) for state in (first, second) if isinstance(state, Mapping)]
            yield {name: value for state in states for name, value in state.items()} if states else None

    return lifespan


@asynccontextmanager
async def within(api: Any, lifespan: Lifespan | None) -> AsyncGenerator[Any]:
    if lifespan is None:
        yield None
    else:
        async with lifespan(api) as state:
            yield state


@asynccontextmanager
async def working(app: Rota) -> AsyncGenerator[None]:
    """Run the engine, unless it runs already: of several lifespans around each other, the outermost stops it."""
    core = core_of(app)
    if core.served or core.lifecycle.running is not None:
        yield
        return
    core.served = True
    try:
        embedded.limit_grace(app, gunicorn_grace(gunicorn_worker()))
        with stopped_first(app):
            async with app:
                yield
    finally:
        core.served = False


def lifespan(asgi: ASGIApp, app: Rota) -> ASGIApp:
    """Return `asgi`, any ASGI application, with the engine of `app` running from its start to its end.

    An application that has no lifespan of its own gets none. A start of the engine that fails fails the server's start.
    """

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _Conversation(asgi, scope, receive, send).hold(app)
        else:
            await asgi(scope, receive, send)

    return wrapped


class _Conversation:
    """The messages of one lifespan, handed on to the application within."""

    def __init__(self, asgi: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._to: asyncio.Queue[Message] = asyncio.Queue()
        self._from: asyncio.Queue[Message] = asyncio.Queue()
        self._inner = asyncio.ensure_future(asgi(scope, self._to.get, self._from.put))

    async def hold(self, app: Rota) -> None:
        phase = "startup"
        try:
            await self._receive()
            async with working(app):
                answer = await self._told("lifespan.startup")
                if answer["type"] == "lifespan.startup.failed":
                    raise _Failed(answer)
                await self._send(answer)
                await self._receive()
                phase = "shutdown"
                answer = await self._told("lifespan.shutdown")
                if answer["type"] == "lifespan.shutdown.failed":
                    raise _Failed(answer)
            await self._send(answer)
        except _Failed as failed:
            await self._send(failed.message)
            await asyncio.wait((self._inner,), timeout=LAST_WORDS)
            if self._inner.done() and not self._inner.cancelled():
                self._inner.result()  # raises what Starlette raises after its message: servers log it
            raise
        except Exception as error:
            await self._send({"type": f"lifespan.{phase}.failed", "message": f"rota: {error}"})
            raise
        finally:
            self._inner.cancel()
            await asyncio.wait((self._inner,))

    async def _told(self, kind: str) -> Message:
        """Return what the application answers. One that ends or raises instead has no lifespan."""
        await self._to.put({"type": kind})
        answered = asyncio.ensure_future(self._from.get())
        await asyncio.wait((answered, self._inner), return_when=asyncio.FIRST_COMPLETED)
        if answered.done():
            return answered.result()
        answered.cancel()
        if not self._inner.cancelled() and (error := self._inner.exception()) is not None:
            log.debug("the application has no lifespan: %s", error)
        return {"type": f"{kind}.complete"}


class _Failed(Exception):
    def __init__(self, message: Message) -> None:
        super().__init__(message.get("message", "the lifespan of the application failed"))
        self.message = message
