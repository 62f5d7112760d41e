"""Secrets: arguments and results that people do not get to see. `Annotated[str, Secret]` marks one.

The names of the marked parameters and fields travel in the body of a run, so every process hides the same values, with
or without the code of the task. A value is hidden under such a name at any depth: a name that is secret in one place of
the arguments is secret in all of them.
"""

import re
import typing
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

import msgspec

from rota.domain import codec

MASK = "***"
SAYS_SECRET = re.compile(r"password|passwd|token|secret|authorization|api_?key|cookie", re.IGNORECASE)
"""Names that say themselves that their values are secrets."""
RESULT = "return"
"""The name of a result that is a secret as a whole."""
SHORTEST = 4
"""Characters that a secret needs at least to be looked for in texts: "1" would be found everywhere."""
DEEPEST = 20
"""How deep types are looked into."""


class Secret:
    """Marks an argument, a field or a result as a secret: `def pay(card: Annotated[str, Secret])`.

    Lists, HTTP, logs and spans show `***` in its place. Handlers, `result()` and pull workers get the value, and the
    store keeps it as it is.
    """


def secret_names(hints: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of parameters and fields that are marked, and RESULT for a marked result."""
    found: set[str] = set()
    for name, hint in hints.items():
        _look(name, hint, found, frozenset(), 0)
    return tuple(sorted(found))


def _look(name: str, hint: Any, found: set[str], seen: frozenset[Any], depth: int) -> None:
    """Add `name` if a value of type `hint` is a secret, or has a secret without a name; and the names of its fields."""
    if depth > DEEPEST:
        return
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        if any(mark is Secret or isinstance(mark, Secret) for mark in parts[1:]):
            found.add(name)
        _look(name, parts[0], found, seen, depth + 1)
    elif origin is Union or isinstance(hint, UnionType) or origin is not None:
        for part in parts:
            _look(name, part, found, seen, depth + 1)
    elif isinstance(hint, type) and hint not in seen:
        for field, kind in _fields(cast("type[Any]", hint)).items():
            _look(field, kind, found, seen | {hint}, depth + 1)


def _fields(kind: type[Any]) -> dict[str, Any]:
    """Return the types of the fields of a class by their names in JSON."""
    named: dict[str, str] = {}
    if issubclass(kind, msgspec.Struct):
        named = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    elif not any(hasattr(kind, mark) for mark in _FIELDED):
        return {}
    try:
        hints: dict[str, Any] = typing.get_type_hints(kind, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {}
    return {named.get(name, name): hint for name, hint in hints.items()}


_FIELDED = ("__dataclass_fields__", "__total__", "model_fields", "__attrs_attrs__")
"""What a dataclass, a TypedDict, a model of pydantic and a class of attrs have."""


SECRETS = b'"secrets":'
"""A body without these bytes has no secrets."""


def secrets_of(body: bytes | str) -> tuple[str, ...]:
    """Return the names of the secrets of a run. Most bodies have none, and are not read."""
    if (SECRETS if isinstance(body, bytes) else SECRETS.decode()) not in body:  # type: ignore[operator]
        return ()
    return codec.decode_or_blank(body).secrets


def hidden(value: object, names: Sequence[str]) -> object:
    """Return JSON with `***` for each value under one of `names`, at any depth."""
    match value:
        case dict():
            fields = cast("Mapping[str, object]", value)
            return {name: MASK if name in names else hidden(item, names) for name, item in fields.items()}
        case list():
            return [hidden(item, names) for item in cast("list[object]", value)]
        case _:
            return value


def searchable(body: bytes, args: bytes) -> str:
    """Return the arguments of a run as the text that a search looks at: without values that are marked as secrets, and
    without those whose names say that they are. Else somebody who may search could find a secret letter by letter."""
    names, text = secrets_of(body), args.decode(errors="replace")
    if not names and SAYS_SECRET.search(text) is None:
        return text
    try:
        value: object = msgspec.json.decode(args)
        concealed = [name for name in _names(value) if name in names or SAYS_SECRET.search(name)]
        return msgspec.json.encode(hidden(value, concealed)).decode()
    except (ValueError, RecursionError):
        return ""


def _names(value: object) -> set[str]:
    """Return the names of all fields in JSON, at any depth."""
    if isinstance(value, dict):
        fields = cast("Mapping[str, object]", value)
        return {*fields, *(name for item in fields.values() for name in _names(item))}
    if isinstance(value, list):
        return {name for item in cast("list[object]", value) for name in _names(item)}
    return set()


def secret_values(args: bytes, names: Sequence[str]) -> list[str]:
    """Return the texts and numbers that are secrets, the longest first: all under one of `names`, and the texts under
    names that say so themselves. Their numbers are rather counts, as that of `max_tokens`."""
    if not names and SAYS_SECRET.search(args.decode(errors="replace")) is None:
        return []
    found: set[str] = set()
    try:
        _collect(msgspec.json.decode(args), names, (), found)
    except (ValueError, RecursionError):
        return []
    return sorted((text for text in found if len(text) >= SHORTEST), key=len, reverse=True)


def _collect(value: object, names: Sequence[str], kinds: tuple[type, ...], found: set[str]) -> None:
    """Add what is secret of a value whose secrets are of `kinds`; none: it is not secret."""
    match value:
        case dict():
            for name, item in cast("dict[str, object]", value).items():
                inner = (str, int, float) if name in names else kinds
                _collect(item, names, inner or ((str,) if SAYS_SECRET.search(name) else ()), found)
        case list():
            for item in cast("list[object]", value):
                _collect(item, names, kinds, found)
        case bool() | None:
            pass
        case _:
            if isinstance(value, kinds):
                found.add(str(value))


def scrubbed(text: str, values: Sequence[str]) -> str:
    """Return `text` with `***` for each of `values`, as it is and as `repr` writes it."""
    for value in values:
        text = text.replace(value, MASK).replace(repr(value)[1:-1], MASK)
    return text
