"""What a request carries: its query and its body, checked against a struct, with the place of each mistake."""

import asyncio
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeVar, get_origin, get_type_hints

import msgspec
from starlette.requests import Request

from rota.domain.intake import instant
from rota.web.problems import Flaw, Problem

BODY_LIMIT = 1024 * 1024
"""Bytes of a body."""
BODY_SECONDS = 20.0
"""Seconds within which a body has come."""
DEEPEST = 64
"""How deep lists and objects may be nested in a body."""
JSON = "application/json"

Q = TypeVar("Q")
B = TypeVar("B")
_HINTS: dict[object, dict[str, Any]] = {}

_PLACE = re.compile(r"^(?P<what>.*?)(?: - at `(?:key in )?(?P<place>\$[^`]*)`)?$", re.DOTALL)
_FIELD = re.compile(r"^Object (?:missing required|contains unknown) field `(?P<name>[^`]*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)  # without "?", a text without an end takes minutes
_SQUARE = bytes.maketrans(b"{}", b"[]")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def read_query(request: Request, kind: type[Q]) -> Q:
    """Return the query as `kind`. A field that takes several values collects repeated names."""
    hints = _hints_of(kind)
    given: dict[str, str | list[str]] = {}
    for name, value in request.query_params.multi_items():
        if name in hints and _takes_many(hints[name]):
            given[name] = [*given.get(name, []), value]
        elif name in given:
            raise Problem(422, f"{name} is given twice", errors=[Flaw(f"?{name}", "give it once")])
        else:
            given[name] = value
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        what, steps = _place(error)
        name = next(iter(steps), "")
        raise Problem(422, f"the query: {what}", errors=[Flaw(f"?{name}", what)]) from None


def _hints_of(kind: object) -> dict[str, Any]:
    """Return the annotations of the struct of a query. They are kept: there are as many structs as routes."""
    if kind not in _HINTS:
        _HINTS[kind] = get_type_hints(kind)
    return _HINTS[kind]


async def read_body(request: Request, kind: type[B]) -> B:
    """Return the body as `kind`; refuse other media types, long bodies and deep ones."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != JSON:
        raise Problem(415, f"send the body as {JSON}", headers={"Accept": JSON})
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = await _bytes(request)
    except TimeoutError:
        words = f"the body did not come within {BODY_SECONDS:g} s"
        raise Problem(408, words, headers={"Connection": "close"}) from None
    if too_deep(body):
        raise Problem(422, f"the body is nested deeper than {DEEPEST} levels", errors=[Flaw("", "nested too deeply")])
    try:
        return decoded(body, kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Problem(400, "the body is not JSON", errors=[Flaw("", "this is not JSON")]) from None


def decoded(body: bytes | msgspec.Raw, kind: type[B], place: str = "") -> B:
    """Return JSON as `kind`; raise a Problem that names the place, below `place`, of what does not fit."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        what, steps = _place(error)
        problem = Problem(422, f"the body: {what}", errors=[Flaw(place + pointer(steps), what)])
        problem.content = bytes(body)
        raise problem from None


async def _bytes(request: Request) -> bytes:
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > BODY_LIMIT:
        raise Problem(413, f"the body has {int(declared):,} bytes: at most {BODY_LIMIT:,}")
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > BODY_LIMIT:
            raise Problem(413, f"the body has more than {BODY_LIMIT:,} bytes")
        parts.append(part)
    return b"".join(parts)


def too_deep(body: bytes) -> bool:
    """Return whether lists and objects are nested deeper than DEEPEST, without building them.

    Most bodies have fewer brackets than that. For the others, drop everything but the brackets, then remove the
    innermost pairs, level by level: nothing is left of a JSON text that is not too deep.
    """
    if body.count(b"[") + body.count(b"{") <= DEEPEST:
        return False
    outside = _TEXT.sub(b"", body) if b"\\" in body else b"".join(body.split(b'"')[::2])
    left = brackets = outside.translate(_SQUARE, _NOT_BRACKETS)
    for _ in range(DEEPEST):
        if not left:
            return False
        left = left.replace(b"[]", b"")
    return bool(left) and _deepest(brackets) > DEEPEST


def _deepest(brackets: bytes) -> int:
    """Return the deepest level, also of a text whose brackets do not match."""
    level = deepest = 0
    for bracket in brackets:
        level += 1 if bracket == ord("[") else -1
        deepest = max(deepest, level)
    return deepest


def pointer(steps: Iterable[str]) -> str:
    """Return a JSON pointer (RFC 6901)."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


def _place(error: msgspec.ValidationError) -> tuple[str, list[str]]:
    """Return what is wrong, and the way to the place: msgspec writes `Expected int - at $.runs[0].priority`."""
    found = _PLACE.match(str(error))
    assert found is not None
    steps = [name or number for name, number in _STEP.findall(found["place"] or "") if number != "..."]
    field = _FIELD.match(found["what"])
    return found["what"], steps if field is None else [*steps, field["name"]]


def unix(moment: datetime, name: str, place: str | None = None) -> float:
    """Return an instant of a request as Unix seconds; `place` says where it stands, if that is not `?name`. In a query,
    msgspec lets a number pass as an instant without an offset: that is refused here too."""
    words = None
    if moment.tzinfo is None:
        words = f"{name}: an instant has its offset, or Z: 2027-01-01T09:00:00Z"
    else:
        try:
            return instant(moment, name)
        except (TypeError, ValueError):
            words = f"{name}: an instant from 1970 to 9999"
    raise Problem(422, words, errors=[Flaw(place or f"?{name}", words)])


def _takes_many(hint: object) -> bool:
    return get_origin(hint) in (tuple, list)
