"""From what is written to a value of the declared type, or a sentence that says where and what is expected."""

import math
import re
from collections.abc import Callable
from datetime import timedelta
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import Meta, Struct, UnsetType

from rota.errors import InvalidOptions

Seconds = Annotated[float, "seconds"]
"""Also written like "30s", "5m", "2h", "1d"."""


def says(text: str) -> Meta:
    """What a setting means: for the command line and the page about settings."""
    return Meta(description=text)


UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
TRUE, FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


class Said(Struct, frozen=True):
    """One value as somebody wrote it. A text comes from the environment, where everything is one."""

    value: object
    source: str
    written: str
    """File, key and equals sign, as errors quote it."""
    form: Literal["text", "toml", "keyword"]


def read(annotation: Any, said: Said) -> Any:
    """The value, as the type that a setting is declared with."""
    kind = _kind(annotation)
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        word = said.value.lower() if isinstance(said.value, str) else said.value
        if word in choices:
            return word
        expected = f"one of {', '.join(choices)}"
    else:
        reader, expected = _READERS[kind]
        try:
            return reader(said)
        except (TypeError, ValueError, OverflowError):
            pass
    raise InvalidOptions(f"{said.written}{said.value!r:.80}: expected {expected}")


def _kind(annotation: Any) -> Any:
    """The bare type: without None, UNSET and remarks."""
    origin = get_origin(annotation)
    if origin is Annotated:
        base, *remarks = get_args(annotation)
        return "seconds" if "seconds" in remarks else _kind(base)
    if origin in (Union, UnionType):
        return next(_kind(each) for each in get_args(annotation) if each not in (NoneType, UnsetType))
    return annotation


def _text(said: Said) -> str:
    if not isinstance(said.value, str):
        raise TypeError
    return said.value


def _flag(said: Said) -> bool:
    if said.form != "text":
        return bool(_a(bool, said))
    word = _text(said).strip().lower()
    if word not in TRUE + FALSE:
        raise ValueError
    return word in TRUE


def _whole(said: Said) -> int:
    return int(_text(said)) if said.form == "text" else _a(int, said)


def _number(said: Said) -> float:
    value = float(_text(said)) if said.form == "text" else float(_a((int, float), said))
    if not math.isfinite(value):
        raise ValueError
    return value


def _seconds(said: Said) -> float:
    if isinstance(said.value, timedelta):
        return said.value.total_seconds()
    if isinstance(said.value, str) and said.form != "keyword":
        spelled = re.fullmatch(r"\s*(-?[0-9]+(?:\.[0-9]+)?)\s*([smhd])\s*", said.value)
        if spelled:
            return float(spelled[1]) * UNITS[spelled[2]]
    return _number(said)


def _a(kind: Any, said: Said) -> Any:
    if isinstance(said.value, bool) is not (kind is bool) or not isinstance(said.value, kind):
        raise TypeError
    return said.value


_READERS: dict[Any, tuple[Callable[[Said], Any], str]] = {
    str: (_text, "text"),
    bool: (_flag, "true or false"),
    int: (_whole, "a whole number"),
    float: (_number, "a number"),
    "seconds": (_seconds, 'seconds, as a number or like "30s", "5m", "2h", "1d"'),
}
