"""Schedule: a trigger, the call it makes, its policies, and its state."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rota.domain.deadline import Deadline
from rota.domain.decision import Decision, Reason
from rota.domain.guards import Guards
from rota.domain.period import Period
from rota.domain.run import DEFAULT_QUEUE, NewRun
from rota.domain.triggers.at_start import AT_START

Overlap = Literal["skip", "queue", "allow", "replace", "buffer"]
"""What a tick does while an earlier run is unfinished: skip makes no run, queue makes one that waits for the end of the
earlier run, allow makes one that runs beside it, replace cancels the earlier run and makes one that starts when the
earlier call has ended, buffer makes one that waits for the ends of all earlier runs."""
CatchUp = Literal["latest", "all", "skip"]
"""Which of the ticks that fell while no worker ran are made up: the last, all (up to CATCH_UP_CAP), or none."""

CATCH_UP_CAP = 100
BUFFER = 100
"""Runs of a schedule with overlap="buffer" that may wait, unless the schedule says another number."""
UNBOUNDED = 2**31 - 1
FIRINGS_KEPT = 30


class Firing(Struct, frozen=True, array_like=True):
    """What became of one nominal time.

    `run` is an earlier run that the tick joined or that made the store refuse the tick. An accepted tick has a run of
    its own, whose id derives from the nominal time (`run_of`).
    """

    nominal: float
    reason: Reason
    run: str | None = None


class Missed(Struct, frozen=True, omit_defaults=True):
    """A range of ticks that made no run. `count` is exact; with `more`, there are at least `count`.

    The tick of a missed deadline is also reported as Missed: with the reason `late`, and with `note` as its text.
    """

    first: float
    last: float
    count: int
    more: bool = False
    reason: Reason = Reason.MISSED
    note: str = ""

    @property
    def words(self) -> str:
        if self.note:
            return self.note
        first, last = (datetime.fromtimestamp(at, UTC).isoformat(" ", "seconds")[:19] for at in (self.first, self.last))
        count = f"at least {self.count:,}" if self.more else f"{self.count:,}"
        return f"{count} from {first} to {last} UTC" if self.count > 1 else f"{first} UTC"


class Schedule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The upper fields are declared, the lower fields are the state that a store keeps. Instants are seconds by the
    store's clock.

    `owner` is the app whose code declares the schedule; a schedule that was put at run time has none. `body` is the
    stored form of its runs without an origin (`domain.codec`). `next_at` is the nominal time of the next tick and
    `fires_at` the same time with jitter; both are None when no tick is left. Ticks before `since` are not made up: the
    schedule was new, changed or paused then. `version` grows with every change of the schedule, so that the store
    refuses a tick that was computed before the change. The ticks of a schedule with a `deadline` make no run; they look
    for a success. A schedule with `times` ends when it has made so many runs; `made` counts them. With
    overlap="buffer", at most `buffer` runs wait.
    """

    id: str
    trigger: str
    task: str
    body: str
    key: str
    priority: int = 0
    guards: Guards = Guards()
    overlap: Overlap = "skip"
    catch_up: CatchUp = "latest"
    grace: float | None = None
    start: float | None = None
    end: float | None = None
    owner: str = ""
    once: Period | None = None
    deadline: Deadline | None = None
    queue: str = DEFAULT_QUEUE
    buffer: int = BUFFER
    times: int | None = None
    share: str | None = None

    anchor: float | None = None
    next_at: float | None = None
    fires_at: float | None = None
    version: int = 0
    since: float = 0.0
    paused: bool = False
    note: str | None = None
    made: int = 0
    recent: tuple[Firing, ...] = ()

    @property
    def left(self) -> int | None:
        """How many more runs the schedule makes; UNBOUNDED for a buffer, whose runs are counted too; None for a
        schedule whose runs nobody counts."""
        if self.times is not None:
            return max(0, self.times - self.made)
        return UNBOUNDED if self.overlap == "buffer" else None

    @property
    def next(self) -> datetime | None:
        """The nominal time of the next tick, in UTC; None when no tick is left. A paused schedule does not fire it."""
        return None if self.next_at is None else datetime.fromtimestamp(self.next_at, UTC)

    @property
    def ended(self) -> bool:
        """No tick is left. A schedule with AtStart never ends."""
        return self.next_at is None and not self.trigger.startswith(AT_START)

    def same_times(self, other: "Schedule") -> bool:
        """Return whether both schedules fire at the same times. Anchors are not compared: the first one stays."""
        return self.when == other.when

    @property
    def when(self) -> tuple[object, ...]:
        """The part of the declaration that says when the schedule fires. A change of it begins anew."""
        when = (self.trigger, self.start, self.end)
        return when if self.times is None else (*when, self.times)

    def with_state_of(self, other: "Schedule") -> "Schedule":
        """Return this declaration with the state (anchor, next tick, pause, history) of `other`."""
        return replace(
            self,
            anchor=other.anchor,
            next_at=other.next_at,
            fires_at=other.fires_at,
            version=other.version,
            since=other.since,
            paused=other.paused,
            note=other.note,
            made=other.made,
            recent=other.recent,
        )


class Tick(Struct, frozen=True, omit_defaults=True):
    """One advance of a schedule, computed from its state at (`version`, `next_at`). The store applies it as a whole, or
    not at all if the schedule has changed since.

    `runs` are put in order, one for each of `nominals`. A refused run still advances the schedule. `then` is the
    nominal time of the tick after this one. `missed` are ticks that make no run. `left` is `Schedule.left`: if it is a
    number, the runs that are accepted are counted, and the schedule ends if so many of them are.
    """

    schedule: str
    version: int
    next_at: float | None
    then: float | None
    fires_at: float | None
    runs: tuple[NewRun, ...] = ()
    nominals: tuple[float, ...] = ()
    missed: Missed | None = None
    left: int | None = None
    note: str | None = None
    """If given, the note that the schedule gets; an empty text removes its note."""


def declared(new: Schedule, known: Schedule | None, now: float) -> Schedule:
    """Return the schedule to store after `new` was declared over `known`; `known` itself if nothing changes."""
    if known is None and new.version:
        return new  # it comes from another store and keeps its state
    if known is None:
        return replace(new, version=1, since=now, paused=False, note=None, made=0, recent=())
    if not new.same_times(known):
        moved = replace(new, version=known.version + 1, since=now, made=0)
        return replace(moved, paused=known.paused, note=known.note, recent=known.recent)
    same = new.with_state_of(known)
    return known if same == known else replace(same, version=known.version + 1)


def advanced(schedule: Schedule, tick: Tick, decisions: Sequence[Decision]) -> Schedule:
    """Return the schedule after `tick`, with `decisions` as the store's answers to the runs of the tick."""
    answered = zip(tick.nominals, tick.runs, decisions, strict=True)
    firings = [
        Firing(nominal, decision.reason, None if decision.run == run.id else decision.run)
        for nominal, run, decision in answered
    ]
    if tick.missed is not None:
        firings.insert(0, Firing(tick.missed.last, tick.missed.reason))
    recent = (*schedule.recent, *firings)[-FIRINGS_KEPT:]
    note = schedule.note if tick.note is None else tick.note or None
    after = replace(schedule, next_at=tick.then, fires_at=tick.fires_at, recent=recent, note=note)
    if tick.left is None:
        return after
    made = sum(decision.reason is Reason.ACCEPTED for decision in decisions)
    after = replace(after, made=schedule.made + made)
    return replace(after, next_at=None, fires_at=None) if made >= tick.left else after


def paused(schedule: Schedule, note: str | None) -> Schedule:
    return schedule if schedule.paused else replace(schedule, paused=True, note=note, version=schedule.version + 1)


def resumed(schedule: Schedule, note: str | None, now: float) -> Schedule:
    """Return the schedule without its pause. Ticks that fell during the pause are not made up."""
    if not schedule.paused:
        return schedule
    return replace(schedule, paused=False, note=note, since=now, version=schedule.version + 1)
