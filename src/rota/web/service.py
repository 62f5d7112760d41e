"""The service: an ASGI application for one app, made from the table of routes."""

import gzip
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import msgspec
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from rota.app.app import Rota
from rota.app.core import core_of
from rota.client.audit import Author, acting
from rota.client.watched import StoreTime, store_time
from rota.errors import InvalidOptions, RotaError
from rota.pull.pulling import Pulling
from rota.views.values import iso
from rota.web.authors import Refusals, action_of, author_of, is_audited
from rota.web.conditions import is_known
from rota.web.control_room import Pages, takes_gzip
from rota.web.gate import Auth, Gate
from rota.web.inputs import read_body, read_query
from rota.web.labels import Labels
from rota.web.namespaces import OWN, Namespaces, check_name
from rota.web.openapi import document
from rota.web.own_metrics import OwnMetrics
from rota.web.problems import MEDIA_TYPE, Problem, problem_of
from rota.web.quotas import Quota
from rota.web.rights import Principal, Right
from rota.web.routes import API, Answer, Call, EventText, NoQuery, Route, get
from rota.web.sessions import Sessions
from rota.web.streams import Streams
from rota.web.submitting import with_parameters
from rota.web.table import ROUTES
from rota.web.tokens import Tokens

log = logging.getLogger("rota.web")

AUDIT_ID = "Rota-Audit"
"""The header of an answer that has the id of the audit entry about it: what `POST /audit/{id}/undo` takes."""
PACKED_FROM, PACKED_HOW = 1024, 3
"""Bytes from which an answer is sent as gzip to callers that take it, and how hard gzip tries."""
NOBODY = Principal("", frozenset())

Endpoint = Callable[[Request], Awaitable[Response]]


def asgi(
    app: Rota,
    auth: Auth | None = None,
    hosts: Collection[str] | None = None,
    namespaces: Mapping[str, Rota] | None = None,
) -> ASGIApp:
    """Return the HTTP API of `app` with the control room, to be served or mounted under any path.

    `auth(scope)` says who calls. Without it, the service lets nobody in. `hosts`: see Gate. `namespaces`: apps of other
    namespaces, by name; each is served at /ns/NAME.
    """
    made, streams = service(app, auth, hosts, pages=Pages(), others=namespaces)
    core_of(app).on_termination.extend(each.stop for each in streams)
    return made


def service(
    app: Rota,
    auth: Auth | None = None,
    hosts: Collection[str] | None = None,
    tokens: Tokens | None = None,
    pages: Pages | None = None,
    others: Mapping[str, Rota] | None = None,
) -> tuple[ASGIApp, list[Streams]]:
    """Return the service and its streams, which have to end before a server can stop. With `tokens`, browsers can log
    in. `others`: further namespaces by their names, each at /ns/NAME. A session of a browser holds in all of them."""
    apps = {app.settings.namespace or OWN: app}
    for name, other in (others or {}).items():
        if check_name(name) in apps:
            raise InvalidOptions(f"namespace {name!r} is the one of the app: it is served at /")
        apps[name] = other
    sessions = None if tokens is None else Sessions(app, tokens)
    gates: dict[str, ASGIApp] = {}
    streams: list[Streams] = []
    for name, each in apps.items():
        own = OwnMetrics()
        streams.append(Streams(each))
        inner = _application(each, streams[-1], sessions, own)
        inner.state.namespaces = tuple(others or ())
        namespace = name if others else None
        gates[name] = Gate(inner, auth or _nobody, hosts, sessions, pages, own.answered, namespace)
    first, *rest = gates
    return Namespaces(gates[first], {name: gates[name] for name in rest}) if rest else gates[first], streams


def _nobody(scope: object) -> Principal | None:
    return None


def _application(app: Rota, streams: Streams, sessions: Sessions | None, own: OwnMetrics) -> Starlette:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with app.client():
            yield
            streams.stop()

    async def openapi(call: Call[NoQuery, None]) -> Answer:
        return Answer(document([*ROUTES, described], call.prefix))

    described = get(f"{API}/openapi.json", "This document", None, openapi, {"type": "object"})
    paths: dict[str, list[Route[Any, Any]]] = {}
    for route in (*ROUTES, described):
        paths.setdefault(route.path, []).append(route)
    pulling = Pulling(app.client(), core_of(app).hooks)
    made = Starlette(
        routes=[_at(path, _endpoint(app, paths[path], pulling)) for path in sorted(paths, key=_order)],
        exception_handlers={
            Problem: _on_problem,
            RotaError: _on_rota_error,
            HTTPException: _on_http_error,
            ClientDisconnect: _on_disconnect,
            Exception: _on_error,
        },
        lifespan=lifespan,
    )
    app.client().observe = own.called
    core_of(app).hooks.observe = own.ended
    made.state.streams = streams
    made.state.own_metrics = own
    made.state.labels = Labels()
    made.state.refusals = Refusals()
    made.state.sessions = sessions
    made.state.logins = Quota("too many logins from this address")
    return made


def _order(path: str) -> list[int]:
    """Return a key that sorts `/runs/count` before `/runs/{id}`, and a rest of any length behind everything."""
    return [*(2 if ":path" in part else 1 if "{" in part else 0 for part in path.split("/")), 3]


def _at(path: str, endpoint: Endpoint) -> StarletteRoute:
    route = StarletteRoute(path, endpoint)
    route.methods = None  # any: the endpoint itself answers 405, and names the methods
    return route


def _endpoint(app: Rota, routes: Sequence[Route[Any, Any]], pulling: Pulling) -> Endpoint:
    """Return what answers at one path, whatever the method."""
    by_method = {route.method: route for route in routes}
    allowed = ", ".join(sorted({*by_method, *(("HEAD",) if "GET" in by_method else ())}))

    async def answer(request: Request) -> Response:
        route = by_method.get("GET" if request.method == "HEAD" else request.method)
        if route is None:
            raise Problem(405, f"this path takes {allowed}", headers={"Allow": allowed})
        request.state.route = route.template
        store_time.set(StoreTime())
        return _response(request, await _call(app, route, request, pulling))

    return answer


async def _call(app: Rota, route: Route[Any, Any], request: Request, pulling: Pulling) -> Answer:
    """Answer a request. What people change is audited: the verb of the store keeps the entry, or it follows here."""
    principal: Principal = request.state.principal or NOBODY
    author = author_of(route, request, principal)
    if author is None:
        return await _answer(app, route, request, principal, pulling)
    own: OwnMetrics = request.app.state.own_metrics
    with acting(author) if is_audited(route) else nullcontext():
        try:
            answer = await _answer(app, route, request, principal, pulling, author)
            return answer if author.last is None else replace(answer, headers={**answer.headers, AUDIT_ID: author.last})
        except Exception as error:
            await request.app.state.refusals.keep(app.client(), route, request, author, error)
            raise
        finally:
            if author.last is not None:
                own.audited(action_of(route))


async def _answer(
    app: Rota,
    route: Route[Any, Any],
    request: Request,
    principal: Principal,
    pulling: Pulling,
    author: Author | None = None,
) -> Answer:
    if not route.open:
        _check_right(principal, route.right)
    query = read_query(request, route.query)
    try:
        body = None if route.body is None else await read_body(request, route.body)
    except Problem as problem:
        raise await with_parameters(app, problem, request.path_params.get("name")) from None
    if author is not None:
        author.note = getattr(body, "note", None) or getattr(query, "note", None)
    call = Call(app, app.client(), principal, request.path_params, query, body, request, pulling)
    return await route.handler(call)


def _check_right(principal: Principal, right: Right | None) -> None:
    """Raise a 403 that names the missing right."""
    if right is not None and not principal.may(right):
        raise Problem(403, f"{principal.name or 'the caller'} needs the right {right}", extra={"right": right})


class _EventResponse(StreamingResponse):
    """An answer that goes on until its caller or the service ends it."""

    def __init__(self, text: EventText, answer: Answer) -> None:
        headers = {"X-Accel-Buffering": "no", **answer.headers}
        super().__init__(text.parts, answer.status, headers, "text/event-stream")
        self._leave = text.leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


def _response(request: Request, answer: Answer) -> Response:
    if isinstance(answer.body, EventText):
        return _EventResponse(answer.body, answer)
    if is_known(request, answer.headers.get("ETag")):
        return Response(status_code=304, headers=dict(answer.headers))
    if answer.body is None:
        return Response(status_code=answer.status, headers=dict(answer.headers))
    body = answer.body if isinstance(answer.body, bytes) else _json(answer.body)
    headers = {"Content-Type": "application/json", **answer.headers}
    if len(body) > PACKED_FROM:
        headers["Vary"] = "Accept-Encoding"
        if takes_gzip(request.headers):
            body, headers["Content-Encoding"] = gzip.compress(body, PACKED_HOW, mtime=0), "gzip"
    return Response(body, answer.status, headers)


def _json(body: object) -> bytes:
    """Return JSON. An object says what time it was in the store, whose clock alone decides what is past."""
    text, told = msgspec.json.encode(body), store_time.get()
    has_now = "now" in body if isinstance(body, dict) else hasattr(body, "now")
    if has_now or told is None or told.now is None or not text.startswith(b"{"):
        return text
    return b'%b%b"now":"%b"}' % (text[:-1], b"" if text == b"{}" else b",", iso(told.now).encode())


def _problem(request: Request, problem: Problem) -> Response:
    prefix = str(request.scope.get("root_path", ""))
    body = problem.body(prefix, request.state.request_id)
    return Response(body, problem.status, {"Content-Type": MEDIA_TYPE, **problem.headers})


async def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return _problem(request, error)


async def _on_rota_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RotaError)
    problem = problem_of(error)
    if problem.status >= 500:
        log.warning("%s %s: %s", request.method, request.url.path, error, extra={"request": request.state.request_id})
    return _problem(request, problem)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known = error.status_code if error.status_code in (400, 404, 405) else 500
    words = {404: "there is nothing at this path", 400: "the request cannot be read"}
    return _problem(request, Problem(known, words.get(known, str(error.detail))))


async def _on_disconnect(request: Request, error: Exception) -> Response:
    return _problem(request, Problem(400, "the caller went away before the body had ended"))


async def _on_error(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _problem(request, problem_of(RotaError()))
