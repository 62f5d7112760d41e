"""Sessions for browsers: log in with a token, log out; and who has a token."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from rota.client.audit import Author
from rota.views.shapes import listing, shape_of
from rota.views.values import iso, record
from rota.web.gate import address_of
from rota.web.problems import Problem
from rota.web.quotas import Quota
from rota.web.rights import Principal, Right
from rota.web.routes import API, Answer, Call, NoQuery, Route, get
from rota.web.sessions import Open, Sessions, cookie, seconds_of

LOGINS = 5
"""Logins of an address in a minute."""
PATH = f"{API}/session"


class LoginBody(Struct, frozen=True, forbid_unknown_fields=True):
    token: Annotated[str, Meta(min_length=1, max_length=1000)]


class TokenView(Struct, frozen=True):
    """Whom the service knows by a credential of its own. `tokens`: how many the name has; none if only a proxy lets it
    in. Empty `tasks`, `queues`, `namespaces`: all of them."""

    name: str
    tokens: int
    rights: tuple[str, ...]
    tasks: tuple[str, ...]
    queues: tuple[str, ...]
    namespaces: tuple[str, ...]
    expires_at: str | None
    per_minute: int | None


async def login(call: Call[NoQuery, LoginBody]) -> Answer:
    """Begin a session with a secret of its own, whatever cookie came along; the session of that cookie ends."""
    state, scope = call.request.app.state, call.request.scope
    sessions: Sessions | None = state.sessions
    if sessions is None:
        raise Problem(404, "this service has no login of its own: its host says who calls")
    quota: Quota = state.logins
    quota.take(address_of(scope), LOGINS)
    begun = await sessions.begin(call.body.token)
    if begun is None:
        raise Problem(401, "no such token", headers={"WWW-Authenticate": "Bearer"})
    await sessions.end(scope)
    secret, principal = begun
    await _tell(call, principal.name, "sessions.begin")
    return Answer(status=204, headers={"Set-Cookie": cookie(scope, secret, seconds_of(principal))})


async def _tell(call: Call[Any, Any], by: str, action: str, *subjects: str) -> None:
    """Keep an audit entry: who began or ended a session, and from where."""
    author = Author(by, "http", request=call.request.state.request_id, address=address_of(call.request.scope) or None)
    await call.client.audit([author.entry(action, subjects, changed=1)])


async def logout(call: Call[NoQuery, None]) -> Answer:
    sessions: Sessions | None = call.request.app.state.sessions
    if sessions is not None:
        await sessions.end(call.request.scope)
        await _tell(call, call.principal.name, "sessions.end")
    return Answer(status=204, headers={"Set-Cookie": cookie(call.request.scope, "", 0)})


async def sessions(call: Call[NoQuery, None]) -> Answer:
    """The caller's own; none where the host says who calls."""
    kept: Sessions | None = call.request.app.state.sessions
    found = [] if kept is None else await kept.of(call.request.scope, call.principal.name)
    return Answer({"items": [record(each) for each in found], "next": None, "now": iso(await call.client.now())})


async def close(call: Call[NoQuery, None]) -> Answer:
    kept: Sessions | None = call.request.app.state.sessions
    if kept is None or not await kept.close(call.principal.name, call.path["id"]):
        raise Problem(404, f"{call.principal.name} has no session with this id")
    await _tell(call, call.principal.name, "sessions.end", call.path["id"])
    return Answer(status=204)


async def tokens(call: Call[NoQuery, None]) -> Answer:
    """Names and rights only: nobody gets to see a token, or its digest, again."""
    kept: Sessions | None = call.request.app.state.sessions
    found = [] if kept is None else [_token(*each) for each in kept.tokens.known()]
    return Answer({"items": [record(each) for each in found], "next": None, "now": iso(await call.client.now())})


def _token(who: Principal, count: int) -> TokenView:
    expires = None if who.expires is None else iso(who.expires)
    rights = tuple(right.value for right in Right if right in who.rights)
    return TokenView(who.name, count, rights, who.tasks, who.queues, who.namespaces, expires, who.per_minute)


OPEN = shape_of(Open)
TOKEN = shape_of(TokenView)
ROUTES: list[Route[Any, Any]] = [
    Route(
        "POST",
        PATH,
        "Log in: a session for a browser",
        None,
        login,
        NoQuery,
        LoginBody,
        {204: None},
        open=True,
        also=(400, 401, 403, 404, 421, 422, 429, 500, 503),
    ),
    Route("DELETE", PATH, "Log out", None, logout, NoQuery, None, {204: None}),
    Route("GET", f"{API}/sessions", "My sessions", None, sessions, NoQuery, None, {200: listing(OPEN)}),
    Route(
        "DELETE",
        f"{API}/sessions/{{id}}",
        "End one of my sessions",
        None,
        close,
        NoQuery,
        None,
        {204: None},
        also=(404,),
    ),
    get(f"{API}/tokens", "Whom the service knows, and what they may do", Right.ADMIN, tokens, listing(TOKEN)),
]
