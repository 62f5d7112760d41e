"""Plans that follow their anchor: one run per item, at its time. Planning again moves what waits and cancels what is
gone."""

import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from rota.client.client import Client
from rota.client.portal import Portal
from rota.domain import codec
from rota.domain.decision import Decision, Reason
from rota.domain.flow import check_flow_name
from rota.domain.guards import Guards
from rota.domain.intake import FIRST_DAY, LAST_DAY, Span, check_name, seconds
from rota.domain.once import check_period, named
from rota.domain.run import Member, NewRun, Origin, Run, State, after
from rota.domain.triggers.zones import find_zone
from rota.domain.written import Formats
from rota.errors import InvalidArguments, InvalidOptions
from rota.store import Plan, RunQuery
from rota.task import Bound, call_of

log = logging.getLogger("rota")

Item = TypeVar("Item")
Instant = datetime | float | int
MILLISECONDS = 1e11
"""From here on a number counts milliseconds: as seconds it would lie beyond the year 5000."""
MOST = 10_000
PAGE = 1000


class PlanReport(Struct, frozen=True, kw_only=True):
    """What became of each item, by its key. `past` are those whose time was over, and `missed` those among them that
    never ran: each has a run that ended as `expired`, and a decision. `done` ran already, or run now; `failed` have,
    and are left alone until they are put to a later time; `refused` says why, also of those that a person has
    cancelled."""

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
    """One item's run, and when it is to be."""

    key: str
    due_at: float
    run: NewRun

    def too_late(self) -> NewRun:
        """The run of an item whose time is over: the store ends it as expired and records that, once. It joins no run
        that waits: another planner may know a later time by now."""
        expires_at = self.due_at if self.run.expires_at is None else self.run.expires_at
        return replace(self.run, expires_at=expires_at, guards=replace(self.run.guards, join="refuse"))


class Seen(Struct, frozen=True):
    """The newest run of an item."""

    run: Run

    @property
    def waits(self) -> bool:
        return self.run.state in (State.QUEUED, State.PAUSED)

    def is_missed(self, now: float) -> bool:
        """Did its time pass before anyone could start it? A store without a worker has not ended it yet."""
        over = self.waits and self.run.expires_at is not None and self.run.expires_at <= now
        return (over or self.run.reason is Reason.EXPIRED) and not self.run.attempts

    def is_taken_out(self, note: str) -> bool:
        """Has the plan itself cancelled it, because it was not among the items?"""
        return self.run.reason is Reason.CANCELLED and self.run.note == note

    def is_put_off(self, planned: float) -> bool:
        """Was it planned for this very time, and waits longer since: for a retry, or because its handler said so?"""
        return self.waits and self.run.origin.nominal == planned and self.run.due_at > planned

    def is_over(self, planned: float, note: str) -> bool:
        """Has it ended, and is it not put to a later time now? What this plan itself has cancelled may come back."""
        ended = self.run.state.final and not self.is_taken_out(note)
        return ended and planned <= (self.run.origin.nominal or 0.0)


def normalize_instant(value: object, tz: str | None = None) -> float:
    """Unix seconds from seconds, milliseconds or a datetime; a naive one is by the clock of `tz`."""
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
    """What `app.plan` does, with its words checked."""

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
        """A run for each item; raises before anything is put if one of them is wrong."""
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
        """Too late to start; without a grace, whatever should have begun already, unless that is wanted."""
        if self.grace is not None:
            return after(wanted.due_at, self.grace) <= now
        return skip_past and wanted.due_at < now

    async def put(self, client: Client, wanted: list[Wanted], skip_past: bool) -> PlanReport:
        now, seen = await self._seen(client)
        plan = Plan(self.group, frozenset(self.unique_key(one.key) for one in wanted))
        past = {one.key: one for one in wanted if self.is_past(one, now, skip_past)}
        over = {one.key for one in wanted if one.key in seen and seen[one.key].is_over(one.due_at, plan.note)}
        left = {one.key for one in wanted if one.key in seen and seen[one.key].is_put_off(one.due_at)}
        to_come = [one for one in wanted if one.key not in past and one.key not in over and one.key not in left]
        unknown = [one for key, one in past.items() if key not in seen or seen[key].is_taken_out(plan.note)]
        runs = [one.run for one in to_come] + [one.too_late() for one in unknown]
        answers = (await client.put(runs, plan)).items
        gone = {decision.run for decision in answers[len(runs) :]}
        await client.ended_here(sorted(gone))
        report = _report(to_come, answers, seen)
        known = {key for key, one in seen.items() if one.is_missed(now)}
        missed = known | self._found_missed(unknown, answers[len(to_come) : len(runs)])
        ended = {key: seen[key].run for key in sorted(over - past.keys())}
        by_hand = {key: run.reason or Reason.CANCELLED for key, run in ended.items() if run.state is State.CANCELLED}
        return replace(
            report,
            kept=(*report.kept, *sorted(left - past.keys())),
            cancelled=tuple(key for key, one in seen.items() if one.run.id in gone),
            past=tuple(past),
            missed=tuple(key for key in past if key in missed),
            done=(*report.done, *(key for key, run in ended.items() if run.state is State.SUCCEEDED)),
            failed=tuple(key for key, run in ended.items() if run.state is State.FAILED),
            refused=report.refused | by_hand,
        )

    def _found_missed(self, unknown: list[Wanted], answers: list[Decision]) -> set[str]:
        """Those that no plan before this one knew. The store has judged them by its marks, which outlive the runs of
        what is done."""
        new = {one.key for one, answer in zip(unknown, answers, strict=True) if answer.reason is Reason.ACCEPTED}
        if new:
            log.warning("plan %s@%s: missed, their time is over: %s", self.name, self.period, ", ".join(sorted(new)))
        return new

    async def _seen(self, client: Client) -> tuple[float, dict[str, Seen]]:
        """The store's time, and the newest run of each item, whatever became of it."""
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

    portal: Portal
    formats: Formats
    _client: Client

    async def plan(
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
    ) -> PlanReport:
        """One run per item, `offset` from its time: `at` gives an aware datetime, Unix seconds or milliseconds.

        Planning again moves what waits, cancels what is no longer among the items, and leaves alone what ran: each
        `key` runs once in the `period`. Items whose time is over are passed over, unless they are within their `grace`
        (seconds in which a run may still start) or `skip_past` is off. All of it is one step of the store.
        """
        planner = Planner(name, period, grace, offset, tz, self.formats)
        return await planner.put(self._client, planner.wanted(items, call, at, key, where), skip_past)

    def plan_sync(
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
    ) -> PlanReport:
        """`plan` from synchronous code; raises where an event loop runs."""
        planner = Planner(name, period, grace, offset, tz, self.formats)
        wanted = planner.wanted(items, call, at, key, where)
        return self.portal.call(lambda: planner.put(self._client, wanted, skip_past))


def _report(wanted: list[Wanted], answers: list[Decision], seen: Mapping[str, Seen]) -> PlanReport:
    """What became of those that were put."""
    found: dict[str, list[str]] = {"planned": [], "moved": [], "kept": [], "done": []}
    refused: dict[str, Reason] = {}
    for one, answer in zip(wanted, answers, strict=False):
        match answer.reason:
            case Reason.ACCEPTED:
                found["planned"].append(one.key)
            case Reason.JOINED:
                same = one.key in seen and seen[one.key].run.due_at == one.due_at
                found["kept" if same else "moved"].append(one.key)
            case Reason.ALREADY_DONE | Reason.ALREADY_RUNNING:
                found["done"].append(one.key)
            case reason:
                refused[one.key] = reason
    return PlanReport(**{word: tuple(keys) for word, keys in found.items()}, refused=refused)
