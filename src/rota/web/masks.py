"""Masking: no secret of an argument, result or error leaves the service."""

from collections.abc import Mapping
from typing import cast

from rota.domain.secrets import MASK, SAYS_SECRET
from rota.web.problems import Flaw, Problem

PAYLOAD = ("args", "result", "saved", "headers")
"""Fields of a run that only callers with `read:payload` see."""


def masked(value: object) -> object:
    """Return JSON with `***` for each value whose name says that it is a secret, at any depth."""
    match value:
        case dict():
            fields = cast("Mapping[str, object]", value)
            return {name: MASK if SAYS_SECRET.search(name) else masked(item) for name, item in fields.items()}
        case list():
            return [masked(item) for item in cast("list[object]", value)]
        case _:
            return value


def check_unmasked(value: object, place: str) -> None:
    """Refuse the mask as a value: it was read from the service, and would replace the secret."""
    if has_mask(value):
        raise Problem(422, f"{MASK} hides a secret: leave the field out, and it stays", errors=[Flaw(place, MASK)])


def has_mask(value: object) -> bool:
    match value:
        case dict():
            return any(map(has_mask, cast("Mapping[str, object]", value).values()))
        case list():
            return any(map(has_mask, cast("list[object]", value)))
        case _:
            return value == MASK


def shown_run(record: dict[str, object], payload: bool) -> dict[str, object]:
    """Return the record of a run as the caller may see it; `payload`: with arguments, result and tracebacks."""
    shown = dict(record)
    for name in PAYLOAD:
        if name in shown:
            shown[name] = masked(shown[name]) if payload else None
    if not payload:
        shown["error"] = _without_traceback(shown.get("error"))
        attempts = cast("list[dict[str, object]]", shown.get("attempts") or [])
        shown["attempts"] = [one | {"error": _without_traceback(one.get("error"))} for one in attempts]
    return shown


def _without_traceback(error: object) -> object:
    return cast("dict[str, object]", error) | {"traceback": ""} if isinstance(error, dict) else error
