"""Sessions: a browser shows its token once, and has a cookie from then on.

A session is a run of the task `rota.session:`, which never starts: every store can keep it, every replica knows it, and
it ends by its expiry, by a cancel, or with its token. The id of the run is a digest of the cookie.
"""

import hashlib
import secrets
import time

import msgspec
from msgspec import Struct
from starlette.datastructures import Headers
from starlette.types import Scope

from rota.app.app import Rota
from rota.client.fleet import SESSION_TASK
from rota.domain import codec
from rota.domain.policy import FAR, Policy
from rota.domain.run import NewRun, Origin, State
from rota.store import Command, RunQuery
from rota.web.rights import Principal
from rota.web.tokens import LONGEST, Tokens, fingerprint

SECONDS = 12 * 3600
"""How long a session lasts."""
COOKIES = ("__Host-rota", "rota")
BYTES = 32
SHOWN = 100
"""Sessions that a list shows."""


class Kept(Struct, frozen=True):
    """What the store keeps of a session. The name says that the fingerprint is not to be shown."""

    name: str
    token_sha256: str


class Open(Struct, frozen=True):
    """A session that has not ended. Its id tells nobody its secret. `here`: the caller uses it."""

    id: str
    created_at: float
    expires_at: float | None
    here: bool


class Sessions:
    def __init__(self, app: Rota, tokens: Tokens) -> None:
        self._app = app
        self._tokens = tokens

    @property
    def tokens(self) -> Tokens:
        return self._tokens

    async def begin(self, token: str) -> tuple[str, Principal] | None:
        """Return the secret of a new session; None if the token is nobody's. A session never has an old secret."""
        principal = self._tokens.find(token)
        if principal is None:
            return None
        client, secret = self._app.client(), secrets.token_urlsafe(BYTES)
        kept = msgspec.json.encode(Kept(principal.name, fingerprint(token[:LONGEST])))
        run = NewRun(
            id=_id(secret),
            task=SESSION_TASK,
            body=codec.encode(kept, Origin(), Policy()),
            key=principal.name[:200] or None,
            delay=FAR,
            expires_at=await client.now() + seconds_of(principal),
        )
        decision = await client.submit(run)
        return (secret, principal) if decision else None

    async def find(self, scope: Scope) -> Principal | None:
        """Return who has the session of the cookie; None if it has ended, or its token has."""
        secret = cookie_of(Headers(scope=scope))
        if secret is None:
            return None
        page = await self._app.client().runs(RunQuery(ids=[_id(secret)]))
        for run in page.runs:
            ended = run.state is not State.QUEUED or run.expires_at is None or run.expires_at <= page.now
            if run.task == SESSION_TASK and not ended:
                kept = msgspec.json.decode(run.args, type=Kept)
                return self._tokens.of(kept.token_sha256)
        return None

    async def of(self, scope: Scope, name: str) -> list[Open]:
        """Return the open sessions of a name, the newest first."""
        here = cookie_of(Headers(scope=scope))
        query = RunQuery(task=SESSION_TASK, state=[State.QUEUED], key=name[:200], limit=SHOWN)
        runs = (await self._app.client().runs(query)).runs
        return [Open(run.id, run.created_at, run.expires_at, here is not None and run.id == _id(here)) for run in runs]

    async def close(self, name: str, id: str) -> bool:
        """End a session of this name on every replica; False if it has none of this id."""
        page = await self._app.client().runs(RunQuery(ids=[id]))
        mine = [run for run in page.runs if run.task == SESSION_TASK and run.key == name[:200] and not run.state.final]
        if mine:
            await self._app.client().control(Command.CANCEL, [id], "ended")
        return bool(mine)

    async def end(self, scope: Scope) -> None:
        """End the session of the cookie on every replica."""
        secret = cookie_of(Headers(scope=scope))
        if secret is not None:
            await self._app.client().control(Command.CANCEL, [_id(secret)], "logout")


def seconds_of(principal: Principal) -> float:
    left = SECONDS if principal.expires is None else principal.expires - time.time()
    return max(1.0, min(SECONDS, left))


def cookie_of(headers: Headers) -> str | None:
    """Return the secret in the cookie. The name that only a page of this host can set wins."""
    pairs = [part.strip().partition("=") for part in headers.get("cookie", "").split(";")]
    found = {name: value for name, _, value in reversed(pairs) if name in COOKIES and 0 < len(value) <= LONGEST}
    return next((found[name] for name in COOKIES if name in found), None)


def cookie(scope: Scope, secret: str, seconds: float) -> str:
    """Return the header that sets the cookie; without a secret, the one that removes it."""
    https, root = scope.get("scheme") == "https", str(scope.get("root_path", ""))
    name = "__Host-rota" if https and not root else "rota"
    words = [f"{name}={secret}", f"Path={root or '/'}", f"Max-Age={int(seconds)}", "HttpOnly", "SameSite=Strict"]
    return "; ".join([*words, *(["Secure"] if https else [])])


def _id(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()[:48]
