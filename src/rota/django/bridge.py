"""Bridge: the HTTP service of rota, called from code of Django. It runs on the engine's own loop, under any server."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, unquote, urlencode

import msgspec
from msgspec import Struct

from rota.errors import MissingExtra

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from rota.web.rights import Principal

API = "/api/v1"
Headers = Sequence[tuple[bytes, bytes]]

_lock = threading.Lock()
_services: list[Any] = []


class Answer(Struct, frozen=True):
    """What the service answers."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def ok(self) -> bool:
        return self.status < 400

    @property
    def json(self) -> dict[str, Any]:
        return cast("dict[str, Any]", msgspec.json.decode(self.body)) if self.body else {}

    @property
    def detail(self) -> str:
        """Why the service refused, in words."""
        return str(self.json.get("detail") or self.json.get("title") or self.status)


def principal_of(user: "AbstractBaseUser | AnonymousUser") -> "Principal | None":
    """Return what a member of staff may do, by the permissions of Django; None for everybody else."""
    from rota.web.rights import Principal, Right

    if not (user.is_active and getattr(user, "is_staff", False)):
        return None
    allowed: Any = user
    rights: set[Right] = set()
    if allowed.has_perm("rota.view_run"):
        rights |= {Right.READ, Right.PAYLOAD, Right.METRICS}
    if allowed.has_perm("rota.change_run"):
        rights |= {Right.OPERATE, Right.SUBMIT}
    if allowed.has_perm("rota.change_schedule"):
        rights |= {Right.SCHEDULE}
    return Principal(str(allowed.get_username()), frozenset(rights)) if rights else None


def call_service(
    principal: "Principal | None",
    method: str,
    path: str,
    query: dict[str, str] | None = None,
    body: dict[str, Any] | None = None,
) -> Answer:
    """Send one request; `path` is below the root of the service, and its parts are quoted already."""
    raw = b"" if body is None else msgspec.json.encode(body)
    headers = [(b"content-type", b"application/json")] if body is not None else []
    return send(principal, method, path, urlencode(query or {}).encode(), raw, headers)


def part(text: str) -> str:
    """Return `text` as one part of a path."""
    return quote(text, safe="")


def send(
    principal: "Principal | None",
    method: str,
    path: str,
    query: bytes = b"",
    body: bytes = b"",
    headers: Headers = (),
    root: str = "",
    secure: bool = False,
    client: str = "",
) -> Answer:
    """Send one request as it is. `root` is the path at which the service is mounted."""
    from rota.django.project import app

    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "https" if secure else "http",
        "path": unquote(root + path),
        "raw_path": (root + path).encode(),
        "root_path": root,
        "query_string": query,
        "headers": list(headers),
        "client": (client, 0) if client else None,
        "server": None,
        "rota": principal,
    }
    return app().portal.call(lambda: _answer(_service(), scope, body))


async def _answer(service: Any, scope: dict[str, Any], body: bytes) -> Answer:
    started: dict[str, Any] = {}
    parts: list[bytes] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def answer(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            started.update(message)
        else:
            parts.append(message.get("body", b""))

    await service(scope, receive, answer)
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in started["headers"]]
    return Answer(int(started["status"]), headers, b"".join(parts))


def _service() -> Any:
    """Return the service of this process's app; callers are judged before they come here."""
    with _lock:
        if not _services:
            try:
                from rota.web import asgi
            except ModuleNotFoundError as error:
                raise MissingExtra(f'{error.name} is not installed: pip install "rota[django]"') from None
            from rota.django.project import app

            _services.append(asgi(app(), lambda scope: scope["rota"]))
        return _services[0]
