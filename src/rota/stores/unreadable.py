"""Rows that this version cannot read. Each is left out of the answer and logged once per process; other rows are
read."""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

import msgspec

from rota.domain.decision import DecisionCount
from rota.domain.fan import Fan
from rota.store import AuditEntry, Freeze, MarkRow, WorkerSeen

log = logging.getLogger("rota")

T = TypeVar("T")
Kind = Literal["spec", "schedule", "run", "row"]
MOST = 1000
"""The most rows in `logged`, so that the set stays small."""

CURES: dict[Kind, str] = {
    "spec": "start a worker that has the code of this task: that publishes it anew",
    "schedule": "start the app that declares it, or write it anew with `rota schedules put`",
    "run": "upgrade rota if a newer version wrote it, or cancel it",
    "row": "upgrade rota if a newer version wrote it",
}

KEYS: dict[type, tuple[str, ...]] = {
    WorkerSeen: ("worker", "name"),
    Fan: ("fan", "id"),
    Freeze: ("freeze",),
    AuditEntry: ("audit", "number"),
    MarkRow: ("mark", "task", "key"),
    DecisionCount: ("decision", "task", "key", "reason"),
}
"""For each type of the kind "row": its name in messages, and the columns of its key."""

Names = dict[tuple[Kind, str], str]
"""Why a row cannot be read, by its kind and name."""

logged: set[tuple[Kind, str]] = set()
"""The rows that this process has logged."""
_gathering: list[Names] = []


def row_name(kind: type, row: Any) -> str:
    """Return the name of a row in messages: its type and its key."""
    what, *columns = KEYS[kind]
    return " ".join([what, *(str(row[column]) for column in columns)])


def legible(kind: Kind, name: str, read: Callable[[], T]) -> T | None:
    """Return `read()`; None if the row cannot be read."""
    try:
        return read()
    except (msgspec.DecodeError, ValueError, LookupError, TypeError) as error:
        leave_out(kind, name, error)
        return None


def leave_out(kind: Kind, name: str, error: Exception) -> None:
    for gathered in _gathering:
        gathered[kind, name] = str(error)
    if (kind, name) not in logged and len(logged) < MOST:
        logged.add((kind, name))
        log.error("%s %s cannot be read by this version and is left out (%s); %s", kind, name, error, CURES[kind])


@contextmanager
def gathered() -> Generator[Names]:
    """Collect all rows that are left out inside the `with` block, also those that were logged before."""
    found: Names = {}
    _gathering.append(found)
    try:
        yield found
    finally:
        _gathering.remove(found)
