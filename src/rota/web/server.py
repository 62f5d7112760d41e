"""Serving: the ASGI application on a socket, with the engine beside it if the process shall work, too."""

import asyncio
import errno
import math
import socket
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import uvicorn
from msgspec import Struct
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from rota.app.app import Rota
from rota.errors import InvalidOptions
from rota.web.control_room import Pages
from rota.web.gate import Auth, bearer_of, is_loopback
from rota.web.proxies import Networks, TrustedProxies
from rota.web.rights import Principal, rights_of
from rota.web.service import service
from rota.web.slow_callers import ImpatientProtocol
from rota.web.tokens import Tokens, new_token

LOCAL_ADMIN = Principal("local", rights_of("admin"))
HEADERS_LIMIT = 16 * 1024
"""Bytes of the headers of a request."""
KEEP_ALIVE = 30


class Place(Struct, frozen=True):
    """Where the service listens: on a Unix socket, or on a host and port."""

    host: str = "127.0.0.1"
    port: int = 8100
    socket: Path | None = None
    proxies: Networks = ()
    """Addresses of proxies that are believed when they say who calls from where."""
    user_header: str | None = None

    @property
    def local(self) -> bool:
        """Whether only this machine reaches the place."""
        return self.socket is not None or is_loopback(self.host)

    @property
    def url(self) -> str:
        if self.socket is not None:
            return f"unix:{self.socket}"
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"


class Credentials(Struct, frozen=True):
    """Who is let in, and the token to show at the start, if this process has made one."""

    auth: Auth
    shown: str | None = None
    tokens: Tokens | None = None
    """With which browsers log in."""


def credentials(place: Place, tokens: Tokens, no_token: bool, user_header: str | None = None) -> Credentials:
    """Return who is let in at `place`; refuses to serve an open door to other machines.

    `user_header`: the header in which a trusted proxy says who calls.
    """
    if no_token:
        if not place.local:
            raise InvalidOptions(f"--no-token is for loopback only, and {place.host} is reached from other machines")
        return Credentials(lambda scope: LOCAL_ADMIN)
    if not tokens:
        if not place.local:
            raise InvalidOptions(
                f"{place.host} is reached from other machines: set ROTA_TOKEN or ROTA_TOKENS "
                "(`rota token new NAME --role operator` prints a token), or listen on 127.0.0.1"
            )
        made = new_token()
        own = Tokens(made)
        return Credentials(by_token(own), made, own)
    return Credentials(by_token(tokens, user_header), None, tokens)


def nobody(scope: Scope) -> None:
    """Let nobody in: only the paths that are open to everybody answer."""


def by_token(tokens: Tokens, user_header: str | None = None) -> Auth:
    def auth(scope: Scope) -> Principal | None:
        headers = Headers(scope=scope)
        token = bearer_of(headers)
        if token is None and user_header is not None and (user := headers.get(user_header)):
            return tokens.named(user)
        return None if token is None else tokens.find(token)

    return auth


def listen(place: Place, shared: bool = False) -> socket.socket:
    """Return a socket that listens at `place`. `shared`: other processes listen on the same port."""
    try:
        if place.socket is not None:
            return _unix_socket(place.socket)
        family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        return socket.create_server((place.host, place.port), family=family, backlog=2048, reuse_port=shared)
    except OSError as error:
        raise InvalidOptions(f"cannot listen on {place.url}: {error.strerror or error}") from None


def _unix_socket(path: Path) -> socket.socket:
    """Return a socket that only its owner reaches. A socket that a dead process has left is removed."""
    if path.is_socket():
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(path)) == 0:
                raise OSError(errno.EADDRINUSE, "another process listens there")
        path.unlink()
    found = socket.socket(socket.AF_UNIX)
    found.bind(str(path))
    path.chmod(0o600)
    found.listen(2048)
    return found


async def serve(
    app: Rota,
    place: Place,
    letting_in: Credentials,
    hosts: Sequence[str],
    works: bool,
    stop: asyncio.Event,
    shared: bool = False,
    others: Mapping[str, Rota] | None = None,
) -> AsyncGenerator[int]:
    """Serve until `stop`, and yield the port as soon as the service listens. `works`: with the engine of the app.
    `others` are served beside it, by the names of their namespaces, without their engines.

    At the end, requests under way may end first; streams of events are told to.
    """
    names = [*hosts, *([] if place.local else [place.host])]
    pages = None if letting_in.auth is nobody else Pages()
    gate, streams = service(app, letting_in.auth, names, letting_in.tokens, pages, others)
    inner = TrustedProxies(gate, place.proxies, place.user_header)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})["stopping"] = stop  # so that requests that wait end at once
        await inner(scope, receive, send)

    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=HEADERS_LIMIT,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=math.ceil(app.settings.grace),
        lifespan="on",
        ws="none",
        http=ImpatientProtocol,
    )
    server = _Server(config)
    async with AsyncExitStack() as opened:
        opened.callback((listening := listen(place, shared)).close)
        for other in (others or {}).values():
            await opened.enter_async_context(other.client())
        if works:
            await opened.enter_async_context(app)
        served = asyncio.create_task(server.serve([listening]))
        asked = asyncio.create_task(stop.wait())
        yield 0 if place.socket is not None else int(listening.getsockname()[1])
        await asyncio.wait([served, asked], return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        for each in streams:
            each.stop()
        server.should_exit = True
        await served
    if place.socket is not None:
        place.socket.unlink(missing_ok=True)


class _Server(uvicorn.Server):
    """A uvicorn that leaves signals to rota."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield
