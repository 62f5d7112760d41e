"""The OpenAPI 3.1 document, made from the table of routes."""

import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, cast

import msgspec

from rota.views.shapes import Schema
from rota.web.problems import MEDIA_TYPE, WORDS, ProblemBody
from rota.web.rights import Right
from rota.web.routes import API, EventText, HtmlText, LinesText, Route

REFERENCE = "#/components/schemas/{name}"
ALWAYS = (400, 401, 403, 421, 422, 429, 500, 503)
"""Problems that every route behind the gate may answer."""
WITH_BODY = (408, 413, 415)

EXAMPLES = {
    "id": "01a1e226-8cbe-790a-9cc4-cfe42cbe7493",
    "name": "resize",
    "task": "resize",
    "key": "ada",
    "period": "2026-11-15",
    "word": "conflict",
}
"""A value of each parameter in a path."""

_TEXT: Schema = {"type": "string"}
_MESSAGE: Schema = {"type": "object", "properties": dict.fromkeys(("event", "data", "id"), _TEXT)}
TEXTS: dict[Any, Schema] = {
    str: {"text/plain": {"schema": _TEXT}},
    HtmlText: {"text/html": {"schema": _TEXT}},
    LinesText: {"application/x-ndjson": {"schema": _TEXT}},
    EventText: {"text/event-stream": {"schema": _MESSAGE}},
}
"""Answers that are no JSON. The schema of server-sent events is that of one message."""

_PARAMETER = re.compile(r"\{(\w+)\}")


def document(routes: Sequence[Route[Any, Any]], prefix: str = "") -> Schema:
    """Return the OpenAPI document. Types and schemas of the routes become its components."""
    kinds = [ProblemBody, *_types(routes)]
    refs, components = msgspec.json.schema_components(kinds, ref_template=REFERENCE)
    known = dict(zip(kinds, refs, strict=True))
    paths: dict[str, Schema] = {}
    for route in routes:
        paths.setdefault(route.template, {})[route.method.lower()] = _operation(route, known, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rota",
            "version": version("rota"),
            "description": "Runs work on time, once, and visibly. Version 1 of this API only grows.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": prefix or "/"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _types(routes: Sequence[Route[Any, Any]]) -> list[Any]:
    found: list[Any] = []
    for route in routes:
        for kind in (route.query, route.body, *route.answers.values()):
            if kind not in (None, *TEXTS) and not isinstance(kind, dict) and kind not in found:
                found.append(kind)
    return found


def _operation(route: Route[Any, Any], known: dict[Any, Schema], components: dict[str, Schema]) -> Schema:
    about_run = route.path.startswith(f"{API}/runs/{{id}}")
    missing = (404, 410) if about_run else (404,) if "{" in route.path else ()  # 410: only the id of the run is kept
    statuses = sorted({*(() if route.open else ALWAYS), *missing, *(WITH_BODY if route.body else ()), *route.also})
    found: Schema = {
        "operationId": route.operation,
        "summary": route.summary,
        "parameters": [*_in_path(route), *_in_query(route, components), *_in_headers(route)],
        "responses": {
            **{str(status): _answer(shape, known) for status, shape in route.answers.items()},
            **{str(status): _problem(status, known) for status in statuses if status not in route.answers},
        },
    }
    if route.open:
        found["security"] = []
    elif isinstance(route.right, Right):
        found["x-right"] = str(route.right)
    if route.body is not None:
        content = {"application/json": {"schema": known[route.body]}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _in_path(route: Route[Any, Any]) -> list[Schema]:
    text = {"type": "string", "minLength": 1}
    return [
        {"name": name, "in": "path", "required": True, "schema": text, "example": EXAMPLES[name]}
        for name in _PARAMETER.findall(route.template)
    ]


def _in_query(route: Route[Any, Any], components: dict[str, Schema]) -> list[Schema]:
    schema = components[route.query.__name__]
    return [
        {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": field}
        for name, field in schema.get("properties", {}).items()
    ]


def _in_headers(route: Route[Any, Any]) -> list[Schema]:
    """What a header may say is not bounded here: one that cannot be used is ignored, but for Idempotency-Key."""
    return [{"name": name, "in": "header", "required": False, "schema": _header(name)} for name in route.conditions]


def _header(name: str) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": 200} if name == "Idempotency-Key" else _TEXT


def _answer(shape: Any, known: dict[Any, Schema]) -> Schema:
    if shape is None:
        return {"description": "done"}
    if isinstance(shape, type) and shape in TEXTS:
        return {"description": "done", "content": TEXTS[shape]}
    schema = cast("Schema", shape) if isinstance(shape, dict) else known[shape]
    return {"description": "done", "content": {"application/json": {"schema": schema}}}


def _problem(status: int, known: dict[Any, Schema]) -> Schema:
    content = {MEDIA_TYPE: {"schema": known[ProblemBody]}}
    return {"description": WORDS[status].replace("-", " "), "content": content}
