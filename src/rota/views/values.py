"""Values as JSON has them: instants as ISO 8601 in UTC, enums by value, stored JSON decoded."""

from datetime import UTC, datetime
from enum import Enum
from typing import cast, overload

import msgspec
from msgspec import Struct

from rota.domain.period import Period

Record = dict[str, object]
"""One thing as a JSON object."""

INSTANTS = frozenset(
    {"nominal", "start", "end", "until"}
    | {f"{verb}_at" for verb in ("created", "due", "expires", "claimed", "finished", "ended", "touched")}
)
"""Fields of stored structs that hold seconds since 1970."""


@overload
def iso(instant: float) -> str: ...
@overload
def iso(instant: None) -> None: ...
def iso(instant: float | None) -> str | None:
    """Return `instant` as ISO 8601 in UTC, with microseconds; None stays None."""
    if instant is None:
        return None
    try:
        moment = datetime.fromtimestamp(instant, UTC)
    except (OverflowError, ValueError, OSError):
        return str(instant)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def record(struct: Struct) -> Record:
    """Return the fields of `struct` in their order, as JSON has them."""
    return {name: plain_value(name, getattr(struct, name)) for name in struct.__struct_fields__}


def plain_value(name: str, value: object) -> object:
    """Return `value` of the field `name` as JSON has it."""
    match value:
        case bytes():
            return from_json(value)
        case float() | int() if name in INSTANTS:
            return iso(value)
        case Enum():
            return str(value.value)
        case Period():  # the store keeps no format: the code has it
            return {"unit": value.unit, "tz": value.tz}
        case Struct():
            return record(value)
        case tuple():
            return [plain_value(name, item) for item in cast("tuple[object, ...]", value)]
        case _:
            return value


def from_json(encoded: bytes) -> object:
    """Decode stored JSON. Bytes that are not JSON are returned as text."""
    try:
        return msgspec.json.decode(encoded) if encoded else None
    except ValueError:
        return encoded.decode(errors="replace")
