"""`python -m tools.ui_types`: writes the TypeScript types of the API, from its OpenAPI document.

Shapes without a name in the document get one here: by their operation (`NAMED`), or by the field that holds them. Equal
shapes have one name.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

from rota.web.openapi import document
from rota.web.routes import API
from rota.web.table import ROUTES

TYPES = Path(__file__).parents[1] / "ui" / "src" / "api" / "types.ts"
Schema = dict[str, Any]

NAMED = {
    "get_runs_id": "Run",
    "get_runs_id_why": "Why",
    "get_runs_count": "Count",
    "get_runs_id_lineage": "Lineage",
    "get_operations_id": "Operation",
    "get_tasks_name": "TaskDetail",
    "get_schedules_id": "Schedule",
    "get_workers_name": "Worker",
    "get_flows_name": "Flow",
    "get_preview": "Preview",
}
"""Operations whose answer has a name."""
ITEMS = {
    "get_tasks": "Task",
    "get_schedules": "ScheduleRow",
    "get_schedules_id_ticks": "Tick",
    "post_schedules_id_backfill": "BackfillTick",
    "get_flows": "FlowRow",
    "get_flows_name_periods": "FlowPeriod",
    "get_marks": "Mark",
    "get_decisions": "DecisionCount",
    "get_stats": "Stat",
    "get_audit": "AuditEntry",
    "get_errors": "ErrorGroup",
    "get_timeline": "TimelineRow",
    "get_doctor": "Check",
    "get_runs_id_log": "AttemptLog",
    "post_flows_name_start": "Started",
}
"""Operations whose answer is a list, and the name of an item."""
HEAD = "// Written by `python -m tools.ui_types` from the OpenAPI document: do not edit.\n"


class Writer:
    """Turns schemas into types, and keeps the interfaces that it had to name."""

    def __init__(self) -> None:
        self.interfaces: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def name(self, schema: Schema, wanted: str) -> str:
        """Return the name of the interface of an object; `wanted` if it has none yet."""
        digest = json.dumps(schema, sort_keys=True)
        known = self._names.get(digest)
        if known is not None:
            return known
        name, number = wanted, 1
        while name in self.interfaces:
            number += 1
            name = f"{wanted}{number}"
        self._names[digest] = name
        self.interfaces[name] = ""  # keeps the place of the interface before those of its fields
        self.interfaces[name] = self.fields(schema, name)
        return name

    def fields(self, schema: Schema, owner: str) -> str:
        required = set(schema.get("required", ()))
        lines = [
            f"  {_key(name)}{'' if name in required else '?'}: {self.type(field, owner + _pascal(name))};"
            for name, field in schema["properties"].items()
        ]
        return "{\n" + "\n".join(lines) + "\n}"

    def mapping(self, schema: Schema, wanted: str) -> str:
        values = schema.get("additionalProperties")
        return f"Record<string, {self.type(values, wanted) if isinstance(values, dict) else 'unknown'}>"

    def type(self, schema: Schema, wanted: str) -> str:
        if "$ref" in schema:
            return str(schema["$ref"]).rpartition("/")[2]
        if "anyOf" in schema:
            return _union([self.type(part, wanted) for part in schema["anyOf"]])
        if "enum" in schema:
            return _union([json.dumps(value) for value in schema["enum"]])
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return _union([self.type({**schema, "type": kind}, wanted) for kind in kinds])
        match kinds:
            case "array":
                inner = self.type(schema.get("items", {}), wanted)
                return f"({inner})[]" if " | " in inner else f"{inner}[]"
            case "object":
                return self.name(schema, wanted) if schema.get("properties") else self.mapping(schema, wanted)
            case "integer" | "number":
                return "number"
            case "string" | "boolean" | "null":
                return str(kinds)
            case _:
                return "unknown"


def _union(parts: list[str]) -> str:
    return " | ".join(dict.fromkeys(parts))


def _pascal(text: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"\W|_", text))


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else json.dumps(name)


def _answer(operation: Schema, writer: Writer) -> str:
    name = str(operation["operationId"])
    found: list[str] = []
    for status, answer in operation["responses"].items():
        for kind, content in answer.get("content", {}).items() if status.startswith("2") else ():
            shape = content["schema"]
            found.append(writer.type(shape, _pascal(name) + "Answer") if kind == "application/json" else "string")
    return _union(found) or "null"


def _query(operation: Schema, writer: Writer) -> str:
    fields = [each for each in operation.get("parameters", ()) if each["in"] == "query"]
    lines = [
        f"{_key(each['name'])}{'' if each['required'] else '?'}: {writer.type(each['schema'], 'Query')}"
        for each in fields
    ]
    return f"{{ {'; '.join(lines)} }}" if lines else "NoQuery"


def _body(operation: Schema, writer: Writer) -> str:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    return "null" if content is None else writer.type(content["schema"], "Body")


def _prepare(writer: Writer, operations: list[tuple[str, Schema]]) -> None:
    """Give the shapes that have a fixed name their name, before others meet them."""
    for _, operation in operations:
        id = operation["operationId"]
        if id not in NAMED and id not in ITEMS:
            continue
        for answer in operation["responses"].values():
            shape = answer.get("content", {}).get("application/json", {}).get("schema")
            if shape is not None and "properties" in shape:
                inner = shape["properties"]["items"]["items"] if id in ITEMS else shape
                writer.name(inner, NAMED.get(id) or ITEMS[id])


def written() -> str:
    """Return the text of the file of types."""
    found = document(ROUTES)
    writer = Writer()
    for name, schema in found["components"]["schemas"].items():
        if schema.get("properties"):
            writer.interfaces[name] = writer.fields(schema, name)
    operations = [
        (f"{method.upper()} {path.removeprefix(API)}", operation)
        for path, methods in found["paths"].items()
        for method, operation in methods.items()
        if path.startswith(API)
    ]
    _prepare(writer, operations)
    rows = [
        f"  {json.dumps(route)}: {{ query: {_query(operation, writer)}; body: {_body(operation, writer)}; "
        f"answer: {_answer(operation, writer)} }};"
        for route, operation in operations
    ]
    enums = {
        name: writer.type(schema, name)
        for name, schema in found["components"]["schemas"].items()
        if not schema.get("properties")
    }
    parts = [HEAD, "export type NoQuery = Record<string, never>;\n"]
    parts += [f"export type {name} = {text};\n" for name, text in sorted(enums.items()) if name != "NoQuery"]
    parts += [f"export interface {name} {text}\n" for name, text in sorted(writer.interfaces.items())]
    parts.append("export interface Routes {\n" + "\n".join(rows) + "\n}\n")
    return "\n".join(parts)


def main() -> None:
    argparse.ArgumentParser(prog="python -m tools.ui_types", description=__doc__).parse_args()
    TYPES.parent.mkdir(parents=True, exist_ok=True)
    TYPES.write_text(written())


if __name__ == "__main__":
    main()
