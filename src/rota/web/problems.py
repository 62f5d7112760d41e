"""Problems: every error of the service, as application/problem+json (RFC 9457)."""

import re
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from rota.errors import (
    InvalidArguments,
    InvalidOptions,
    NotUndoable,
    QueueFull,
    Refused,
    RotaError,
    RunNotFound,
    ScheduleChanged,
    ScheduleNotFound,
    ScheduleTaken,
    StaleClaim,
    StoreError,
    StoreUnavailable,
    UnknownTask,
    Unstorable,
    WorkerNotFound,
)

MEDIA_TYPE = "application/problem+json"

TITLES = {
    400: "bad request",
    401: "no valid credential",
    403: "not allowed",
    404: "not found",
    405: "method not allowed",
    408: "too slow",
    409: "conflict",
    410: "gone",
    412: "changed meanwhile",
    413: "too large",
    415: "unsupported media type",
    421: "misdirected request",
    422: "invalid content",
    428: "condition required",
    429: "too many requests",
    500: "internal error",
    503: "unavailable",
}
WORDS = {status: title.replace(" ", "-") for status, title in TITLES.items()}
"""The last part of a problem's `type`: /problems/<word>."""
MEANINGS = {
    400: "The request cannot be read: its body is no JSON, or its cursor belongs to a list with another filter.",
    401: "Send a token as `Authorization: Bearer rota_...`. `rota token new NAME --role operator` makes one; a "
    "token may have ended.",
    403: "The credential is known, and lacks the right that `detail` names; or a page of another site sent the "
    "request.",
    404: "Nothing has this name, or nothing that this credential may see.",
    405: "This path takes other methods: see the header Allow.",
    408: "The body of the request came too slowly, or not at all. The connection is closed.",
    409: "The state of the thing does not allow this now. `reason` is a word of rota's one list of reasons; "
    "`run` is the run that is in the way, `retry_at` when a window or a rest that refused a submit is over.",
    410: "The run has ended and is no longer kept; only its id is remembered.",
    412: "It has changed since you read it. Read it again, and send If-Match with the ETag that you get.",
    413: "The body has at most 1 MiB, the arguments of a run at most 256 KiB.",
    415: "Send the body as application/json.",
    421: "The service does not answer to the name in the header Host. Start it with --allowed-host NAME.",
    422: "The request is understood, and wrong: `errors` has the place of each mistake as a JSON pointer, or "
    "as ?name of the query.",
    428: "It exists already. Send If-Match with its ETag to replace it, or If-None-Match: * to make it only if "
    "it is new.",
    429: "Too much at once: the queue of the task is full, or this credential or address has made its "
    "requests. Wait as long as Retry-After says.",
    500: "An error that the service did not expect. Its log has the request id that `instance` names.",
    503: "The store does not answer, or the service stops. Nothing is lost; send the request again after Retry-After.",
}
"""What a caller does about each, for the page that `type` names."""


class Flaw(Struct, frozen=True):
    """One thing that is wrong with a request. `pointer` is a JSON pointer into the body, or ?name of the query."""

    pointer: str
    detail: str


class Problem(Exception):
    """An answer that is an error. `extra` are fields beside those of every problem."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        reason: str | None = None,
        errors: Sequence[Flaw] = (),
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.reason = reason
        self.errors = errors
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})
        self.content = b""
        """The body that does not fit; for what it takes to say why."""

    def body(self, prefix: str, request_id: str) -> bytes:
        fields: dict[str, object] = {
            "type": f"{prefix}/problems/{WORDS[self.status]}",
            "title": TITLES[self.status],
            "status": self.status,
            "detail": self.detail,
            "instance": request_id,
        }
        if self.reason is not None:
            fields["reason"] = self.reason
        if self.errors:
            fields["errors"] = self.errors
        return msgspec.json.encode(fields | self.extra)


class ProblemBody(Struct, frozen=True, omit_defaults=True):
    """The fields of a problem, for the OpenAPI document."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    reason: str | None = None
    errors: list[Flaw] = []
    run: str | None = None
    retry_at: str | None = None


_PLACES = (
    re.compile(r" - at `\$(?P<steps>[^`]+)`"),  # of msgspec: Expected `int`, got `str` - at `$.a[0]`
    re.compile(r"^[^ ]+: (?P<pointer>/[^ :]+)(?:: | is )"),  # of the schema of a task: resize: /path is missing
    re.compile(r"(?:argument:?|no parameter) '(?P<name>\w+)'"),  # of a signature: missing a required argument: 'a'
)


def place_in_args(words: str) -> str:
    """Return the JSON pointer, below the arguments, of what an error is about; empty if it is about all of them."""
    for pattern in _PLACES:
        if found := pattern.search(words):
            named = found.groupdict()
            if "steps" in named:
                return re.sub(r"[.\[]([^.\[\]]+)\]?", r"/\1", named["steps"].partition("[...]")[0])
            return named.get("pointer") or f"/{named['name']}"
    return ""


RETRY_AFTER = {"Retry-After": "1"}


def problem_of(error: RotaError) -> Problem:
    """Return what an error of rota means to a caller of the service. No stack and no address of a store goes out."""
    match error:
        case QueueFull():
            return Problem(429, str(error), reason="queue_full", headers=RETRY_AFTER)
        case Refused():
            run = error.decision.run or None
            return Problem(409, str(error), reason=str(error.reason), extra={"run": run} if run else {})
        case RunNotFound() | ScheduleNotFound() | WorkerNotFound():
            return Problem(404, str(error))
        case UnknownTask():
            return Problem(404, str(error), reason="unknown_task")
        case ScheduleChanged():
            return Problem(412, str(error))
        case StaleClaim():
            return Problem(409, str(error), extra={"n": error.n})
        case ScheduleTaken() | NotUndoable():
            return Problem(409, str(error))
        case InvalidArguments():
            return Problem(422, str(error), errors=[Flaw(f"/args{place_in_args(str(error))}", str(error))])
        case InvalidOptions() | Unstorable():
            return Problem(422, str(error))
        case StoreUnavailable():
            return Problem(503, "the store does not answer: try again", headers=RETRY_AFTER)
        case StoreError():
            return Problem(503, "the store cannot be used: `rota doctor` says why", headers={"Retry-After": "60"})
        case _:
            return Problem(500, "the service met an error that it did not expect: its log has the request id")
