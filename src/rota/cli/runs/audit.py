"""`rota audit`: who changed what, when and why."""

from typing import Annotated, cast

from cyclopts import Parameter

from rota.cli.options.parameters import Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Column, Show
from rota.cli.runs.filters import instant_of
from rota.errors import InvalidOptions
from rota.store import AUDIT_KEPT, AuditEntry
from rota.views.audit import AuditFilter, AuditView, audit_views
from rota.views.values import record

COLUMNS = [
    Column("at"),
    Column("by"),
    Column("via", rank=2),
    Column("action"),
    Column("subjects", flat=lambda row: _names(row), elastic=True),
    Column("changed", right=True),
    Column("result", rank=1),
    Column("note", elastic=True, sparse=True),
    Column("id", whole=True, rank=3),
]


def _names(row: object) -> str:
    return " ".join(cast("dict[str, list[str]]", row)["subjects"])


def audit(
    *,
    by: Annotated[str | None, Parameter(help="Only what this person or credential asked for.")] = None,
    action: Annotated[str | None, Parameter(help="Only this action: runs.cancel, or runs for all about runs.")] = None,
    subject: Annotated[str | None, Parameter(help="Only about this run, task, schedule, worker or mark.")] = None,
    since: Annotated[str | None, Parameter(help="Only since: an ISO 8601 time, or 2h for two hours ago.")] = None,
    limit: Annotated[int, Parameter(help="At most so many, the latest first.")] = 100,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """List what people asked for, the latest first: who, when, what, of what, why, and what it changed.

    The store keeps the last 10,000 entries. With --json, one object per line: an export.
    """
    if not 1 <= limit <= AUDIT_KEPT:
        raise InvalidOptions(f"--limit {limit}: from 1 to {AUDIT_KEPT:,}")

    async def read() -> list[AuditView]:
        async with target.client() as client:
            start = await instant_of(client, since, "--since", target)
            wanted = AuditFilter(by=by, action=action, subject=subject, since=start)
            return audit_views((await client.rows(AuditEntry)).items, wanted)[:limit]

    rows = [record(view) for view in target.run(read())]
    if show.json:
        for row in rows:
            show.row(row, COLUMNS)
    else:
        show.records(rows, COLUMNS, "Nothing: no person has changed anything.")
