"""http: the built-in task that calls a URL, for schedules that call a service. It exists if `http_hosts` is set."""

import hashlib
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any, Literal

import msgspec

from rota.app.pinned import HEADERS_LIMIT, OURS, REDIRECTS, AllowList, Caller, Received, Resolve, resolve
from rota.domain.policy import Retry
from rota.engine.context import Context
from rota.errors import Discard, RetryAfter, TaskError

HTTP = "http"
"""The name of the task."""
MOST_SECONDS = 300.0
TEXT_LIMIT = 64 * 1024
"""Characters of a body that is kept as text."""
SHOWN = 500
"""Characters of a body that an error shows."""
KEPT = (
    *("content-type", "content-length", "content-encoding", "date", "etag", "last-modified", "location"),
    *("retry-after", "x-request-id", "traceparent"),
)
"""The headers of an answer that are kept. Others may be cookies and tokens, or anything else of the service."""
LATER = (408, 425, 429, 502, 503, 504)
"""Statuses after which the same call may succeed."""
LONGEST_WAIT = 3600.0
OPTIONS: dict[str, Any] = {
    "name": HTTP,
    "retry": Retry(3, delay=5, max_delay=300),
    "description": "Call a URL on an allowed host",
    "executor": "thread",
    "timeout": MOST_SECONDS + 30,
}

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]


def http_task(hosts: Sequence[str], resolver: Resolve = resolve) -> Callable[..., dict[str, Any]]:
    """Return the function of the task, for the hosts that the settings allow."""
    caller = Caller(AllowList(hosts), resolver)

    def http(
        ctx: Context,
        url: str,
        method: Method = "GET",
        json: Any = None,
        headers: dict[str, str] | None = None,
        seconds: float = 30.0,
        redirects: int = 0,
        keep_body: bool = False,
    ) -> dict[str, Any]:
        """Call `url` and return its status, some headers, and the size and the SHA-256 of its body; the body too with
        `keep_body`. `redirects`: how many a GET may follow. The id of the run is sent as Idempotency-Key, so that a
        service can recognise a call that is repeated."""
        if not 0 < seconds <= MOST_SECONDS:
            raise Discard(f"seconds={seconds!r}: more than 0, at most {MOST_SECONDS:g}")
        if not 0 <= redirects <= REDIRECTS:
            raise Discard(f"redirects={redirects!r}: from 0 to {REDIRECTS}")
        body = None if json is None else msgspec.json.encode(json)
        try:
            received = caller.call(method, url, _headers(ctx, headers or {}, body), body, seconds, redirects)
        except (OSError, ValueError) as error:
            raise TaskError("failed", f"{method} {url}: {error}") from None
        return _result(received, f"{method} {url}", keep_body)

    return http


def _headers(ctx: Context, given: dict[str, str], body: bytes | None) -> dict[str, str]:
    if len(given) > HEADERS_LIMIT or any(name.lower() in OURS for name in given):
        raise Discard(f"headers: at most {HEADERS_LIMIT}, and none of {', '.join(OURS)}")
    found = {"Accept": "application/json", "User-Agent": f"rota/{version('rota')}", "Idempotency-Key": ctx.run.id}
    if body is not None:
        found["Content-Type"] = "application/json"
    traced = {name: ctx.headers[name] for name in ("traceparent", "tracestate") if name in ctx.headers}
    return {**found, **traced, **given}


def _result(received: Received, called: str, keep_body: bool) -> dict[str, Any]:
    if received.status >= 400 or received.status < 200:
        words = f"{called} answers {received.status}"
        if keep_body:
            words += f": {received.body[:SHOWN].decode(errors='replace')}"
        wait = received.headers.get("retry-after", "")
        if received.status in LATER and wait.isdecimal():
            raise RetryAfter(min(float(wait), LONGEST_WAIT), words)
        if received.status in LATER or received.status >= 500:
            raise TaskError("failed", words)
        raise Discard(words)
    kept = {name: value for name, value in received.headers.items() if name in KEPT}
    found = {"status": received.status, "headers": kept, "bytes": len(received.body), "sha256": _hash(received.body)}
    return found | ({"body": _body(received)} if keep_body else {})


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _body(received: Received) -> Any:
    """Return the body as JSON, if it is JSON; else as text."""
    if received.headers.get("content-type", "").partition(";")[0].strip().endswith("json"):
        try:
            return msgspec.json.decode(received.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    return received.body.decode(errors="replace")[:TEXT_LIMIT]
