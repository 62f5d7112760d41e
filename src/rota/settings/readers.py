"""Read a setting as a value of its declared type; an error says where the setting is and what is expected."""

import math
import re
from collections.abc import Callable
from datetime import timedelta
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import Meta, Struct, UnsetType

from rota.errors import InvalidOptions

Seconds = Annotated[float, "seconds"]
"""Seconds as a number, or as text like "30s", "5m", "2h", "1d"."""


def says(text: str) -> Meta:
    """Return the meaning of a setting, for the command line and docs/settings.md."""
    return Meta(description=text)


UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
TRUE, FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


class RawValue(Struct, frozen=True):
    """One value as it was written. `form` is "text" for a variable of the environment, which is always text."""

    value: object
    source: str
    written: str
    """File, key and equals sign, as errors quote the value."""
    form: Literal["text", "toml", "keyword"]


def read(annotation: Any, raw: RawValue) -> Any:
    """Return the value of `raw` as the type of `annotation`."""
    kind = _kind(annotation)
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        word = raw.value.lower() if isinstance(raw.value, str) else raw.value
        if word in choices:
            return word
        expected = f"one of {', '.join(choices)}"
    else:
        reader, expected = _READERS[kind]
        try:
            return reader(raw)
        except (TypeError, ValueError, OverflowError):
            pass
    raise InvalidOptions(f"{raw.written}{raw.value!r:.80}: expected {expected}")


def _kind(annotation: Any) -> Any:
    """Return the type in `annotation`, without None, UNSET and metadata."""
    origin = get_origin(annotation)
    if origin is Annotated:
        base, *remarks = get_args(annotation)
        return "seconds" if "seconds" in remarks else _kind(base)
    if origin in (Union, UnionType):
        return next(_kind(each) for each in get_args(annotation) if each not in (NoneType, UnsetType))
    return annotation


def _text(raw: RawValue) -> str:
    if not isinstance(raw.value, str):
        raise TypeError
    return raw.value


def _flag(raw: RawValue) -> bool:
    if raw.form != "text":
        return bool(_a(bool, raw))
    word = _text(raw).strip().lower()
    if word not in TRUE + FALSE:
        raise ValueError
    return word in TRUE


def _whole(raw: RawValue) -> int:
    return int(_text(raw)) if raw.form == "text" else _a(int, raw)


def _number(raw: RawValue) -> float:
    value = float(_text(raw)) if raw.form == "text" else float(_a((int, float), raw))
    if not math.isfinite(value):
        raise ValueError
    return value


def _seconds(raw: RawValue) -> float:
    if isinstance(raw.value, timedelta):
        return raw.value.total_seconds()
    if isinstance(raw.value, str) and raw.form != "keyword":
        spelled = re.fullmatch(r"\s*(-?[0-9]+(?:\.[0-9]+)?)\s*([smhd])\s*", raw.value)
        if spelled:
            return float(spelled[1]) * UNITS[spelled[2]]
    return _number(raw)


def _names(raw: RawValue) -> tuple[str, ...]:
    """Return the names in a list, or in a text such as "a,b"."""
    given = raw.value.split(",") if isinstance(raw.value, str) else _a((list, tuple), raw)
    if not all(isinstance(name, str) for name in given):
        raise TypeError
    return tuple(dict.fromkeys(name.strip() for name in given if name.strip()))


def _a(kind: Any, raw: RawValue) -> Any:
    if isinstance(raw.value, bool) is not (kind is bool) or not isinstance(raw.value, kind):
        raise TypeError
    return raw.value


_READERS: dict[Any, tuple[Callable[[RawValue], Any], str]] = {
    str: (_text, "text"),
    bool: (_flag, "true or false"),
    int: (_whole, "a whole number"),
    float: (_number, "a number"),
    tuple[str, ...]: (_names, 'names, as a list or like "a,b"'),
    "seconds": (_seconds, 'seconds, as a number or like "30s", "5m", "2h", "1d"'),
}
