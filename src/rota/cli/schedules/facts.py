"""Schedules as people ask about them: with what became of their firings, and what their triggers mean in words."""

from collections.abc import Sequence

from msgspec import Struct

from rota.cli.options.instants import zone_of
from rota.cli.render.text import iso
from rota.cli.runs.records import from_json, plain_value
from rota.client.tick_outcomes import TickOutcome, outcomes_of
from rota.domain import codec
from rota.domain.firing import ON_TIME
from rota.domain.policy import Policy
from rota.domain.schedule import Schedule
from rota.domain.timing import Timing
from rota.domain.triggers import Trigger
from rota.store import Store

NEXT_SHOWN = 5


class Facts(Struct, frozen=True):
    """A schedule, its firings (oldest first), and the zone in whose time it is told."""

    schedule: Schedule
    fates: Sequence[TickOutcome]
    zone: str
    now: float

    @property
    def state(self) -> str:
        return "paused" if self.schedule.paused else "ended" if self.schedule.ended else "active"

    @property
    def overdue(self) -> bool:
        """Its time to fire came a while ago, and nobody was there."""
        at = self.schedule.fires_at
        return at is not None and not self.schedule.paused and self.now - at > ON_TIME

    @property
    def last(self) -> TickOutcome | None:
        return self.fates[-1] if self.fates else None


async def facts_of(store: Store, schedules: Sequence[Schedule], tz: str, now: float, most: int) -> list[Facts]:
    """With the last `most` firings of each; the runs of all of them come in one read."""
    outcomes = await outcomes_of(store, schedules, most)
    return [
        Facts(schedule, fates, zone_of(schedule.trigger, tz).key, now)
        for schedule, fates in zip(schedules, outcomes, strict=True)
    ]


def words_of(trigger: str) -> str:
    """A trigger's text in words; the text itself if this version cannot read it."""
    try:
        return Trigger.parse(trigger).describe()
    except ValueError:
        return trigger


def about_of(schedule: Schedule) -> str:
    """What a deadline looks for."""
    deadline = schedule.deadline
    if deadline is None or not (deadline.about or deadline.period):
        return schedule.task
    name = deadline.about or schedule.task
    return f"{name} of the {deadline.period.unit}" if deadline.period else name


def coming(facts: Facts, count: int = NEXT_SHOWN) -> list[float]:
    """Its next ticks; the first may be overdue."""
    schedule = facts.schedule
    found = [] if schedule.next_at is None else [schedule.next_at]
    try:
        timing = Timing.of(schedule)
        while found and len(found) < count:
            behind = timing.next_after(max(found[-1], facts.now))
            if behind is None:
                break
            found.append(behind)
    except ValueError:  # it cannot be read here
        pass
    return found


def args_of(schedule: Schedule) -> object:
    return from_json(bytes(codec.decode_or_blank(schedule.body).args))


def policy_of(schedule: Schedule) -> Policy:
    return codec.decode_or_blank(schedule.body).policy or Policy()


def brief(facts: Facts) -> dict[str, object]:
    """A line of the list, as JSON has it."""
    schedule, last = facts.schedule, facts.last
    return {
        "id": schedule.id,
        "task": schedule.task,
        "state": facts.state,
        "note": schedule.note,
        "next_at": _iso(schedule.next_at),
        "left": None if schedule.next_at is None else round(schedule.next_at - facts.now, 3),
        "last_at": last and iso(last.firing.nominal),
        "passed": last and round(facts.now - last.firing.nominal, 3),
        "last": last and last.word,
        "last_run": last and last.state and last.run_id,
        "trigger": schedule.trigger,
        "words": words_of(schedule.trigger),
        "zone": facts.zone,
        "owner": schedule.owner or None,
        "kind": "schedule" if schedule.deadline is None else "deadline",
    }


def whole(facts: Facts) -> dict[str, object]:
    """Everything, as JSON has it."""
    schedule = facts.schedule
    return brief(facts) | {
        "deadline": plain_value("deadline", schedule.deadline),
        "once": plain_value("once", schedule.once),
        "fires_at": _iso(schedule.fires_at),
        "args": args_of(schedule),
        "key": schedule.key,
        "priority": schedule.priority,
        "overlap": schedule.overlap,
        "unique": schedule.guards.unique,
        "catch_up": schedule.catch_up,
        "grace": schedule.grace,
        "start": _iso(schedule.start),
        "end": _iso(schedule.end),
        "anchor": _iso(schedule.anchor),
        "since": _iso(schedule.since),
        "version": schedule.version,
        "upcoming": [iso(nominal) for nominal in coming(facts)],
        "firings": [
            {
                "nominal": iso(fate.firing.nominal),
                "reason": str(fate.firing.reason),
                "run": fate.run_id,
                "state": fate.state and str(fate.state),
                "outcome": fate.word,
            }
            for fate in reversed(facts.fates)
        ],
    }


def _iso(instant: float | None) -> str | None:
    return None if instant is None else iso(instant)
