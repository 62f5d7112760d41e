"""What stores keep of an audit entry: its time, how much it changed, and the rest as JSON."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from rota.domain.decision import Decision, Reason
from rota.store import AuditEntry, Fired
from rota.stores.names import storable

CHANGES = ("added", "changed", "dropped")
"""Answers of edits and declarations that say that something has changed."""
MADE = (Reason.ACCEPTED, Reason.CANCELLED)
"""Answers of a put that say the same: a run was made, or the plan has cancelled one."""
_entries = msgspec.json.Decoder(AuditEntry)


def possible(entry: AuditEntry) -> AuditEntry:
    """Return `entry` with each character that has no UTF-8 form replaced."""
    return replace(
        entry,
        by=storable(entry.by) or "",
        subjects=tuple(storable(name) or "" for name in entry.subjects),
        note=storable(entry.note),
        address=storable(entry.address),
        result=storable(entry.result) or "",
    )


def filled(entry: AuditEntry, now: float, answers: Sequence[object]) -> AuditEntry:
    """Return `entry` as it is kept: with its time and with how many things the verb has changed."""
    return replace(possible(entry), at=now, changed=sum(map(_changes, answers)))


def _changes(answer: object) -> int:
    match answer:
        case int():
            return int(answer)
        case Decision():
            return int(answer.reason in MADE)
        case Fired():
            return int(answer.applied)
        case _:
            return int(str(answer) in CHANGES)


def to_text(entry: AuditEntry) -> str:
    return msgspec.json.encode(possible(entry)).decode()


def from_text(text: str | bytes, at: float, changed: int) -> AuditEntry:
    return replace(_entries.decode(text), at=at, changed=changed)
