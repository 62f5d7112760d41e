"""Lifespan: an ASGI server says when it begins to serve and when it ends. Django's own application does not listen."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from rota.app.servers import heard_first
from rota.django import stopping

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


def asgi(application: Application) -> Application:
    """Return `application` with the lifespan of rota: `application = rota.django.asgi(get_asgi_application())`.

    Django's own application needs no such call: rota adds the lifespan to it. A router around it does.
    """

    async def with_lifespan(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        else:
            await application(scope, receive, send)

    return with_lifespan


def speak() -> None:
    """Let Django's application answer the lifespan of its server, instead of refusing it."""
    from django.core.handlers.asgi import ASGIHandler

    plain = ASGIHandler.__call__
    if getattr(plain, "rota", False):
        return

    async def call(self: ASGIHandler, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        else:
            await plain(self, scope, receive, send)

    call.rota = True  # type: ignore[attr-defined]
    ASGIHandler.__call__ = call  # type: ignore[method-assign]


async def _live(receive: Receive, send: Send) -> None:
    """A server says that it ends when its last request has ended. Its signal says so at once."""
    with heard_first(stopping.stop_soon):
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await asyncio.to_thread(stopping.stop)
                await send({"type": "lifespan.shutdown.complete"})
                return
