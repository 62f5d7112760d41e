"""Marks: what is remembered as done."""

from msgspec import Struct

from rota.domain.guards import Mark
from rota.store import MarkRow
from rota.views.values import iso


class MarkView(Struct, frozen=True):
    """The last success and the last end of a task and key; `failures` counts failures in a row since then."""

    task: str
    key: str
    succeeded_at: str | None
    finished_at: str | None
    failures: int


def mark_view(row: MarkRow) -> MarkView:
    mark = row.mark or Mark()
    return MarkView(row.task, row.key, iso(mark.succeeded_at), iso(mark.finished_at), mark.failures)
