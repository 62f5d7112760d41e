"""Schemas: the arguments of a task that no Python declares, as JSON Schema.

rota checks the words that are listed here: `type`, `enum`, `const`, the bounds of numbers, texts and lists, `items`,
`properties`, `required` and `additionalProperties: false`. A worker may check more. No pattern is matched: a pattern
of a stranger can take for ever.
"""

import operator
from collections.abc import Mapping
from typing import Any, cast

MOST_PROPERTIES = 100
DEEPEST = 20

Schema = Mapping[str, Any]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_BOUNDS = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
}
_LENGTHS: dict[str, tuple[type, Any]] = {
    "minLength": (str, operator.ge),
    "maxLength": (str, operator.le),
    "minItems": (list, operator.ge),
    "maxItems": (list, operator.le),
}


def check_schema(schema: Schema, place: str = "schema", depth: int = 0) -> None:
    """Raise ValueError if rota cannot use the schema."""
    if depth > DEEPEST:
        raise ValueError(f"{place}: nested deeper than {DEEPEST}")
    kinds = schema.get("type", [])
    for kind in cast("list[object]", kinds) if isinstance(kinds, list) else [kinds]:
        if kind not in _TYPES:
            raise ValueError(f"{place}/type: {kind!r} is none of {', '.join(_TYPES)}")
    for word in (*_BOUNDS, *_LENGTHS):
        if word in schema and (isinstance(schema[word], bool) or not isinstance(schema[word], int | float)):
            raise ValueError(f"{place}/{word}: a number")
    if not isinstance(schema.get("enum", []), list):
        raise ValueError(f"{place}/enum: a list")
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in cast("list[object]", required)):
        raise ValueError(f"{place}/required: a list of names")
    parts = {f"{place}/properties/{name}": each for name, each in _properties(schema, place).items()}
    if isinstance(schema.get("items"), dict):
        parts[f"{place}/items"] = schema["items"]
    for where, part in parts.items():
        if not isinstance(part, dict):
            raise ValueError(f"{where}: an object")
        check_schema(cast("Schema", part), where, depth + 1)


def _properties(schema: Schema, place: str) -> dict[str, object]:
    found = schema.get("properties", {})
    if not isinstance(found, dict) or len(cast("dict[str, object]", found)) > MOST_PROPERTIES:
        raise ValueError(f"{place}/properties: an object with at most {MOST_PROPERTIES} names")
    return cast("dict[str, object]", found)


def parameters_of(schema: Schema) -> tuple[str, ...]:
    return tuple(_properties(schema, "schema"))


def defaults_of(schema: Schema) -> dict[str, Any]:
    parts = cast("dict[str, dict[str, Any]]", _properties(schema, "schema"))
    return {name: part["default"] for name, part in parts.items() if "default" in part}


def is_open(schema: Schema) -> bool:
    """Return whether arguments that the schema does not name are allowed."""
    return schema.get("additionalProperties", True) is not False


def check_value(schema: Schema, value: object, place: str = "") -> None:
    """Raise ValueError, which names the place, if `value` does not fit the schema."""
    kinds: object = schema.get("type")
    listed = cast("list[str]", kinds if isinstance(kinds, list) else [kinds])
    if kinds is not None and not any(_is(value, kind) for kind in listed):
        raise ValueError(f"{place or 'the arguments'}: expected {kinds}, got {type(value).__name__}")
    if "enum" in schema and value not in schema["enum"]:
        raise ValueError(f"{place}: none of {schema['enum']!r:.200}")
    if "const" in schema and value != schema["const"]:
        raise ValueError(f"{place}: not {schema['const']!r:.200}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        for word, holds in _BOUNDS.items():
            if word in schema and not holds(value, schema[word]):
                raise ValueError(f"{place}: {word} is {schema[word]}")
    _check_parts(schema, value, place)


def _check_parts(schema: Schema, value: object, place: str) -> None:
    for word, (kind, holds) in _LENGTHS.items():
        if word in schema and isinstance(value, kind) and not holds(len(cast("str", value)), schema[word]):
            raise ValueError(f"{place}: {word} is {schema[word]}")
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        parts = cast("dict[str, Schema]", schema.get("properties", {}))
        if missing := [name for name in schema.get("required", []) if name not in fields]:
            raise ValueError(f"{place}/{missing[0]} is missing")
        if not is_open(schema) and (unknown := fields.keys() - parts.keys()):
            raise ValueError(f"{place}/{min(unknown)} is unknown; there are: {', '.join(parts) or 'none'}")
        for name, item in fields.items():
            if name in parts:
                check_value(parts[name], item, f"{place}/{name}")
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(cast("list[object]", value)):
            check_value(schema["items"], item, f"{place}/{index}")


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])
