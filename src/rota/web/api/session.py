"""Sessions for browsers: log in with a token, log out."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from rota.web.gate import address_of
from rota.web.problems import Problem
from rota.web.quotas import Quota
from rota.web.routes import API, Answer, Call, NoQuery, Route
from rota.web.sessions import Sessions, cookie, seconds_of

LOGINS = 5
"""Logins of an address in a minute."""
PATH = f"{API}/session"


class LoginBody(Struct, frozen=True, forbid_unknown_fields=True):
    token: Annotated[str, Meta(min_length=1, max_length=1000)]


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
    return Answer(status=204, headers={"Set-Cookie": cookie(scope, secret, seconds_of(principal))})


async def logout(call: Call[NoQuery, None]) -> Answer:
    sessions: Sessions | None = call.request.app.state.sessions
    if sessions is not None:
        await sessions.end(call.request.scope)
    return Answer(status=204, headers={"Set-Cookie": cookie(call.request.scope, "", 0)})


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
]
