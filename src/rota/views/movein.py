"""Plans and proofs of an import as JSON."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from rota.movein.fires import Proof
from rota.movein.plan import Difference, Row, Source
from rota.views.schedules import Facts
from rota.views.values import Record, iso


def row_view(row: Row) -> Record:
    timed = row.timed
    instants = {name: None if at is None else iso(at.timestamp()) for name, at in _instants(row)}
    return {
        "name": row.name,
        "where": row.where,
        "says": row.says,
        "outcome": row.outcome,
        "trigger": None if row.trigger is None else str(row.trigger),
        "words": None if row.trigger is None else row.trigger.describe(),
        "task": row.task,
        "args": list(row.args),
        "kwargs": dict(row.kwargs),
        "overlap": timed.overlap,
        "catch_up": timed.catch_up,
        "grace": timed.grace,
        **instants,
        "times": timed.times,
        "queue": timed.queue,
        "lost": timed.lost,
        "limit": row.limit,
        "paused": row.paused,
        "notes": list(row.notes),
        "refused": row.refused or None,
        "differences": [difference_view(each) for each in row.differences],
    }


def difference_view(difference: Difference) -> Record:
    return {"at": iso(difference.at.timestamp()), "by": difference.by, "why": difference.why or None}


def proof_view(proof: Proof) -> Record:
    return {
        "name": proof.name,
        "compared": proof.compared,
        "until": iso(proof.until.timestamp()),
        "named": [difference_view(each) for each in proof.named],
        "unnamed": [difference_view(each) for each in proof.unnamed],
    }


def plan_view(
    source: Source, proofs: Sequence[Proof], at: float | None, applied: Sequence[Mapping[str, object]]
) -> Record:
    """Return the whole report of one import."""
    return {
        "source": source.kind,
        "where": source.where,
        "cut_over": iso(at),
        "notes": list(source.notes),
        "rows": [row_view(row) for row in source.rows],
        "engine": source.engine or None,
        "proofs": [proof_view(each) for each in proofs],
        "applied": [dict(each) for each in applied],
    }


def _instants(row: Row) -> list[tuple[str, datetime | None]]:
    return [("start", row.timed.start), ("end", row.timed.end)]


def status_view(row: Row, source_next: datetime | None, facts: Facts | None) -> Record:
    """Return one row of both sides: what the source does with it, and what rota does."""
    source = "refused" if row.refused else "paused" if row.paused else "fires"
    schedule = None if facts is None else facts.schedule
    last = None if facts is None or facts.last is None else facts.last.firing.nominal
    return {
        "name": row.name,
        "outcome": row.outcome,
        "source": source,
        "source_next": None if source_next is None else iso(source_next.timestamp()),
        "rota": "absent" if facts is None else facts.state,
        "start": None if schedule is None else iso(schedule.start),
        "next_at": None if schedule is None else iso(schedule.next_at),
        "last_at": iso(last),
    }
