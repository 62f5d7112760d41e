"""The audit as JSON, and which of its entries a reader asks for."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from rota.store import AuditEntry
from rota.views.values import iso


class AuditView(Struct, frozen=True):
    """One change that a person asked for. `count` counts the names, of which `subjects` has some; `changed` counts what
    it changed; `result` is "done", or why it was refused."""

    at: str
    by: str
    via: str
    action: str
    subjects: Sequence[str]
    count: int
    changed: int
    result: str
    note: str | None
    request: str | None
    address: str | None
    id: str


class AuditFilter(Struct, frozen=True, kw_only=True):
    by: str | None = None
    action: str | None = None
    subject: str | None = None
    since: float | None = None
    until: float | None = None

    def wants(self, entry: AuditEntry) -> bool:
        return (
            self.by in (None, entry.by)
            and (self.action is None or entry.action == self.action or entry.action.startswith(f"{self.action}."))
            and (self.subject is None or self.subject in entry.subjects)
            and (self.since is None or entry.at >= self.since)
            and (self.until is None or entry.at < self.until)
        )


def audit_views(entries: Iterable[AuditEntry], wanted: AuditFilter) -> list[AuditView]:
    return [audit_view(entry) for entry in entries if wanted.wants(entry)]


def audit_view(entry: AuditEntry) -> AuditView:
    return AuditView(
        at=iso(entry.at),
        by=entry.by,
        via=entry.via,
        action=entry.action,
        subjects=entry.subjects,
        count=entry.count,
        changed=entry.changed,
        result=entry.result,
        note=entry.note,
        request=entry.request,
        address=entry.address,
        id=entry.id,
    )
