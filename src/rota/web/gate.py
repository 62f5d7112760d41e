"""The gate: what every request passes before its route is looked for. 401 comes before 404."""

import asyncio
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Collection
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rota.errors import RotaError, StoreUnavailable
from rota.web.control_room import Pages
from rota.web.problems import MEDIA_TYPE, Problem, problem_of
from rota.web.quotas import Quota
from rota.web.rights import Principal
from rota.web.sessions import Sessions, cookie_of

Auth = Callable[[Scope], Awaitable[Principal | None] | Principal | None]
"""Who calls; None: nobody that the service knows."""

Observe = Callable[[str | None, str, int, float], None]
"""Hears of an answer: the path in the table of routes, the method, the status, and its seconds."""

EVENTS = "text/event-stream"
LOCAL = ("localhost", "127.0.0.1", "::1")
PATIENCE = 1.5
"""Seconds for which a request waits for the store to say whose session its cookie is."""
SAFE = ("GET", "HEAD", "OPTIONS")
OPEN = ("/health", "/ready")
"""Paths that answer everybody under any name, and that say nothing but a status."""
PROBLEMS = "/problems/"
"""Pages that explain problems, those of callers without a credential too."""
LOGIN = "/api/v1/session"
FAILURES = 5
"""Requests of an address in a minute that may come with a cookie that the service does not know. A wrong bearer token
is always a 401: it has 256 random bits, and its owner needs to know."""

SECURE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Cache-Control": "no-store",
}

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")


class Gate:
    """Gives each request an id, judges its Host, its origin and its credential, and adds the headers of security."""

    def __init__(
        self,
        inner: ASGIApp,
        auth: Auth,
        hosts: Collection[str] | None,
        sessions: Sessions | None = None,
        pages: Pages | None = None,
        observe: Observe | None = None,
        namespace: str | None = None,
    ) -> None:
        """`hosts`: names by which callers without a bearer token may reach the service; None: any name. `pages`: for
        browsers; None: there are none. `observe` hears of every request that was answered. `namespace`: what is behind
        this gate; None: the only one there is."""
        self._inner = inner
        self._auth = auth
        self._sessions = sessions
        self._pages = pages
        self._observe = observe
        self._namespace = namespace
        self._failures = Quota("too many requests with a cookie that has ended")
        self._requests = Quota("this credential has made its requests of this minute")
        self._hosts = None if hosts is None else frozenset(host.lower() for host in (*LOCAL, *hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        start, status = time.perf_counter(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                found = MutableHeaders(scope=message)
                # a stream of events says nothing about how long an answer takes
                status = 0 if found.get("content-type", "").startswith(EVENTS) else message["status"]
                for name, value in SECURE_HEADERS.items():
                    found.setdefault(name, value)
                found["X-Request-Id"] = request_id
            await send(message)

        try:
            await self._pass(scope, receive, answer, headers)
        finally:
            if self._observe is not None and status:
                route = scope["state"].get("route")
                self._observe(route, scope["method"], status, time.perf_counter() - start)

    async def _pass(self, scope: Scope, receive: Receive, answer: Send, headers: Headers) -> None:
        try:
            await self._check_host(scope, headers)
            page = None if self._pages is None else self._pages.find(scope, headers, path_of(scope))
            if page is not None:
                await page(scope, receive, answer)
                return
            scope["state"]["principal"] = await self._let_in(scope, headers)
        except Problem as problem:
            await send_problem(problem, scope, answer)
            return
        await self._inner(scope, receive, answer)

    async def _check_host(self, scope: Scope, headers: Headers) -> None:
        if self._hosts is None or path_of(scope) in OPEN or host_of(headers) in self._hosts:
            return
        if not await self._is_by_bearer(scope, headers):
            raise Problem(421, "this service does not answer to that name: start it with --allowed-host")

    async def _is_by_bearer(self, scope: Scope, headers: Headers) -> bool:
        """Return whether only a bearer token can let the caller in, which no page of another site has. With
        --no-token, and where the host knows its visitors by something else, any page could make one up."""
        if bearer_of(headers) is None:
            return False
        others = [pair for pair in scope["headers"] if pair[0].lower() != b"authorization"]
        found = self._auth({**scope, "headers": others})
        return (await found if isinstance(found, Awaitable) else found) is None

    async def _let_in(self, scope: Scope, headers: Headers) -> Principal | None:
        """Return who calls; None for a path that is open to everybody. Raises Problem."""
        bearer = bearer_of(headers)
        if bearer is None and (path_of(scope) in OPEN or path_of(scope).startswith(PROBLEMS)):
            return None
        login = path_of(scope) == LOGIN and scope["method"] == "POST"
        if scope["method"] not in SAFE and not await self._is_by_bearer(scope, headers):
            check_origin(scope, headers, strict="cookie" in headers and not login)
        if login:
            return None
        principal = await self._principal(scope)
        if principal is None:
            if bearer is None and cookie_of(headers) is not None:
                self._failures.take(address_of(scope), FAILURES)
            raise Problem(401, "send a valid token: `Authorization: Bearer …`", headers={"WWW-Authenticate": "Bearer"})
        if not self._lets(principal):
            raise Problem(403, f"{principal.name} has no rights in this namespace")
        if principal.per_minute is not None:
            self._requests.take(principal.name, principal.per_minute)
        scope["state"]["judge"] = lambda: self._judge(scope)
        return principal

    def _lets(self, principal: Principal) -> bool:
        return self._namespace is None or principal.enters(self._namespace)

    async def _judge(self, scope: Scope) -> Principal | None:
        """Return who has called, if the caller would still be let in."""
        principal = await self._principal(scope)
        return principal if principal is not None and self._lets(principal) else None

    async def _principal(self, scope: Scope) -> Principal | None:
        found = self._auth(scope)
        principal = await found if isinstance(found, Awaitable) else found
        if principal is None and self._sessions is not None and bearer_of(Headers(scope=scope)) is None:
            return await self._of_session(self._sessions, scope)
        return principal

    async def _of_session(self, sessions: Sessions, scope: Scope) -> Principal | None:
        """A person who waits hears soon that the store is away: no verb is sent again for long."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await sessions.find(scope)
        except TimeoutError:
            raise problem_of(StoreUnavailable("the store did not answer in time")) from None
        except RotaError as error:
            raise problem_of(error) from None


def path_of(scope: Scope) -> str:
    """Return the path below the one at which the service is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root) if path == root or path.startswith(f"{root}/") else path


def bearer_of(headers: Headers) -> str | None:
    """Return the token of the Authorization header; None without one."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


def address_of(scope: Scope) -> str:
    return str(scope["client"][0]) if scope.get("client") else ""


def host_of(headers: Headers) -> str:
    """Return the name in the Host header, without its port."""
    host = headers.get("host", "").strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def check_origin(scope: Scope, headers: Headers, strict: bool = True) -> None:
    """Refuse a write that a page of another site sends with what the browser of its visitor adds by itself: the cookie
    of a session, of the host or of a proxy before the service, or its place on this machine. Not `strict`: a caller
    that sends neither header is no browser, and may go on."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        allowed = site == "same-origin"
    elif not strict and "origin" not in headers:
        allowed = True
    else:
        allowed = headers.get("origin") == f"{scope.get('scheme', 'http')}://{headers.get('host', '')}"
    if not allowed:
        raise Problem(403, "a page of another site may not do this")


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a service that listens on `host`."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


async def send_problem(problem: Problem, scope: Scope, send: Send) -> None:
    body = problem.body(str(scope.get("root_path", "")), scope["state"]["request_id"])
    headers = {"Content-Type": MEDIA_TYPE, "Content-Length": str(len(body)), **problem.headers}
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": raw})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
