"""Several namespaces in one service: each has the API and the pages of its own, at /ns/NAME."""

import re
from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from rota.errors import InvalidOptions
from rota.web.gate import path_of

OWN = "default"
"""What tokens call the namespace of the app itself, if it has no name."""
PREFIX = "/ns/"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}", re.ASCII)


def check_name(name: str) -> str:
    """Return the name of a namespace that can stand in a path."""
    if _NAME.fullmatch(name) is None:
        raise InvalidOptions(f"namespace {name!r}: letters, digits, _, . and -, at most 63 characters")
    return name


class Namespaces:
    """Passes a request on to the namespace that its path names; all others go to the app's own."""

    def __init__(self, own: ASGIApp, others: Mapping[str, ASGIApp]) -> None:
        self._own = own
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = path_of(scope) if scope["type"] == "http" else ""
        name = path.removeprefix(PREFIX).partition("/")[0] if path.startswith(PREFIX) else ""
        if name in self._others:
            scope = {**scope, "root_path": f"{scope.get('root_path', '')}{PREFIX}{name}"}
            await self._others[name](scope, receive, send)
        else:
            await self._own(scope, receive, send)
