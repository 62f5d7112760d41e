"""Schedules at run time: `app.schedules.put("report", DailyAt(9), greet.bind("Ada"))`, and what code declares."""

import builtins
import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from rota.client import Client, patiently
from rota.domain.decision import Decision
from rota.domain.intake import Span, Timed, instant
from rota.domain.planning import backfill, first_tick, run_now
from rota.domain.schedule import CatchUp, Overlap, Schedule
from rota.domain.triggers import Trigger
from rota.errors import InvalidOptions, ScheduleNotFound, ScheduleTaken
from rota.handle import RunHandle, accept
from rota.store import Declared, Reply, RowQuery, Subject, Wish
from rota.task import Bound, new_id, trigger_of

log = logging.getLogger("rota")

PAGE = 1000


class Schedules:
    """Durable schedules of any app on the same store. Every change is noticed by running workers at once."""

    def __init__(self, client: Callable[[], Client], tz: str) -> None:
        self._client = client
        self._tz = tz

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
    ) -> Schedule:
        """Add a schedule, or change the one of this name: at its next tick it is as said here.

        `overlap` says what a tick does while an earlier run is unfinished: `skip` (the default), `queue` one behind
        it, or `allow`. `catch_up` says which ticks are made up that nobody was there for: the `latest`, `all` (the
        last hundred, one after the other), or `skip`. A run that could not start `grace` seconds after its tick
        never does. Nothing fires before `start` or after `end`, and never for the past.
        """
        item = (id, trigger, call)
        put = self.put_many([item], overlap=overlap, catch_up=catch_up, grace=grace, start=start, end=end)
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
    ) -> Sequence[Schedule]:
        """Thousands in one step: (name, trigger, call) each, with the same policies. Raises before any is put if one
        is wrong."""
        timed = Timed(overlap=overlap, catch_up=catch_up, grace=grace, start=start, end=end)
        return await self.put_made(
            [call.to_schedule(id, self._zoned(id, trigger), timed) for id, trigger, call in items]
        )

    async def put_made(self, schedules: Sequence[Schedule]) -> Sequence[Schedule]:
        """The same for schedules that are made already."""
        planned = await self._plan(schedules)
        for schedule in planned:
            if schedule.next_at is None:
                raise InvalidOptions(f"schedule {schedule.id}: '{schedule.trigger}' does not fire any more")
        answers = await self._declare(planned)
        taken = [schedule.id for schedule, answer in zip(planned, answers, strict=True) if answer is Declared.TAKEN]
        if taken:
            raise ScheduleTaken(
                f"{', '.join(taken[:5])}: declared by the code of an app, which would change it back; "
                "choose another name, or change the code"
            )
        return await self._read([schedule.id for schedule in planned])

    def _zoned(self, id: str, trigger: Trigger | str) -> Trigger:
        try:
            found = trigger_of(trigger)
            if found is None:
                raise TypeError("it needs a trigger, such as DailyAt(9)")
            return found.in_zone(self._tz)
        except (TypeError, ValueError) as error:
            raise InvalidOptions(f"schedule {id}: {error}") from None

    async def declare(self, schedules: Sequence[Schedule]) -> dict[str, Declared]:
        """What code says: adds and changes, never removes."""
        planned = await self._plan(schedules)
        answers = await self._declare(planned)
        for schedule, answer in zip(planned, answers, strict=True):
            if answer is Declared.TAKEN:
                log.error(
                    "schedule %s belongs to another app, so this one's does not run: give its task another name, "
                    "or delete that one with `rota schedules delete %s`",
                    schedule.id,
                    schedule.id,
                )
        for schedule in await self._read([schedule.id for schedule in planned]):
            when = "paused" if schedule.paused else f"next {_spelled(schedule.next_at)}"
            log.info("schedule %s: %s, %s", schedule.id, schedule.trigger, when)
        return {schedule.id: answer for schedule, answer in zip(planned, answers, strict=True)}

    async def get(self, id: str) -> Schedule:
        return (await self._found(id)).items[0]

    async def list(self, task: str | None = None) -> Sequence[Schedule]:
        """All, by name."""
        store = await self._client().store()
        found: builtins.list[Schedule] = []
        while True:
            after = found[-1].id if found else ""
            page = (await store.rows(Schedule, RowQuery(task=task, after=after, limit=PAGE))).items
            found.extend(page)
            if len(page) < PAGE:
                return found

    async def pause(self, id: str, note: str | None = None, by: str | None = None) -> bool:
        """No tick fires until it is resumed; false if it was paused already."""
        return await self._ask(Wish.PAUSE, id, note, by)

    async def resume(self, id: str, note: str | None = None, by: str | None = None) -> bool:
        """Ticks fire again from now on; what was missed meanwhile is not made up."""
        return await self._ask(Wish.RESUME, id, note, by)

    async def delete(self, id: str, note: str | None = None, by: str | None = None) -> None:
        """Its runs stay as they are."""
        await self._ask(Wish.DROP, id, note, by)

    async def run_now(self, id: str) -> RunHandle[Any]:
        """One more run at once; the ticks stay as they are. Raises Refused where the schedule's overlap says no."""
        reply = await self._found(id)
        run = run_now(reply.items[0], new_id(), reply.now)
        return self._handle(accept(await self._client().put(run)))

    async def backfill(self, id: str, start: datetime, end: datetime) -> Sequence[RunHandle[Any]]:
        """A run for every tick from `start` to `end`, one after the other. A tick whose run is still known is not
        repeated; one that lies ahead is refused, for it comes by itself."""
        reply = await self._found(id)
        try:
            last = instant(end, "end")
            if last > reply.now:
                raise ValueError(f"end={end} lies ahead; a backfill makes runs of ticks that have passed")
            runs = backfill(reply.items[0], instant(start, "start"), last)
        except (TypeError, ValueError) as error:
            raise InvalidOptions(f"schedule {id}: {error}") from None
        store = await self._client().store()
        decisions = (await patiently(lambda: store.put(runs))).items
        return [self._handle(accept(decision)) for decision in decisions]

    async def prune(self, owner: str, keep: Iterable[str], by: str | None = None) -> Sequence[str]:
        """Delete what this app declared once and no longer does."""
        kept = set(keep)
        gone = [schedule.id for schedule in await self.list() if schedule.owner == owner and schedule.id not in kept]
        store = await self._client().store()
        note = "no longer in the code"
        await patiently(lambda: store.ask(Wish.DROP, gone, note, by, Subject.SCHEDULES))
        return gone

    async def _plan(self, schedules: Sequence[Schedule]) -> Sequence[Schedule]:
        """By the store's clock, which alone decides what is past."""
        store = await self._client().store()
        now = (await patiently(lambda: store.declare([]))).now
        planned: builtins.list[Schedule] = []
        for schedule in schedules:
            try:
                planned.append(first_tick(schedule, now))
            except ValueError as error:
                raise InvalidOptions(f"schedule {schedule.id}: {error}") from None
        return planned

    async def _declare(self, schedules: Sequence[Schedule]) -> Sequence[Declared]:
        store = await self._client().store()
        return (await patiently(lambda: store.declare(schedules))).items

    async def _read(self, ids: Sequence[str]) -> Sequence[Schedule]:
        store = await self._client().store()
        query = RowQuery(names=ids, limit=max(1, len(ids)))
        found = {row.id: row for row in (await patiently(lambda: store.rows(Schedule, query))).items}
        return [found[id] for id in ids if id in found]

    async def _found(self, id: str) -> Reply[Schedule]:
        store = await self._client().store()
        reply = await store.rows(Schedule, RowQuery(names=[id]))
        if not reply.items:
            raise ScheduleNotFound(f"no schedule {id}; `rota schedules ls` shows those there are")
        return reply

    async def _ask(self, wish: Wish, id: str, note: str | None, by: str | None) -> bool:
        store = await self._client().store()
        reply = await patiently(lambda: store.ask(wish, [id], note, by, Subject.SCHEDULES))
        if reply.items[0]:
            return True
        await self._found(id)
        return False

    def _handle(self, decision: Decision) -> RunHandle[Any]:
        return RunHandle(self._client(), decision.run, decision=decision)


def _spelled(at: float | None) -> str:
    return "never" if at is None else datetime.fromtimestamp(at, UTC).isoformat(" ", "seconds")
