"""Runs as records: the words of the Run struct, instants as ISO 8601, arguments and results as the JSON they are."""

from enum import Enum
from typing import cast

import msgspec
from msgspec import Struct

from rota.cli.render.text import iso
from rota.domain.period import Period
from rota.domain.run import Run

FIRST = ("id", "task", "key", "state", "reason", "note", "priority", "created_at", "due_at")
INSTANTS = frozenset(
    {
        *(
            "created_at",
            "due_at",
            "expires_at",
            "claimed_at",
            "until",
            "finished_at",
            "ended_at",
            "nominal",
            "touched_at",
        ),
        *("start", "end"),
    }
)


def run_record(run: Run) -> dict[str, object]:
    """Everything a store tells of a run, the telling things first."""
    found = record(run)
    del found["body"]
    return {name: found[name] for name in FIRST} | found


def record(struct: Struct) -> dict[str, object]:
    return {name: plain_value(name, getattr(struct, name)) for name in struct.__struct_fields__}


def plain_value(name: str, value: object) -> object:
    """The value of a field as JSON has it."""
    match value:
        case bytes():
            return from_json(value)
        case float() | int() if name in INSTANTS:
            return iso(value)
        case Enum():
            return str(value.value)
        case Period():  # what is stored has no format: that is the code's
            return {"unit": value.unit, "tz": value.tz}
        case Struct():
            return record(value)
        case tuple():
            return [plain_value(name, item) for item in cast("tuple[object, ...]", value)]
        case _:
            return value


def from_json(encoded: bytes) -> object:
    """Stored JSON as values; what cannot be read is shown as text."""
    try:
        return msgspec.json.decode(encoded) if encoded else None
    except ValueError:
        return encoded.decode(errors="replace")
