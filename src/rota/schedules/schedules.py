"""Schedules at run time: `app.schedules.put("report", DailyAt(9), greet.bind("Ada"))`, and what code declares."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from rota.client.client import Client
from rota.client.handle import RunHandle, accept
from rota.client.tick_outcomes import TickOutcome, outcomes_of
from rota.domain.deadline import deadline_id
from rota.domain.decision import Decision, Reason
from rota.domain.firing import backfill, passed_tick, run_now, tick_id, ticks_between, with_first_tick
from rota.domain.ids import retry_id
from rota.domain.intake import Span, Timed, instant
from rota.domain.run import State
from rota.domain.schedule import FIRINGS_KEPT, CatchUp, Overlap, Schedule, Tick
from rota.domain.timing import shown
from rota.domain.triggers import Trigger
from rota.errors import InvalidOptions, ScheduleNotFound, ScheduleTaken
from rota.schedules.deadlines import expecting
from rota.store import Command, Declared, Reply, RowQuery, RunQuery, Scope
from rota.task import Bound, call_of, new_id, trigger_of

log = logging.getLogger("rota")

PAGE = 1000
SEEN = 10_000
"""Schedules that a process remembers for its status."""
BAD_ENDS = (State.FAILED, State.CANCELLED)


class Schedules:
    """Durable schedules of any app on the same store. Every change is noticed by running workers at once."""

    def __init__(self, client: Callable[[], Client], tz: str) -> None:
        self._client = client
        self._tz = tz
        self.seen: dict[str, Schedule] = {}
        """As this process last read them: for a status, which does not wait for the store."""

    async def put(
        self,
        id: str,
        trigger: Trigger | str,
        call: Bound[Any],
        *,
        overlap: Overlap | None = None,
        catch_up: CatchUp = "latest",
        grace: Span | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        expect: Trigger | str | None = None,
        paused: bool = False,
    ) -> Schedule:
        """Add a schedule, or change the one of this name: at its next tick it is as said here.

        `overlap` says what a tick does while an earlier run is unfinished: `skip` (the default), `queue` one behind
        it, or `allow`. `catch_up` says which ticks are made up that nobody was there for: the `latest`, `all` (the
        last hundred, one after the other), or `skip`. A run that could not start `grace` seconds after its tick
        never does. Nothing fires before `start` or after `end`, and never for the past. `expect` is when a run of it
        should have succeeded, such as "07:00": else it is `late`. With `paused`, it fires nothing until it is resumed,
        from the step that adds it on; without, a schedule that is there already stays paused if it is.
        """
        put = self.put_many(
            [(id, trigger, call)],
            overlap=overlap,
            catch_up=catch_up,
            grace=grace,
            start=start,
            end=end,
            expect=expect,
            paused=paused,
        )
        return (await put)[0]

    async def put_many(
        self,
        items: Iterable[tuple[str, Trigger | str, Bound[Any]]],
        *,
        overlap: Overlap | None = None,
        catch_up: CatchUp = "latest",
        grace: Span | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        expect: Trigger | str | None = None,
        paused: bool = False,
    ) -> Sequence[Schedule]:
        """Thousands in one step: (name, trigger, call) each, with the same policies. Raises before any is put if one
        is wrong."""
        timed = Timed(overlap=overlap, catch_up=catch_up, grace=grace, start=start, end=end)
        made = [call_of(call).to_schedule(id, self._zoned(id, trigger), timed) for id, trigger, call in items]
        return await self.put_made(made, expect, paused)

    async def put_made(
        self, schedules: Sequence[Schedule], expect: Trigger | str | None = None, paused: bool = False
    ) -> Sequence[Schedule]:
        """The same for schedules that are made already. One that is put without `expect` has no deadline any more."""
        both = schedules if expect is None else [row for each in schedules for row in expecting(each, expect, self._tz)]
        if paused:
            await self._pause([schedule.id for schedule in schedules])  # those that are there: none fires between
        await self._put(both, paused)
        if paused:
            await self._pause([schedule.id for schedule in schedules])  # those that somebody else has added meanwhile
        if expect is None:
            await self._drop_deadlines([schedule.id for schedule in schedules])
        return await self._read([schedule.id for schedule in schedules])

    async def _pause(self, ids: Sequence[str]) -> None:
        await self._client().control(Command.PAUSE, ids, of=Scope.SCHEDULES)

    async def _put(self, schedules: Sequence[Schedule], paused: bool = False) -> None:
        names = Counter(schedule.id for schedule in schedules)
        if twice := [name for name, count in names.items() if count > 1]:
            raise InvalidOptions(f"schedule {twice[0]} is put twice at once; give each a name of its own")
        prepared, passed = await self._prepare(schedules, paused)
        for schedule in prepared:
            if schedule.next_at is None:
                raise InvalidOptions(f"schedule {schedule.id}: '{schedule.trigger}' does not fire any more")
        answers = await self._declare(prepared, passed)
        taken = [schedule.id for schedule, answer in zip(prepared, answers, strict=True) if answer is Declared.TAKEN]
        if taken:
            raise ScheduleTaken(
                f"{', '.join(taken[:5])}: declared by the code of an app, which would change it back; "
                "choose another name, or change the code"
            )

    async def _drop_deadlines(self, of: Sequence[str]) -> None:
        """Those that were put beside these schedules; what code expects is its own."""
        put = [row.id for row in await self._read([deadline_id(id) for id in of]) if row.deadline and not row.owner]
        if put:
            await self._client().control(Command.DROP, put, "put again without expect", of=Scope.SCHEDULES)

    def _zoned(self, id: str, trigger: Trigger | str) -> Trigger:
        try:
            found = trigger_of(trigger)
            if found is None:
                raise TypeError("it needs a trigger, such as DailyAt(9)")
            return found.in_zone(self._tz)
        except (TypeError, ValueError) as error:
            raise InvalidOptions(f"schedule {id}: {error}") from None

    async def declare(
        self, schedules: Sequence[Schedule], renamed: Mapping[str, Sequence[str]] | None = None
    ) -> dict[str, Declared]:
        """What code says: adds and changes, never removes. One that stands under a former name goes on under its
        new one."""
        await self._rename(schedules, renamed or {})
        prepared, passed = await self._prepare(schedules)
        answers = await self._declare(prepared, passed)
        for schedule, answer in zip(prepared, answers, strict=True):
            if answer is Declared.TAKEN:
                log.error(
                    "schedule %s belongs to another app, so this one's does not run: give its task another name, "
                    "or delete that one with `rota schedules delete %s`",
                    schedule.id,
                    schedule.id,
                )
        ours = [schedule.id for schedule, answer in zip(prepared, answers, strict=True) if answer is not Declared.TAKEN]
        for schedule in await self._read(ours):
            when = "paused" if schedule.paused else f"next {shown(schedule.next_at)}"
            log.info("scheduled %s: %s, %s", schedule.id, schedule.trigger, when)
        return {schedule.id: answer for schedule, answer in zip(prepared, answers, strict=True)}

    async def get(self, id: str) -> Schedule:
        return (await self._found(id)).items[0]

    async def ticks(self, id: str, most: int = FIRINGS_KEPT) -> Sequence[TickOutcome]:
        """What became of its last ticks, at most thirty, oldest first: why each made a run or none, which run stands
        for it, and how that run ended."""
        schedule = await self.get(id)
        return (await outcomes_of(self._client(), [schedule], most))[0]

    async def list(self, task: str | None = None) -> Sequence[Schedule]:
        """All, by name."""
        found = [schedule async for schedule in self._client().all_rows(Schedule, RowQuery(task=task, limit=PAGE))]
        self._saw(found, [id for id, known in self.seen.items() if task is None or known.task == task])
        return found

    async def pause(self, id: str, note: str | None = None, by: str | None = None) -> bool:
        """No tick fires until it is resumed; false if it was paused already."""
        return await self._control(Command.PAUSE, id, note, by)

    async def resume(self, id: str, note: str | None = None, by: str | None = None) -> bool:
        """Ticks fire again from now on; what was missed meanwhile is not made up."""
        return await self._control(Command.RESUME, id, note, by)

    async def delete(self, id: str, note: str | None = None, by: str | None = None) -> None:
        """And the deadline that was put with it. Its runs stay as they are."""
        beside = [row.id for row in await self._read([deadline_id(id)]) if row.deadline and not row.owner]
        reply = await self._client().control(Command.DROP, [id, *beside], note, by, Scope.SCHEDULES)
        if not reply.items[0]:
            await self._found(id)
        self._saw([], [id, *beside])

    async def run_now(self, id: str) -> RunHandle[Any]:
        """One more run at once; the ticks stay as they are. Raises Refused where the schedule's overlap says no."""
        reply = await self._working(id)
        run = run_now(reply.items[0], new_id(), reply.now)
        return self._handle(accept(await self._client().submit(run)))

    async def backfill(self, id: str, start: datetime, end: datetime) -> Sequence[RunHandle[Any]]:
        """A run for every tick from `start` to `end`, one after the other, behind what the schedule has unfinished.

        A tick whose run succeeded or is unfinished is not repeated: its handle says so (`created` is False). One
        whose run failed or was cancelled runs again. A tick that lies ahead is refused, for it comes by itself.
        """
        reply = await self._working(id)
        try:
            last = instant(end, "end")
            if last > reply.now:
                raise ValueError(f"end={end} lies ahead; a backfill makes runs of ticks that have passed")
            nominals = ticks_between(reply.items[0], instant(start, "start"), last)
        except (TypeError, ValueError) as error:
            raise InvalidOptions(f"schedule {id}: {error}") from None
        return [self._handle(decision) for decision in await self._fill(reply.items[0], nominals)]

    async def _fill(self, schedule: Schedule, nominals: Sequence[float]) -> Sequence[Decision]:
        """One answer per tick: its new run, or the one that stands for it already."""
        client = self._client()
        standing = await self._standing(schedule, set(nominals))
        fresh = {nominal: tick_id(schedule.id, nominal) for nominal in nominals if nominal not in standing}
        taken = True
        while taken:  # what has ended badly is tried again, under the id that a retry of it has
            known = {run.id: run for run in (await client.runs(RunQuery(ids=list(fresh.values())))).runs}
            taken = False
            for nominal, run in [(nominal, known[id]) for nominal, id in fresh.items() if id in known]:
                if run.state in BAD_ENDS or run.origin.nominal != nominal:
                    fresh[nominal], taken = retry_id(run.id), True
                else:
                    standing[nominal] = Decision(run.id, Reason.JOINED)
                    del fresh[nominal]
        unfinished = RunQuery(task=schedule.task, key=schedule.key, states=[State.QUEUED, State.RUNNING], limit=100)
        runs = backfill(schedule, fresh, [run.id for run in (await client.runs(unfinished)).runs])
        made = iter((await client.put(runs)).items)
        return [standing[nominal] if nominal in standing else next(made) for nominal in nominals]

    async def _standing(self, schedule: Schedule, nominals: set[float]) -> dict[float, Decision]:
        """The ticks that a run of another id stands for: with overlap="queue", a tick may have joined the run of an
        earlier one, which stands for the later tick since."""
        if schedule.overlap != "queue" or not nominals:
            return {}
        found: dict[float, Decision] = {}
        async for run in self._client().all_runs(RunQuery(task=schedule.task, key=schedule.key, limit=PAGE)):
            ticked = run.origin.kind in ("schedule", "retry") and run.origin.nominal in nominals
            if ticked and run.origin.nominal is not None and run.state not in BAD_ENDS:
                found[run.origin.nominal] = Decision(run.id, Reason.JOINED)
        return found

    async def prune(self, owner: str, keep: Iterable[str], by: str | None = None) -> Sequence[str]:
        """Delete what this app declared once and no longer does."""
        kept = set(keep)
        gone = [schedule.id for schedule in await self.list() if schedule.owner == owner and schedule.id not in kept]
        await self._client().control(Command.DROP, gone, "no longer in the code", by, Scope.SCHEDULES)
        return gone

    async def _rename(self, schedules: Sequence[Schedule], renamed: Mapping[str, Sequence[str]]) -> None:
        new = {old: schedule for schedule in schedules for old in renamed.get(schedule.id, ())}
        known = {schedule.id for schedule in await self._read([schedule.id for schedule in new.values()])}
        for old in await self._read([*new]) if new else ():
            schedule = new[old.id]
            if old.owner != schedule.owner:
                continue
            await self._client().control(Command.DROP, [old.id], "renamed", of=Scope.SCHEDULES)
            if schedule.id not in known and schedule.same_times(old):
                await self._client().declare([replace(schedule.with_state_of(old), version=old.version + 1)])
            log.info("schedule %s goes on as %s", old.id, schedule.id)

    async def _prepare(
        self, schedules: Sequence[Schedule], paused: bool = False
    ) -> tuple[Sequence[Schedule], Sequence[Tick]]:
        """With their first ticks, by the store's clock, which alone decides what is past. Overdue ticks of a schedule
        whose times change are not made up: they come back as steps that record them as missed.

        A new one is `paused` by the version that it is given: with one, a store takes it as it stands."""
        reply = await self._rows([schedule.id for schedule in schedules])
        stored = {row.id: row for row in reply.items}
        prepared: list[Schedule] = []
        passed: list[Tick] = []
        for schedule in schedules:
            known = stored.get(schedule.id)
            try:
                first = with_first_tick(schedule, reply.now, known)
                stands = paused and known is None and schedule.deadline is None
                prepared.append(replace(first, version=1, since=reply.now, paused=True) if stands else first)
            except ValueError as error:
                raise InvalidOptions(f"schedule {schedule.id}: {error}") from None
            if known is not None and known.owner == schedule.owner and not schedule.same_times(known):
                passed.extend(_passing(known, reply.now))
        return prepared, passed

    async def _declare(self, schedules: Sequence[Schedule], passed: Sequence[Tick]) -> Sequence[Declared]:
        if passed:
            await self._client().fire(passed)
        return (await self._client().declare(schedules)).items

    async def _rows(self, ids: Sequence[str]) -> Reply[Schedule]:
        return await self._client().rows(Schedule, RowQuery(names=ids, limit=max(1, len(ids))))

    async def _read(self, ids: Sequence[str]) -> Sequence[Schedule]:
        found = {row.id: row for row in (await self._rows(ids)).items}
        self._saw(found.values(), ids)
        return [found[id] for id in ids if id in found]

    async def _found(self, id: str) -> Reply[Schedule]:
        reply = await self._rows([id])
        if not reply.items:
            raise ScheduleNotFound(f"no schedule {id}; `rota schedules ls` shows those there are")
        return reply

    async def _working(self, id: str) -> Reply[Schedule]:
        """One that makes runs."""
        reply = await self._found(id)
        check_working(reply.items[0])
        return reply

    async def _control(self, command: Command, id: str, note: str | None, by: str | None) -> bool:
        reply = await self._client().control(command, [id], note, by, Scope.SCHEDULES)
        if reply.items[0]:
            await self._read([id])
            return True
        await self._found(id)
        return False

    def _saw(self, found: Iterable[Schedule], asked: Sequence[str]) -> None:
        """What was asked for and is not found is gone."""
        for id in asked:
            self.seen.pop(id, None)
        for schedule in found:
            if schedule.id in self.seen or len(self.seen) < SEEN:
                self.seen[schedule.id] = schedule

    def _handle(self, decision: Decision) -> RunHandle[Any]:
        return RunHandle(self._client(), decision.run, decision=decision)


def check_working(schedule: Schedule) -> None:
    if schedule.deadline is not None:
        raise InvalidOptions(
            f"{schedule.id} is a deadline: it makes no runs, it looks whether {schedule.task} has succeeded"
        )


def _passing(known: Schedule, now: float) -> Iterator[Tick]:
    with suppress(ValueError):  # its trigger cannot be read here
        if (tick := passed_tick(known, now)) is not None:
            yield tick
