"""Decisions: what was decided about a task or a key, how often, by whom; and the answer to "why did it not run?"."""

from msgspec import Struct

from rota.domain.decision import DecisionCount
from rota.views.values import Record, iso, record
from rota.why import Why


class DecisionView(Struct, frozen=True):
    """One kind of decision; `by` and `note` are those of the last one."""

    reason: str
    by: str | None
    note: str | None
    count: int
    last_at: str


def decision_view(decision: DecisionCount) -> DecisionView:
    return DecisionView(
        reason=str(decision.reason),
        by=decision.by,
        note=decision.note,
        count=decision.count,
        last_at=iso(decision.last_at),
    )


class DecisionRow(Struct, frozen=True):
    """One kind of decision about one task and key; `run`, `by` and `note` are those of the last one."""

    task: str
    key: str
    reason: str
    count: int
    first_at: str
    last_at: str
    run: str | None
    by: str | None
    note: str | None


def decision_row(decision: DecisionCount) -> DecisionRow:
    return DecisionRow(
        task=decision.task,
        key=decision.key,
        reason=str(decision.reason),
        count=decision.count,
        first_at=iso(decision.first_at),
        last_at=iso(decision.last_at),
        run=decision.run,
        by=decision.by,
        note=decision.note,
    )


def why_view(why: Why, api: str = "/api/v1") -> Record:
    """Return the answer, whether something holds the work back (`held`), when that changes by itself (`changes_at`),
    and the facts in the order of the answer, with the path of what each is about; `api` is where the API is."""
    return {
        "subject": why.subject,
        "kind": why.kind,
        "answer": why.answer,
        "held": why.held,
        "changes_at": iso(why.changes_at),
        "facts": [record(fact) | {"link": None if fact.link is None else api + fact.link} for fact in why.facts],
    }
