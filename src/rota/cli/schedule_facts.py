"""Schedules as people ask about them: with what became of their firings, and what their triggers mean in words."""

from collections.abc import Sequence

from msgspec import Struct

from rota.cli.instants import zone_of
from rota.cli.records import from_json, plain_value
from rota.cli.text import iso
from rota.domain import wire
from rota.domain.decision import Reason
from rota.domain.planning import ON_TIME, tick_id
from rota.domain.policy import Policy
from rota.domain.run import Run
from rota.domain.schedule import Firing, Schedule
from rota.domain.timing import Timing
from rota.domain.triggers import Trigger
from rota.store import RunQuery, Store

NEXT_SHOWN = 5


class Fate(Struct, frozen=True):
    """One firing and what became of it; `run` is None where none was made, or none is remembered."""

    firing: Firing
    id: str
    run: Run | None

    @property
    def made(self) -> bool:
        return self.firing.reason is Reason.ACCEPTED

    @property
    def word(self) -> str:
        """The state of its run; else why it has none."""
        if self.run is not None:
            return str(self.run.state)
        return "forgotten" if self.made else str(self.firing.reason)


class Facts(Struct, frozen=True):
    """A schedule, its firings (oldest first), and the zone in whose time it is told."""

    schedule: Schedule
    fates: Sequence[Fate]
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
    def last(self) -> Fate | None:
        return self.fates[-1] if self.fates else None


async def facts_of(store: Store, schedules: Sequence[Schedule], tz: str, now: float, most: int) -> list[Facts]:
    """With the last `most` firings of each; the runs of all of them come in one read."""
    firings = {schedule.id: schedule.recent[-most:] for schedule in schedules}
    wanted = [tick_id(id, firing.nominal) for id, several in firings.items() for firing in several]
    runs = {run.id: run for run in (await store.runs(RunQuery(ids=wanted))).runs} if wanted else {}
    return [
        Facts(
            schedule,
            [_fate(schedule.id, firing, runs) for firing in firings[schedule.id]],
            zone_of(schedule.trigger, tz).key,
            now,
        )
        for schedule in schedules
    ]


def _fate(schedule: str, firing: Firing, runs: dict[str, Run]) -> Fate:
    id = tick_id(schedule, firing.nominal)
    return Fate(firing, id, runs.get(id))


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
    return from_json(bytes(wire.decode_or_blank(schedule.body).args))


def policy_of(schedule: Schedule) -> Policy:
    return wire.decode_or_blank(schedule.body).policy or Policy()


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
        "last_run": last and last.run and last.run.id,
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
                "run": fate.run and fate.run.id,
                "state": fate.run and str(fate.run.state),
            }
            for fate in reversed(facts.fates)
        ],
    }


def _iso(instant: float | None) -> str | None:
    return None if instant is None else iso(instant)
