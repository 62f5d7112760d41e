"""The arguments of a task as JSON Schema, so that a form can ask for them."""

from pathlib import PurePath
from typing import Any

import msgspec

from rota.domain.arguments import Signature
from rota.domain.secrets import secret_names
from rota.domain.spec import TaskSpec

DEFS = "$defs"


def schema_of(signature: Signature) -> dict[str, Any]:
    """Return the schema of the arguments of a function: an object with a property for each parameter.

    A parameter that is marked as a secret is `writeOnly`, and its default is not told. What msgspec cannot
    describe may be anything.
    """
    names = signature.names
    hints = [signature.hints[name] for name in names]
    parts, shared = msgspec.json.schema_components(hints, schema_hook=_unknown, ref_template=f"#/{DEFS}/{{name}}")
    secret, defaults = secret_names(signature.hints), signature.defaults()
    properties = {
        name: part
        | ({"default": defaults[name]} if name in defaults and name not in secret else {})
        | ({"writeOnly": True} if name in secret else {})
        for name, part in zip(names, parts, strict=True)
    }
    return _object(properties, signature.required, signature.open) | ({DEFS: shared} if shared else {})


def schema_of_spec(spec: TaskSpec) -> dict[str, Any]:
    """Return the schema of a task whose code is elsewhere: the one it was declared with, else what was published."""
    if spec.schema is not None:
        return spec.schema
    properties: dict[str, dict[str, Any]] = {
        name: ({"default": spec.defaults[name]} if name in spec.defaults and name not in spec.secrets else {})
        | ({"writeOnly": True} if name in spec.secrets else {})
        for name in spec.parameters
    }
    return _object(properties, [], spec.open or not spec.parameters)


def _object(properties: dict[str, dict[str, Any]], required: list[str], more: bool) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": more}


def _unknown(kind: type[Any]) -> dict[str, Any]:
    """Return the schema of a type that msgspec does not know, such as a model of pydantic."""
    if issubclass(kind, PurePath):
        return {"type": "string"}
    return {"type": "object", "title": kind.__name__} if hasattr(kind, "model_validate") else {}
