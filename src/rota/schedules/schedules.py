"""Schedules at run time: `app.schedules.put("report", DailyAt(9), greet.bind("Ada"))`, and what code declares."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from msgspec.structs import replace

from rota.client.handle import RunHandle, accept
from rota.client.tick_outcomes import TickOutcome, outcomes_of
from rota.domain.activity import Breaker
from rota.domain.deadline import deadline_id
from rota.domain.decision import Decision, Reason
from rota.domain.ids import retry_id
from rota.domain.intake import Span, instant, seconds
from rota.domain.policy import Lost, Retry
from rota.domain.run import State
from rota.domain.schedule import FIRINGS_KEPT, CatchUp, Overlap, Schedule
from rota.domain.scheduling import Timed
from rota.domain.starts import is_at_start
from rota.domain.ticks import backfill, run_now, tick_id, ticks_between
from rota.domain.timing import shown
from rota.domain.triggers import Trigger
from rota.errors import InvalidOptions, ScheduleChanged, ScheduleTaken
from rota.schedules.deadlines import expecting
from rota.schedules.starting import declare_start
from rota.schedules.stored import TRIES, StoredSchedules, absent_only, check_names, expected_version
from rota.store import Command, Declared, RowQuery, RunQuery, Scope, Terms
from rota.task import Bound, call_of, new_id, trigger_of

log = logging.getLogger("rota")
R = TypeVar("R")

PAGE = 1000
RECONCILED = 10_000
"""The most schedules that one `reconcile` keeps."""
BAD_ENDS = (State.FAILED, State.CANCELLED)


class Schedules(StoredSchedules):
    """The durable schedules of all apps on one store. Running workers notice every change at once."""

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
        buffer: int | None = None,
        times: int | None = None,
        breaker: Breaker | None = None,
        expect: Trigger | str | None = None,
        paused: bool = False,
        queue: str | None = None,
        timeout: Span | str | None = None,
        retry: Retry | None = None,
        lost: Lost | None = None,
        if_absent: bool = False,
        if_version: int | None = None,
    ) -> Schedule:
        """Add a schedule, or change the schedule named `id`: the change holds from its next tick on.

        `overlap` says what a tick does while an earlier run is unfinished: `skip` (the default), `queue` one run behind
        it, `allow` another, `replace` it (the earlier run is cancelled, and the new one starts when it has ended), or
        `buffer` up to `buffer` runs behind it, which start in order; a tick beyond that is refused as `buffer_full`.
        `catch_up` says which ticks are made up that no worker was there for: the `latest`, `all` (the last hundred, one
        after the other), or `skip`. A run that could not start within `grace` seconds of its tick never starts. Nothing
        fires before `start`, after `end`, or for the past; the schedule also ends when it has made `times` runs. With
        `breaker=Breaker(3)`, ticks make no run for a day after three failed runs in a row. `expect` says when a run
        should have succeeded, such as "07:00"; otherwise the schedule is `late`. A new schedule that is put as `paused`
        fires nothing until it is resumed. Without `paused`, an existing schedule keeps its pause. `queue`,
        `timeout`, `retry` and `lost` of its runs go before those of the task; what `call` was bound with by `using`
        goes before both.

        With `if_absent`, a schedule that exists already is returned as it is. With `if_version`, ScheduleChanged is
        raised unless the schedule still has that `version`; its ticks do not change it.
        """
        expected = expected_version(id, if_absent, if_version)
        timed = Timed(
            overlap=overlap,
            catch_up=catch_up,
            grace=grace,
            start=start,
            end=end,
            buffer=buffer,
            times=times,
            breaker=breaker,
            queue=queue,
            timeout=timeout,
            retry=retry,
            lost=lost,
        )
        made = call_of(call).to_schedule(id, self._zoned(id, trigger), timed)
        terms = None if expected is None else Terms({id: expected})
        return (await self._put_made([made], expect, paused, terms))[0]

    async def put_many(
        self,
        items: Iterable[tuple[str, Trigger | str, Bound[Any]]],
        *,
        overlap: Overlap | None = None,
        catch_up: CatchUp = "latest",
        grace: Span | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        buffer: int | None = None,
        times: int | None = None,
        breaker: Breaker | None = None,
        expect: Trigger | str | None = None,
        paused: bool = False,
        queue: str | None = None,
        timeout: Span | str | None = None,
        retry: Retry | None = None,
        lost: Lost | None = None,
    ) -> Sequence[Schedule]:
        """Put thousands of schedules in one step: (name, trigger, call) each, with the same options. If one of them is
        wrong, raise before any is put."""
        timed = Timed(
            overlap=overlap,
            catch_up=catch_up,
            grace=grace,
            start=start,
            end=end,
            queue=queue,
            buffer=buffer,
            times=times,
            breaker=breaker,
            timeout=timeout,
            retry=retry,
            lost=lost,
        )
        made = [call_of(call).to_schedule(id, self._zoned(id, trigger), timed) for id, trigger, call in items]
        return await self._put_made(made, expect, paused)

    async def reconcile(
        self,
        name: str,
        rows: Iterable[R],
        *,
        key: Callable[[R], object],
        trigger: Callable[[R], Trigger | str],
        call: Callable[[R], Bound[Any]],
        overlap: Overlap | None = None,
        catch_up: CatchUp = "latest",
        grace: Span | None = None,
    ) -> Mapping[str, Declared]:
        """Make the schedules `name/…` those of `rows`, in one step: a schedule `name/key` for each row, and no other.

        Rows that stay the same keep their next ticks. Returns what became of each schedule: added, changed, unchanged
        or dropped. If somebody changes one of them at the same time, the step is tried again on what is there then.
        """
        timed = Timed(overlap=overlap, catch_up=catch_up, grace=grace)
        ids = [(f"{name}/{key(row)}", row) for row in rows]
        if len(ids) > RECONCILED:
            raise InvalidOptions(f"reconcile {name}: {len(ids):,} rows; at most {RECONCILED:,}")
        wanted = [call_of(call(row)).to_schedule(id, self._zoned(id, trigger(row)), timed) for id, row in ids]
        check_names(wanted)
        for _ in range(TRIES):
            known = {each.id: each for each in await self.list() if each.id.startswith(f"{name}/") and not each.owner}
            versions = {each.id: known[each.id].version if each.id in known else 0 for each in wanted}
            gone = tuple(id for id in known if id not in versions)
            prepared, passed = await self._prepare(wanted)
            terms = Terms(versions | {id: known[id].version for id in gone}, gone)
            answers = await self._declare(prepared, passed, terms)
            if Declared.TAKEN in answers:
                raise ScheduleTaken(f"reconcile {name}: the code of an app declares one of these schedules")
            if Declared.CONFLICT not in answers:
                return dict(zip([*versions, *gone], answers, strict=True))
        raise ScheduleChanged(f"reconcile {name}: its schedules change all the time; try again")

    async def _put_made(
        self,
        schedules: Sequence[Schedule],
        expect: Trigger | str | None = None,
        paused: bool = False,
        terms: Terms | None = None,
    ) -> Sequence[Schedule]:
        """Put schedules that are made already. A schedule that is put without `expect` loses its deadline."""
        both = schedules if expect is None else [row for each in schedules for row in expecting(each, expect, self._tz)]
        ids = [schedule.id for schedule in schedules]
        if paused and terms is None:
            await self._pause(ids)  # existing schedules: they must not fire before the put
        if not await self._put(both, paused, terms):
            return await self._read(ids)
        if paused:
            await self._pause(ids)  # schedules that somebody else has added meanwhile
        if expect is None:
            await self._drop_deadlines(ids)
        return await self._read(ids)

    async def _pause(self, ids: Sequence[str]) -> None:
        await self._client().control(Command.PAUSE, ids, of=Scope.SCHEDULES)

    async def _put(self, schedules: Sequence[Schedule], paused: bool = False, terms: Terms | None = None) -> bool:
        """Return False if `terms` want no schedule, and there is one."""
        check_names(schedules)
        prepared, passed = await self._prepare(schedules, paused)
        for schedule in prepared:
            if schedule.next_at is None:
                raise InvalidOptions(f"schedule {schedule.id}: '{schedule.trigger}' does not fire any more")
        answers = await self._declare(prepared, [] if terms else passed, terms)
        taken = [schedule.id for schedule, answer in zip(prepared, answers, strict=True) if answer is Declared.TAKEN]
        if terms and Declared.CONFLICT in answers:
            return absent_only(terms)
        if taken:
            raise ScheduleTaken(
                f"{', '.join(taken[:5])}: declared by the code of an app, which would change it back; "
                "choose another name, or change the code"
            )
        return True

    async def _drop_deadlines(self, of: Sequence[str]) -> None:
        """Drop the deadlines that were put with the schedules `of`. Deadlines that code declares stay."""
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
        """Add and change the schedules of an app's code; never remove one. A schedule that the store has under a former
        name continues under its new name."""
        await self._rename(schedules, renamed or {})
        prepared, passed = await self._prepare([each for each in schedules if not is_at_start(each)])
        answers = dict(zip([each.id for each in prepared], await self._declare(prepared, passed), strict=True))
        answers |= {each.id: await declare_start(self._client(), each) for each in schedules if is_at_start(each)}
        for schedule in schedules:
            if answers[schedule.id] is Declared.TAKEN:
                log.error(
                    "schedule %s belongs to another app, so this one's does not run: give its task another name, "
                    "or delete that one with `rota schedules delete %s`",
                    schedule.id,
                    schedule.id,
                )
        for schedule in await self._read([id for id, answer in answers.items() if answer is not Declared.TAKEN]):
            when = "paused" if schedule.paused else f"next {shown(schedule.next_at)}"
            log.info("scheduled %s: %s, %s", schedule.id, schedule.trigger, when)
        return answers

    async def get(self, id: str) -> Schedule:
        return (await self._found(id)).items[0]

    async def ticks(self, id: str, most: int = FIRINGS_KEPT) -> Sequence[TickOutcome]:
        """Return the last ticks of a schedule, at most thirty, oldest first: why each made a run or none, which run
        belongs to it, and how that run ended."""
        schedule = await self.get(id)
        return (await outcomes_of(self._client(), [schedule], most))[0]

    async def list(self, task: str | None = None) -> Sequence[Schedule]:
        """Return all schedules, or those of `task`, by name."""
        found = [schedule async for schedule in self._client().all_rows(Schedule, RowQuery(task=task, limit=PAGE))]
        self._saw(found, [id for id, known in self.seen.items() if task is None or known.task == task])
        return found

    async def pause(
        self, id: str, note: str | None = None, by: str | None = None, *, until: datetime | Span | None = None
    ) -> bool:
        """Let no tick fire until the schedule is resumed. Returns False if it was paused already.

        With `until`, an instant or seconds from now, the next tick is the first one from then on, by the store's clock:
        nobody has to resume the schedule. Other times, which a put or the code may give it, end such a pause.
        """
        if until is None:
            return await self._control(Command.PAUSE, id, note, by)
        before = await self._found(id)
        at = instant(until, "until") if isinstance(until, datetime) else before.now + seconds(until, "until")
        if at <= before.now:
            raise InvalidOptions(f"schedule {id}: until={until!r} is past: nothing is paused")
        return (await self._move(id, at, "schedules.pause", note)).next_at != before.items[0].next_at

    async def resume(self, id: str, note: str | None = None, by: str | None = None) -> bool:
        """Let ticks fire again from now on. Ticks missed during the pause are not made up."""
        if not await self._is_postponed(id):
            return await self._control(Command.RESUME, id, note, by)
        await self._move(id, 0.0, "schedules.resume", note or "")
        return True

    async def delete(self, id: str, note: str | None = None, by: str | None = None) -> None:
        """Delete a schedule, and the deadline that was put with it. Its runs stay."""
        beside = [row.id for row in await self._read([deadline_id(id)]) if row.deadline and not row.owner]
        reply = await self._client().control(Command.DROP, [id, *beside], note, by, Scope.SCHEDULES)
        if not reply.items[0]:
            await self._found(id)
        self._saw([], [id, *beside])

    async def run_now(self, id: str) -> RunHandle[Any]:
        """Submit one more run at once; the ticks stay as they are. Raises Refused if the schedule's overlap forbids the
        run."""
        reply = await self._working(id)
        run = run_now(reply.items[0], new_id(), reply.now)
        return self._handle(accept(await self._client().submit(run)))

    async def backfill(self, id: str, start: datetime, end: datetime) -> Sequence[RunHandle[Any]]:
        """Submit a run for every tick from `start` to `end`, one after the other, behind the schedule's unfinished
        runs.

        A tick whose run succeeded or is unfinished is not repeated: `created` of its handle is False. A tick whose run
        failed or was cancelled runs again. A tick in the future is refused: the schedule fires it by itself.
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
        """Return one decision per tick: for its new run, or for the run that it has already."""
        client = self._client()
        existing = await self._existing(schedule, set(nominals))
        fresh = {nominal: tick_id(schedule.id, nominal) for nominal in nominals if nominal not in existing}
        taken = True
        while taken:  # a run that ended badly is tried again, under the id of its retry
            known = {run.id: run for run in (await client.runs(RunQuery(ids=list(fresh.values())))).runs}
            taken = False
            for nominal, run in [(nominal, known[id]) for nominal, id in fresh.items() if id in known]:
                if run.state in BAD_ENDS or run.origin.nominal != nominal:
                    fresh[nominal], taken = retry_id(run.id), True
                else:
                    existing[nominal] = Decision(run.id, Reason.JOINED)
                    del fresh[nominal]
        unfinished = RunQuery(task=schedule.task, key=schedule.key, state=[State.QUEUED, State.RUNNING], limit=100)
        runs = backfill(schedule, fresh, [run.id for run in (await client.runs(unfinished)).runs])
        made = iter((await client.put(runs)).items)
        return [existing[nominal] if nominal in existing else next(made) for nominal in nominals]

    async def _existing(self, schedule: Schedule, nominals: set[float]) -> dict[float, Decision]:
        """Return the ticks that a run with another id belongs to: with overlap="queue", a tick may have joined the run
        of an earlier tick, and from then on the run has the nominal time of the later one."""
        if schedule.overlap not in ("queue", "replace") or not nominals:
            return {}
        found: dict[float, Decision] = {}
        async for run in self._client().all_runs(RunQuery(task=schedule.task, key=schedule.key, limit=PAGE)):
            ticked = run.origin.kind in ("schedule", "retry") and run.origin.nominal in nominals
            if ticked and run.origin.nominal is not None and run.state not in BAD_ENDS:
                found[run.origin.nominal] = Decision(run.id, Reason.JOINED)
        return found

    async def prune(self, owner: str, keep: Iterable[str], by: str | None = None) -> Sequence[str]:
        """Delete the schedules of `owner` that are not in `keep`."""
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

    async def _control(self, command: Command, id: str, note: str | None, by: str | None) -> bool:
        reply = await self._client().control(command, [id], note, by, Scope.SCHEDULES)
        if reply.items[0]:
            await self._read([id])
            return True
        await self._found(id)
        return False

    def _handle(self, decision: Decision) -> RunHandle[Any]:
        return RunHandle(self._client(), decision.run, decision=decision)


async def put_made(
    schedules: Schedules, made: Schedule, expect: Trigger | str | None, paused: bool, expected: int | None = None
) -> Schedule:
    """Put a schedule that a caller made of a call by name, if it has the version `expected`; 0: if there is none."""
    terms = None if expected is None else Terms({made.id: expected})
    return (await schedules._put_made([made], expect, paused, terms))[0]  # pyright: ignore[reportPrivateUsage]
