"""Routes: the one table of the service. A row names the path, the right, the shapes of request and answer, and the
function that answers. The rights, the OpenAPI document and the tests are made from it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

from msgspec import Struct
from starlette.requests import Request

from rota.app.app import Rota
from rota.client.client import Client
from rota.web.rights import Principal, Right

Q = TypeVar("Q")
B = TypeVar("B")


class NoQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """A request without parameters."""


class NoteBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A write whose only content is why it is made."""

    note: str | None = None


class Answer(Struct, frozen=True):
    """What a route answers. `body` is encoded as JSON; None: no body."""

    body: object = None
    status: int = 200
    headers: Mapping[str, str] = {}


class Call(Struct, Generic[Q, B], frozen=True):
    """One request that was let in, with its query and body as structs."""

    app: Rota
    client: Client
    principal: Principal
    path: Mapping[str, str]
    query: Q
    body: B
    request: Request

    @property
    def prefix(self) -> str:
        """The path under which the service is mounted; empty at the root of a host."""
        return str(self.request.scope.get("root_path", ""))


class Route(Struct, Generic[Q, B], frozen=True):
    """One row of the table. `right` None: everybody who has a credential; `open`: everybody."""

    method: str
    path: str
    summary: str
    right: Right | None
    handler: Callable[[Call[Q, B]], Awaitable[Answer]]
    query: type[Q]
    body: type[B] | None = None
    answers: Mapping[int, Any] = {}
    """A type, or a JSON schema, by status."""
    open: bool = False
    also: tuple[int, ...] = ()
    """Other statuses of errors than those that every route of its kind may answer."""

    @property
    def operation(self) -> str:
        """The name of the operation in the OpenAPI document."""
        words = [word.strip("{}") for word in self.path.removeprefix(API).split("/") if word]
        return "_".join([self.method.lower(), *words]).replace("-", "_").replace(".", "_")


API = "/api/v1"


def get(
    path: str,
    summary: str,
    right: Right | None,
    handler: Callable[[Call[Q, None]], Awaitable[Answer]],
    answer: Any,
    query: type[Q] = NoQuery,  # type: ignore[assignment]
    *,
    open: bool = False,
    also: tuple[int, ...] = (),
) -> Route[Any, Any]:
    return Route("GET", path, summary, right, handler, query, None, {200: answer}, open, also)


def write(
    method: str,
    path: str,
    summary: str,
    right: Right,
    handler: Callable[[Call[NoQuery, B]], Awaitable[Answer]],
    body: type[B] | None,
    answers: Mapping[int, Any],
    also: tuple[int, ...] = (),
) -> Route[Any, Any]:
    return Route(method, path, summary, right, handler, NoQuery, body, answers, False, also)
