"""Schedules: with what became of their firings, and what their triggers mean in words."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import asdict

from rota.client.tick_outcomes import TickOutcome, outcomes_of
from rota.domain import codec
from rota.domain.deadline import deadline_id
from rota.domain.decision import Reason
from rota.domain.policy import Policy, Retry
from rota.domain.schedule import Schedule
from rota.domain.secrets import hidden
from rota.domain.ticks import ON_TIME, is_postponed
from rota.domain.timing import Timing
from rota.domain.triggers import Cron, DailyAt, Every, Excluding, Intersection, Monthly, Trigger, Union, Weekly
from rota.store import Reads, RowQuery
from rota.views.values import from_json, iso, plain_value

NEXT_SHOWN = 5


class ScheduleView(Struct, frozen=True, kw_only=True):
    """A schedule in a list. `left` and `passed` are the seconds until the next tick and since the last firing.
    `paused_until`: somebody has put the ticks before this one off; nobody has to resume the schedule."""

    id: str
    task: str
    state: str
    note: str | None
    paused_until: str | None
    next_at: str | None
    left: float | None
    last_at: str | None
    passed: float | None
    last: str | None
    last_run: str | None
    trigger: str
    words: str
    zone: str
    owner: str | None
    kind: str


class FiringView(Struct, frozen=True):
    """One tick that was fired; `run` is None if the tick made no run."""

    nominal: str
    reason: str
    run: str | None
    state: str | None
    outcome: str


class ScheduleDetail(ScheduleView, frozen=True, kw_only=True):
    """A schedule with all its options, its next ticks and its last firings, the newest firing first."""

    deadline: object
    once: object
    fires_at: str | None
    args: object
    key: str
    priority: int
    queue: str
    overlap: str
    unique: object
    catch_up: str
    grace: float | None
    timeout: float | None
    retry: Retry | None
    """None: its runs are retried as the code of the task says."""
    lost: str
    expect: str | None
    """The trigger of its deadline."""
    start: str | None
    end: str | None
    buffer: int | None
    times: int | None
    made: int | None
    breaker: object
    anchor: str | None
    since: str | None
    version: int
    upcoming: tuple[str, ...]
    firings: tuple[FiringView, ...]


class Facts(Struct, frozen=True):
    """A schedule, the outcomes of its last firings (oldest first), and the zone in which its times are shown."""

    schedule: Schedule
    outcomes: Sequence[TickOutcome]
    zone: str
    now: float

    @property
    def state(self) -> str:
        return "paused" if self.schedule.paused else "ended" if self.schedule.ended else "active"

    @property
    def overdue(self) -> bool:
        """Whether the schedule should have fired a while ago, and no worker did it."""
        at = self.schedule.fires_at
        return at is not None and not self.schedule.paused and self.now - at > ON_TIME

    @property
    def last(self) -> TickOutcome | None:
        return self.outcomes[-1] if self.outcomes else None


async def facts_of(store: Reads, schedules: Sequence[Schedule], tz: str, now: float, most: int) -> list[Facts]:
    """Return the facts of each schedule with its last `most` firings; one read fetches the runs of all of them."""
    found = await outcomes_of(store, schedules, most)
    return [
        Facts(schedule, outcomes, zone_of(schedule.trigger, tz).key, now)
        for schedule, outcomes in zip(schedules, found, strict=True)
    ]


def own_zone(trigger: Trigger) -> str | None:
    """Return the zone that `trigger` names; None if it names none."""
    match trigger:
        case Excluding(trigger=inner):
            return own_zone(inner)
        case Union(triggers=parts) | Intersection(triggers=parts):
            named = {zone for part in parts if (zone := own_zone(part)) is not None}
            return named.pop() if len(named) == 1 else None
        case Every(tz=tz) | Cron(tz=tz) | DailyAt(tz=tz) | Weekly(tz=tz) | Monthly(tz=tz):
            return tz
        case _:
            return None


def zone_of(trigger: str, otherwise: str) -> ZoneInfo:
    """Return the zone that the text of `trigger` names, else the zone `otherwise`."""
    try:
        return ZoneInfo(own_zone(Trigger.parse(trigger)) or otherwise)
    except ValueError:  # a trigger of a newer version
        return ZoneInfo(otherwise)


def words_of(trigger: str) -> str:
    """Return the text of `trigger` in words; the text itself if this version cannot read it."""
    try:
        return Trigger.parse(trigger).describe()
    except ValueError:
        return trigger


def about_of(schedule: Schedule) -> str:
    """Return the task or flow whose success the deadline of `schedule` checks."""
    deadline = schedule.deadline
    if deadline is None or not (deadline.about or deadline.period):
        return schedule.task
    name = deadline.about or schedule.task
    return f"{name} of the {deadline.period.unit}" if deadline.period else name


def coming(facts: Facts, count: int = NEXT_SHOWN) -> list[float]:
    """Return the next `count` ticks; the first may be overdue."""
    schedule = facts.schedule
    found = [] if schedule.next_at is None else [schedule.next_at]
    try:
        timing = Timing.of(schedule)
        while found and len(found) < count:
            following = timing.next_after(max(found[-1], facts.now))
            if following is None:
                break
            found.append(following)
    except ValueError:  # a trigger of a newer version
        pass
    return found


def args_of(schedule: Schedule) -> object:
    body = codec.decode_or_blank(schedule.body)
    return hidden(from_json(bytes(body.args)), body.secrets)


def breaker_of(schedule: Schedule) -> dict[str, float] | None:
    """Return after how many failures in a row the ticks make no run, and for how many seconds."""
    rules = [rule for rule in schedule.guards.cooldowns if rule.reason is Reason.BREAKER]
    return {"failures": rules[0].failures, "cool_down": rules[0].seconds} if rules else None


def policy_of(schedule: Schedule) -> Policy:
    return codec.decode_or_blank(schedule.body).policy or Policy()


def schedule_view(facts: Facts) -> ScheduleView:
    schedule, last = facts.schedule, facts.last
    return ScheduleView(
        id=schedule.id,
        task=schedule.task,
        state=facts.state,
        note=schedule.note,
        paused_until=iso(schedule.next_at) if not schedule.paused and is_postponed(schedule, facts.now) else None,
        next_at=iso(schedule.next_at),
        left=None if schedule.next_at is None else round(schedule.next_at - facts.now, 3),
        last_at=iso(last.firing.nominal) if last else None,
        passed=round(facts.now - last.firing.nominal, 3) if last else None,
        last=last.word if last else None,
        last_run=last.run_id if last and last.state else None,
        trigger=schedule.trigger,
        words=words_of(schedule.trigger),
        zone=facts.zone,
        owner=schedule.owner or None,
        kind="schedule" if schedule.deadline is None else "deadline",
    )


async def expected(store: Reads, schedule: Schedule) -> str | None:
    """Return the trigger of the deadline that was put with `schedule`, or declared with it; None if it has none."""
    found = await store.rows(Schedule, RowQuery(names=[deadline_id(schedule.id)], limit=1))
    return found.items[0].trigger if found.items else None


def schedule_detail(facts: Facts, expect: str | None) -> ScheduleDetail:
    schedule = facts.schedule
    policy = policy_of(schedule)
    return ScheduleDetail(
        **asdict(schedule_view(facts)),
        deadline=plain_value("deadline", schedule.deadline),
        once=plain_value("once", schedule.once),
        fires_at=iso(schedule.fires_at),
        args=args_of(schedule),
        key=schedule.key,
        priority=schedule.priority,
        queue=schedule.queue,
        overlap=schedule.overlap,
        unique=schedule.guards.unique,
        catch_up=schedule.catch_up,
        grace=schedule.grace,
        timeout=policy.timeout,
        retry=policy.retry if policy.own_retry else None,
        lost=policy.lost,
        expect=expect,
        start=iso(schedule.start),
        end=iso(schedule.end),
        buffer=schedule.buffer if schedule.overlap == "buffer" else None,
        times=schedule.times,
        made=None if schedule.left is None else schedule.made,
        breaker=breaker_of(schedule),
        anchor=iso(schedule.anchor),
        since=iso(schedule.since),
        version=schedule.version,
        upcoming=tuple(iso(nominal) for nominal in coming(facts)),
        firings=firing_views(facts),
    )


def firing_views(facts: Facts) -> tuple[FiringView, ...]:
    """Return the last firings, the newest first."""
    return tuple(_firing(outcome) for outcome in reversed(facts.outcomes))


def _firing(outcome: TickOutcome) -> FiringView:
    return FiringView(
        nominal=iso(outcome.firing.nominal),
        reason=str(outcome.firing.reason),
        run=outcome.run_id,
        state=str(outcome.state) if outcome.state else None,
        outcome=outcome.word,
    )
