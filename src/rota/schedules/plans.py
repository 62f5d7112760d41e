"""Plans: one run per item of a list, at the item's time. Planning again moves waiting runs and cancels dropped ones."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import Any, Generic, Required, TypedDict, TypeVar, Unpack
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from rota.client.client import Client
from rota.domain import codec
from rota.domain.decision import Decision, Reason
from rota.domain.flow import check_flow_name
from rota.domain.guards import Guards
from rota.domain.intake import FIRST_DAY, LAST_DAY, Span, check_name, seconds
from rota.domain.once import check_period, named
from rota.domain.period_formats import Formats
from rota.domain.run import Member, NewRun, Origin, Run, State, after
from rota.domain.triggers.zones import find_zone
from rota.errors import InvalidArguments, InvalidOptions
from rota.store import Plan, RunQuery
from rota.task import Bound, Submitter, call_of

log = logging.getLogger("rota")

Item = TypeVar("Item")
Instant = datetime | float | int
MILLISECONDS = 1e11
"""From this number on, a number counts milliseconds: as seconds it would lie beyond the year 5000."""
MOST = 10_000
PAGE = 1000


class PlanOptions(TypedDict, Generic[Item], total=False):
    """The options of `app.plan`."""

    call: Required[Callable[[Item], Bound[Any]]]
    """The call for an item: `lambda race: predict.bind(race.id)`."""
    at: Required[Callable[[Item], Instant]]
    """The time of an item: an aware datetime, Unix seconds or Unix milliseconds."""
    key: Required[Callable[[Item], object]]
    """The name of an item: each runs once in the period."""
    period: Required[str | date]
    """The period of the plan, such as a day."""
    offset: Span
    """Seconds from the time of an item to its run; negative for a run before that time."""
    where: Callable[[Item], object] | None
    """Which items are planned; all by default."""
    grace: Span | None
    """Seconds after its time in which a run may still start."""
    skip_past: bool
    """Skip items whose time is over; True by default."""
    tz: str | None
    """The zone of naive datetimes."""


class PlanReport(Struct, frozen=True, kw_only=True):
    """What became of each item, by its key.

    - `planned`: a new run waits. `moved`: the waiting run has a new time. `kept`: it has the same time as before.
    - `cancelled`: the item is no longer in the list, so its waiting run was cancelled.
    - `past`: the time of the item is over. `missed`: items of `past` that never ran. Each has a run that ended as
      `expired`, and a decision.
    - `done`: the run has succeeded, or is running now.
    - `failed`: the run has failed. It runs again only if the item gets a later time.
    - `refused`: why the item has no run; also for items whose run a person has cancelled.
    """

    planned: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    refused: dict[str, Reason] = {}

    def __str__(self) -> str:
        parts = [(self.planned, "planned"), (self.moved, "moved"), (self.kept, "as they were")]
        past = f"past ({len(self.missed):,} missed)" if self.missed else "past"
        parts += [(self.cancelled, "cancelled"), (self.past, past), (self.done, "already done")]
        parts.append((self.failed, "failed"))
        parts.append((tuple(self.refused), "refused"))
        return ", ".join(f"{len(keys):,} {word}" for keys, word in parts if keys) or "nothing to plan"


class Wanted(Struct, frozen=True):
    """The run that one item should have, and when."""

    key: str
    due_at: float
    run: NewRun

    def too_late(self) -> NewRun:
        """Return the run of an item whose time is over: the store ends it as expired at once and records that.

        The run joins no waiting run: another planner may know a later time by now.
        """
        expires_at = self.due_at if self.run.expires_at is None else self.run.expires_at
        return replace(self.run, expires_at=expires_at, guards=replace(self.run.guards, join="refuse"))


class Seen(Struct, frozen=True):
    """The newest run of an item."""

    run: Run

    @property
    def waits(self) -> bool:
        return self.run.state in (State.QUEUED, State.PAUSED)

    def is_missed(self, now: float) -> bool:
        """Did the time of the run pass before a worker started it? If no worker is alive, the run is still queued."""
        over = self.waits and self.run.expires_at is not None and self.run.expires_at <= now
        return (over or self.run.reason is Reason.EXPIRED) and not self.run.attempts

    def is_taken_out(self, note: str) -> bool:
        """Did the plan itself cancel the run, because its item was not in the list?"""
        return self.run.reason is Reason.CANCELLED and self.run.note == note

    def is_put_off(self, planned: float) -> bool:
        """Was the run planned for this time, and is it due later because of a retry or a snooze?"""
        return self.waits and self.run.origin.nominal == planned and self.run.due_at > planned

    def is_over(self, planned: float, note: str) -> bool:
        """Has the run ended, and is the item not planned for a later time now? A run that the plan itself cancelled may
        return."""
        ended = self.run.state.final and not self.is_taken_out(note)
        return ended and planned <= (self.run.origin.nominal or 0.0)


def normalize_instant(value: object, tz: str | None = None) -> float:
    """Return Unix seconds from seconds, milliseconds or a datetime; a naive datetime is in the zone `tz`."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            if tz is None:
                raise ValueError(f"{value!r} has no time zone; give aware datetimes, or say tz=")
            value = value.replace(tzinfo=ZoneInfo(find_zone_name(tz)))
        found = value.timestamp()
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no instant: give an aware datetime, or Unix seconds or milliseconds")
    else:
        found = value / 1000 if abs(value) >= MILLISECONDS else float(value)
    if not FIRST_DAY <= found <= LAST_DAY:  # also refuses NaN
        raise ValueError(f"{value!r} is no instant from 1970 to 9999")
    return found


def find_zone_name(tz: str) -> str:
    find_zone(tz)
    return tz


class Planner:
    """One call of `app.plan`, with checked options."""

    def __init__(
        self, name: str, period: str | date, grace: Span | None, offset: Span, tz: str | None, formats: Formats
    ) -> None:
        try:
            self.name = check_flow_name(check_name(name))
            if isinstance(period, datetime):
                raise TypeError(f"period={period!r} is an instant; give a day, or the name of a period")
            self.period = check_period(period.isoformat() if isinstance(period, date) else formats.read(period))
            self.group = named(f"plan:{self.name}", self.period)
            self.grace = None if grace is None else seconds(grace, "grace")
            self.offset = offset.total_seconds() if isinstance(offset, timedelta) else float(offset)
            self.tz = None if tz is None else find_zone_name(tz)
        except (TypeError, ValueError) as error:
            raise InvalidOptions(f"plan {name}: {error}") from None

    def wanted(
        self,
        items: Iterable[Item],
        call: Callable[[Item], Bound[Any]],
        at: Callable[[Item], Instant],
        key: Callable[[Item], object],
        where: Callable[[Item], object] | None,
    ) -> list[Wanted]:
        """Return the run of each item; raise before anything is put if one item is wrong."""
        found: dict[str, Wanted] = {}
        for item in items:
            if where is not None and not where(item):
                continue
            name = str(key(item))
            if name in found:
                raise InvalidArguments(f"plan {self.name}: two items have the key {name!r}")
            if len(found) == MOST:
                raise InvalidArguments(f"plan {self.name}: more than {MOST:,} items; split them by name or period")
            found[name] = self._wanted(name, call(item), at(item))
        return list(found.values())

    def _wanted(self, key: str, call: Bound[Any], at: object) -> Wanted:
        if not isinstance(call, Bound):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArguments(f"plan {self.name}, {key}: call= gives {call!r}; let it bind a task: task.bind(...)")
        made = call_of(call)
        if made.options.id is not None:
            raise InvalidOptions(f"plan {self.name}, {key}: the plan names its runs; leave out id= of the call")
        if made.options.delay is not None or made.options.at is not None or made.options.expires is not None:
            raise InvalidOptions(f"plan {self.name}, {key}: at= says when; leave out delay, at and expires of the call")
        try:
            due_at = after(normalize_instant(at, self.tz) + self.offset, 0)
            name = self.unique_key(key)
        except (TypeError, ValueError) as error:
            raise InvalidArguments(f"plan {self.name}, {key}: {error}") from None
        if made.once is not None:
            raise InvalidOptions(
                f"plan {self.name}: {made.spec.name} has a once= of its own; a plan does each key once"
            )
        plain = made.to_run()
        origin = Origin(kind="plan", of=self.name, nominal=due_at, period=self.period)
        run = replace(
            plain,
            key=plain.key or name,
            unique_key=name,
            guards=Guards(unique="done", join="set", cooldowns=plain.guards.cooldowns),
            at=due_at,
            expires_at=None if self.grace is None else after(due_at, self.grace),
            group=self.group,
            body=codec.amend(plain.body, origin, Member(self.group)),
        )
        return Wanted(key, due_at, run)

    def unique_key(self, key: str) -> str:
        return named(f"{self.name}/{key}", self.period)

    def is_past(self, wanted: Wanted, now: float, skip_past: bool) -> bool:
        """Is it too late to start the run? Without a grace, its time is over, and `skip_past` says to skip it."""
        if self.grace is not None:
            return after(wanted.due_at, self.grace) <= now
        return skip_past and wanted.due_at < now

    async def put(self, client: Client, wanted: list[Wanted], skip_past: bool) -> PlanReport:
        now, seen = await self._seen(client)
        plan = Plan(self.group, frozenset(self.unique_key(item.key) for item in wanted))
        past = {item.key: item for item in wanted if self.is_past(item, now, skip_past)}
        over = {item.key for item in wanted if item.key in seen and seen[item.key].is_over(item.due_at, plan.note)}
        left = {item.key for item in wanted if item.key in seen and seen[item.key].is_put_off(item.due_at)}
        to_come = [item for item in wanted if item.key not in past and item.key not in over and item.key not in left]
        unknown = [item for key, item in past.items() if key not in seen or seen[key].is_taken_out(plan.note)]
        runs = [item.run for item in to_come] + [item.too_late() for item in unknown]
        answers = (await client.put(runs, plan)).items
        gone = {decision.run for decision in answers[len(runs) :]}
        await client.ended_here(sorted(gone))
        report = _report(to_come, answers, seen)
        known = {key for key, item in seen.items() if item.is_missed(now)}
        missed = known | self._found_missed(unknown, answers[len(to_come) : len(runs)])
        ended = {key: seen[key].run for key in sorted(over - past.keys())}
        by_hand = {key: run.reason or Reason.CANCELLED for key, run in ended.items() if run.state is State.CANCELLED}
        return replace(
            report,
            kept=(*report.kept, *sorted(left - past.keys())),
            cancelled=tuple(key for key, item in seen.items() if item.run.id in gone),
            past=tuple(past),
            missed=tuple(key for key in past if key in missed),
            done=(*report.done, *(key for key, run in ended.items() if run.state is State.SUCCEEDED)),
            failed=tuple(key for key, run in ended.items() if run.state is State.FAILED),
            refused=report.refused | by_hand,
        )

    def _found_missed(self, unknown: list[Wanted], answers: list[Decision]) -> set[str]:
        """Return the keys of items that are missed for the first time, and log them.

        The store refuses the expired run of an item that is done: marks outlive the runs.
        """
        new = {item.key for item, answer in zip(unknown, answers, strict=True) if answer.reason is Reason.ACCEPTED}
        if new:
            log.warning("plan %s@%s: missed, their time is over: %s", self.name, self.period, ", ".join(sorted(new)))
        return new

    async def _seen(self, client: Client) -> tuple[float, dict[str, Seen]]:
        """Return the store's time, and the newest run of each item by its key."""
        prefix, suffix = f"{self.name}/", f"@{self.period}"
        found: dict[str, Seen] = {}
        now = 0.0
        async for page in client.pages(RunQuery(group=self.group, limit=PAGE)):
            now = page.now
            for run in page.runs:
                found.setdefault((run.unique_key or "").removeprefix(prefix).removesuffix(suffix), Seen(run))
        return now, found


class Planning:
    """The part of an app that plans."""

    _submitter: Submitter
    _formats: Formats

    async def plan(self, name: str, items: Iterable[Item], **options: Unpack[PlanOptions[Item]]) -> PlanReport:
        """Put one run per item, `offset` seconds from the item's time, all in one step of the store.

        Planning the same `name` and `period` again moves the runs that wait, cancels those whose items are no longer in
        the list, and leaves alone the runs that have started: each key runs once in the period. Items whose time is
        over are skipped, unless they are within their `grace`, or `skip_past` is False. See PlanOptions.
        """
        return await self._prepare(name, items, **options)()

    def plan_sync(self, name: str, items: Iterable[Item], **options: Unpack[PlanOptions[Item]]) -> PlanReport:
        """`plan` from synchronous code; raises where an event loop runs."""
        return self._submitter.portal().call(self._prepare(name, items, **options))

    def _prepare(
        self,
        name: str,
        items: Iterable[Item],
        *,
        call: Callable[[Item], Bound[Any]],
        at: Callable[[Item], Instant],
        key: Callable[[Item], object],
        period: str | date,
        offset: Span = 0,
        where: Callable[[Item], object] | None = None,
        grace: Span | None = None,
        skip_past: bool = True,
        tz: str | None = None,
    ) -> Callable[[], Awaitable[PlanReport]]:
        """Read the items here and now, in the caller's thread; return the call that puts their runs."""
        planner = Planner(name, period, grace, offset, tz, self._formats)
        wanted = planner.wanted(items, call, at, key, where)
        return lambda: planner.put(self._submitter.client(), wanted, skip_past)


def _report(wanted: list[Wanted], answers: list[Decision], seen: Mapping[str, Seen]) -> PlanReport:
    """Report what became of the runs that were put."""
    found: dict[str, list[str]] = {"planned": [], "moved": [], "kept": [], "done": []}
    refused: dict[str, Reason] = {}
    for item, answer in zip(wanted, answers, strict=False):
        match answer.reason:
            case Reason.ACCEPTED:
                found["planned"].append(item.key)
            case Reason.JOINED:
                same = item.key in seen and seen[item.key].run.due_at == item.due_at
                found["kept" if same else "moved"].append(item.key)
            case Reason.ALREADY_DONE | Reason.ALREADY_RUNNING:
                found["done"].append(item.key)
            case reason:
                refused[item.key] = reason
    return PlanReport(**{word: tuple(keys) for word, keys in found.items()}, refused=refused)
