"""Shapes: the JSON schema of a record, derived from its struct by the same rules as `values.record`."""

import types
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from rota.domain.decision import Reason
from rota.domain.period import Period
from rota.views.values import INSTANTS

Schema = dict[str, Any]

INSTANT: Schema = {"type": "string", "format": "date-time"}
ANY: Schema = {}
_PLAIN: dict[object, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
}


def shape_of(kind: type[Struct], without: tuple[str, ...] = ()) -> Schema:
    """Return the schema of `record(...)` of a struct of this kind. New fields may come: others are allowed."""
    hints = get_type_hints(kind)
    fields = {name: _field(name, hints[name]) for name in kind.__struct_fields__ if name not in without}
    return {"type": "object", "properties": fields, "required": list(fields)}


def _field(name: str, hint: object) -> Schema:
    """Return the schema of one field. Instants are text in JSON, and numbers in the struct."""
    if name in INSTANTS and {float, int} & set(_parts(hint)):
        return _either([INSTANT, *([_PLAIN[type(None)]] if type(None) in _parts(hint) else [])])
    return _value(name, hint)


def _value(name: str, hint: object) -> Schema:
    origin, args = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin in (Union, types.UnionType):
        return _either([_value(name, part) for part in args])
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (tuple, list) or (isinstance(origin, type) and origin.__name__ == "Sequence"):
        return {"type": "array", "items": _field(name, args[0]) if args else ANY}
    if origin is dict or hint is dict:
        return {"type": "object"}
    if isinstance(hint, type):
        return _class(hint)
    return ANY


def _class(kind: type) -> Schema:
    if issubclass(kind, Reason):
        return {"type": "string"}  # a newer version may have more reasons
    if issubclass(kind, Enum):
        return {"type": "string", "enum": [str(member.value) for member in kind]}
    if issubclass(kind, Period):
        return {"type": "object", "properties": {"unit": {"type": "string"}, "tz": {"type": "string"}}}
    if issubclass(kind, Struct):
        return shape_of(kind)
    return ANY  # bytes: stored JSON


def _parts(hint: object) -> tuple[object, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _either(schemas: list[Schema]) -> Schema:
    if any(schema == ANY for schema in schemas):
        return ANY
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def listing(item: Schema, more: bool = False) -> Schema:
    """Return the schema of a list: its items, the cursor of the next page, and the store's time.

    `more`: the list has no cursor, and says whether it was cut off.
    """
    cut: Schema = {"more": _PLAIN[bool]} if more else {}
    return {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": item},
            "next": {"type": ["string", "null"]},
            "now": INSTANT,
            **cut,
        },
        "required": ["items", "next", "now", *cut],
    }
