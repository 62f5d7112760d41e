"""Troubles that metrics tell of: breakers that are open, and deadlines that have passed."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Protocol

from rota.domain.activity import touch_guards
from rota.domain.decision import DecisionCount, Reason
from rota.domain.guards import Cooldown, cooldown_reason
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.store import MarkRow, Reads, RowQuery, Total, What

LOOKS = 100
"""The most marks that one scrape looks at, for breakers and for deadlines."""


class Known(Protocol):
    """What is read of the store already."""

    @property
    def now(self) -> float: ...
    @property
    def counts(self) -> Sequence[Total]: ...
    @property
    def specs(self) -> Sequence[TaskSpec]: ...
    @property
    def schedules(self) -> Sequence[Schedule]: ...


async def open_breakers(store: Reads, known: Known) -> dict[str, int]:
    """Return how many keys of each task an open breaker refuses. A breaker that has refused nobody is not found."""
    found: Counter[str] = Counter()
    tasks = [each.name for each in known.counts if (each.what, each.reason) == (What.DECIDED, Reason.BREAKER)]
    looks = 0
    for task in tasks:
        for row in (await store.rows(DecisionCount, RowQuery(task=task, limit=LOOKS))).items:
            rules = tuple(_breakers(known, task, row.key))
            if row.reason is not Reason.BREAKER or not rules or looks >= LOOKS:
                continue
            looks += 1
            marks = (await store.rows(MarkRow, RowQuery(task=task, key=row.key))).items
            found[task] += any(cooldown_reason(rules, each.mark, known.now) is not None for each in marks)
    return dict(found)


def _breakers(known: Known, task: str, key: str) -> Iterator[Cooldown]:
    for schedule in known.schedules:
        if schedule.task == task and schedule.key == key:
            yield from (rule for rule in schedule.guards.cooldowns if rule.reason is Reason.BREAKER)
    for spec in known.specs:
        if spec.name == task:
            guards = spec.guards if spec.activity is None else touch_guards(spec.activity, spec.guards)
            yield from (rule for rule in guards.cooldowns if rule.reason is Reason.BREAKER)


async def late_deadlines(store: Reads, schedules: Sequence[Schedule]) -> frozenset[str]:
    """Return the ids of the deadlines whose last time has passed without a success until now."""
    found: set[str] = set()
    late = [one for one in schedules if one.deadline and one.recent and one.recent[-1].reason is Reason.LATE]
    for schedule in late[:LOOKS]:
        assert schedule.deadline is not None
        nominal = schedule.recent[-1].nominal
        since = nominal if schedule.deadline.period is None else 0.0
        query = RowQuery(task=schedule.task, key=schedule.deadline.key(nominal))
        marks = [row.mark for row in (await store.rows(MarkRow, query)).items if row.mark]
        if not any(mark.succeeded_at is not None and mark.succeeded_at > since for mark in marks):
            found.add(schedule.id)
    return frozenset(found)
