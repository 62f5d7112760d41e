"""Routes: the one table of the service. A row names the path, the right, the shapes of request and answer, and the
function that answers. The rights, the OpenAPI document and the tests are made from it."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from msgspec import Meta, Struct
from starlette.requests import Request

from rota.app.app import Rota
from rota.client.client import Client
from rota.pull.pulling import Pulling
from rota.web.rights import Principal, Right

Q = TypeVar("Q")
B = TypeVar("B")
Text = Annotated[str, Meta(max_length=1000)]
"""Text of a caller: a name, a key, a note."""
Moment = Annotated[datetime, Meta(tz=True)]
"""An instant of a caller: RFC 3339, with its offset or Z."""
TriggerText = Annotated[str, Meta(min_length=1, max_length=256)]
"""A trigger of a caller. Its description in words grows with it, and so does the search for its next fires."""
_CONVERTER = re.compile(r":\w+\}")


class NoQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """A request without parameters."""


class NoteBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A write whose only content is why it is made."""

    note: Text | None = None


class NoteQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """The same for a DELETE, which has no body."""

    note: Text | None = None


class Answer(Struct, frozen=True):
    """What a route answers. `body` is encoded as JSON; None: no body."""

    body: object = None
    status: int = 200
    headers: Mapping[str, str] = {}


class EventText(Struct, frozen=True):
    """The body of an answer that goes on: server-sent events. `leave` is called when the caller is gone."""

    parts: AsyncIterator[bytes]
    leave: Callable[[], None]


class LinesText(Struct, frozen=True):
    """The schema of an answer with a JSON object per line; its body is bytes."""


class HtmlText(Struct, frozen=True):
    """The schema of an answer that is a page; its body is bytes."""


class Call(Struct, Generic[Q, B], frozen=True):
    """One request that was let in, with its query and body as structs."""

    app: Rota
    client: Client
    principal: Principal
    path: Mapping[str, str]
    query: Q
    body: B
    request: Request
    pulling: Pulling

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
    conditions: tuple[str, ...] = ()
    """Headers that change what is done: for which version it is (`web.conditions`), Idempotency-Key, Prefer."""

    @property
    def template(self) -> str:
        """The path as the OpenAPI document has it: `{key:path}`, which may hold slashes, is `{key}`."""
        return _CONVERTER.sub("}", self.path)

    @property
    def operation(self) -> str:
        """The name of the operation in the OpenAPI document."""
        words = [word.strip("{}") for word in self.template.removeprefix(API).split("/") if word]
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
    conditions: tuple[str, ...] = (),
) -> Route[Any, Any]:
    answers = {200: answer} | ({304: None} if conditions else {})
    return Route("GET", path, summary, right, handler, query, None, answers, open, also, conditions)


def write(
    method: str,
    path: str,
    summary: str,
    right: Right,
    handler: Callable[[Call[Q, B]], Awaitable[Answer]],
    body: type[B] | None,
    answers: Mapping[int, Any],
    also: tuple[int, ...] = (),
    *,
    query: type[Q] = NoQuery,  # type: ignore[assignment]
    conditions: tuple[str, ...] = (),
) -> Route[Any, Any]:
    return Route(method, path, summary, right, handler, query, body, answers, False, also, conditions)


def post(
    path: str,
    summary: str,
    right: Right,
    handler: Callable[[Call[NoQuery, B]], Awaitable[Answer]],
    body: type[B],
    answers: Mapping[int, Any],
    also: tuple[int, ...] = (),
) -> Route[Any, Any]:
    return write("POST", path, summary, right, handler, body, answers, also)
