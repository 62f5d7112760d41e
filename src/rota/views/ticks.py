"""Ticks of a schedule: what became of the past ones, and when the next ones come."""

from collections.abc import Sequence

from msgspec import Struct

from rota.client.tick_outcomes import TickOutcome, outcomes_of
from rota.domain.decision import Decision, Reason
from rota.domain.schedule import FIRINGS_KEPT, Schedule
from rota.domain.timing import GRAIN, Timing
from rota.store import Reads
from rota.views.values import iso


class TickView(Struct, frozen=True):
    """One tick. `fires_at` is its nominal time with jitter. A tick to come has no reason and no outcome."""

    nominal: str
    fires_at: str
    past: bool
    reason: str | None
    run: str | None
    state: str | None
    outcome: str | None


class BackfillView(Struct, frozen=True):
    """A tick of a backfill. `run` is its run, `created` whether the backfill made it; a dry run has neither."""

    nominal: str
    run: str | None
    created: bool | None


async def tick_views(
    store: Reads, schedule: Schedule, now: float, since: float | None, until: float | None, limit: int
) -> list[TickView]:
    """Return the last ticks of `schedule` (a store keeps thirty) and the next ones, at most `limit`, oldest first.

    Without `since`, half of them may be past.
    """
    try:
        timing: Timing | None = Timing.of(schedule)
    except ValueError:  # a trigger of a newer version
        timing = None
    (outcomes,) = await outcomes_of(store, [schedule], FIRINGS_KEPT)
    fired = [each for each in outcomes if _within(each.firing.nominal, since, until)]
    most = limit // 2 if since is None else limit
    past = [_past(each, timing) for each in (fired[-most:] if since is None else fired[:most]) if most]
    if timing is None:
        return past
    coming = _next(schedule, timing, now, since, until, limit - len(past))
    return past + [_coming(nominal, timing) for nominal in coming]


def backfill_views(nominals: Sequence[float], decisions: Sequence[Decision] | None = None) -> list[BackfillView]:
    if decisions is None:
        return [BackfillView(iso(nominal), None, None) for nominal in nominals]
    return [
        BackfillView(iso(nominal), decision.run, decision.reason is Reason.ACCEPTED)
        for nominal, decision in zip(nominals, decisions, strict=True)
    ]


def _within(nominal: float, since: float | None, until: float | None) -> bool:
    return (since is None or nominal >= since) and (until is None or nominal <= until)


def _past(outcome: TickOutcome, timing: Timing | None) -> TickView:
    nominal = outcome.firing.nominal
    return TickView(
        nominal=iso(nominal),
        fires_at=iso(nominal if timing is None else timing.fires_at(nominal)),
        past=True,
        reason=str(outcome.firing.reason),
        run=outcome.run_id,
        state=str(outcome.state) if outcome.state else None,
        outcome=outcome.word,
    )


def _coming(nominal: float, timing: Timing) -> TickView:
    return TickView(iso(nominal), iso(timing.fires_at(nominal)), False, None, None, None, None)


def _next(
    schedule: Schedule, timing: Timing, now: float, since: float | None, until: float | None, count: int
) -> list[float]:
    """Return the next ticks. The first may be overdue."""
    found: list[float] = []
    at = schedule.next_at
    if at is not None and since is not None and at < since:
        at = timing.next_after(since - GRAIN)
    while at is not None and len(found) < count and _within(at, None, until):
        found.append(at)
        at = timing.next_after(max(at, now))
    return found
