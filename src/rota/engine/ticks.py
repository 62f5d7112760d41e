"""Ticks: fire due schedules. The tick is computed here; the store applies it whole, or not at all if it is stale."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from rota.domain.deadline import Deadline
from rota.domain.decision import Reason
from rota.domain.event import Event
from rota.domain.run import State
from rota.domain.schedule import Schedule, Tick
from rota.domain.text import plural
from rota.domain.ticks import deadline_tick, due_tick, late, moved_tick
from rota.domain.timing import missed_words, shown
from rota.engine.hooks import Hooks
from rota.engine.tallies import Tallies
from rota.engine.traces import ticked, ticking
from rota.errors import StoreError
from rota.store import OFFER_AGAIN, Fired, MarkRow, RowQuery, RunQuery, Store
from rota.store.paging import row_pages

log = logging.getLogger("rota")

BATCH = 1000
"""Runs (or schedules that make none) in one call of `fire`, so that other calls do not wait long behind it."""
BREATH = 100
"""Schedules whose ticks are computed at a time, so that the event loop stays free for other work."""
AT_ONCE = 2
"""Batches under way: while the store takes one, the next is computed."""
PAGE = 1000
LAST_RUNS = 50
LOGGED = 10
"""Missed ranges of one batch that are logged one by one."""


class Ticks:
    """Fires the schedules that claims offer, while claiming goes on. The store offers again what was not fired."""

    def __init__(self, store: Store, hooks: Hooks, tallies: Tallies, undeclared: Collection[str] = ()) -> None:
        """`undeclared` are schedules that the code no longer declares: a skipped tick of one is logged once."""
        self._store = store
        self._tallies = tallies
        self._undeclared = undeclared
        self._logged: set[str] = set()
        self._hooks = hooks
        self._due: deque[tuple[Schedule, float]] = deque()
        self._some = asyncio.Event()
        self._turn = asyncio.Lock()  # held while ticks are computed
        self._odd: set[tuple[str, int]] = set()  # schedules and versions whose ticks cannot be computed here

    def take(self, due: Iterable[Schedule], now: float) -> None:
        """Queue the schedules `due`, without those that already wait here and are offered again."""
        if self._due and now - self._due[0][1] >= OFFER_AGAIN:
            waiting = {_position(schedule) for schedule, _ in self._due}
            due = [schedule for schedule in due if _position(schedule) not in waiting]
        self._due.extend((schedule, now) for schedule in due)
        if self._due:
            self._some.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as parts:
            parts.create_task(self._follow_zones())
            for _ in range(AT_ONCE):
                parts.create_task(self._fire_due())

    async def fire_taken(self) -> None:
        """Fire all that was taken, for a process that claims without an engine."""
        while self._due:
            await self._fire(await self._next_batch())

    async def _fire_due(self) -> None:
        while True:
            async with self._turn:
                await self._some.wait()
                ticks = await self._next_batch()
                if not self._due:
                    self._some.clear()
            await self._fire(ticks)

    async def _next_batch(self) -> list[tuple[Schedule, Tick]]:
        ticks: list[tuple[Schedule, Tick]] = []
        weight = 0
        while self._due and weight < BATCH:
            schedule, now = self._due.popleft()
            if schedule.deadline is None:
                tick = self._computed(schedule, partial(due_tick, schedule, now))
            else:
                tick = await self._look(schedule, schedule.deadline, now)
            if tick is not None:
                ticks.append((schedule, tick))
                weight += max(1, len(tick.runs))
            if len(ticks) % BREATH == 0:
                await asyncio.sleep(0)
        return ticks

    async def _fire(self, ticks: Sequence[tuple[Schedule, Tick]]) -> None:
        """Fire the ticks. The store offers again what it did not take or whose reply was lost; a tick applies once."""
        if not ticks:
            return
        begun = [ticking(schedule, tick) for schedule, tick in ticks]
        try:
            reply = await self._store.fire([tick for tick, _ in begun])
        except StoreError as error:
            for _, span in begun:
                ticked(span, False, ())
            log.warning("cannot fire %s, offered again soon: %s", plural(len(ticks), "schedule"), error)
            return
        missed = 0
        for (_, span), fired in zip(begun, reply.items, strict=True):
            ticked(span, fired.applied, fired.decisions)
        for (schedule, tick), fired in zip(ticks, reply.items, strict=True):
            self._tallies.fired(schedule, tick, fired, reply.now)
            missed += fired.applied and tick.missed is not None and tick.missed.reason is Reason.MISSED
            self._log(schedule, tick, fired, logging.WARNING if missed <= LOGGED else logging.DEBUG)
        if missed > LOGGED:
            log.warning("%s more missed ticks; `rota why` tells of each", plural(missed - LOGGED, "schedule"))

    def _computed(self, schedule: Schedule, compute: Callable[[], Tick | None]) -> Tick | None:
        """Return the tick of `schedule`; None if `compute` finds none, or this version cannot read the trigger."""
        try:
            return compute()
        except ValueError as error:
            self._complain(schedule, error)
            return None

    async def _look(self, schedule: Schedule, deadline: Deadline, now: float) -> Tick | None:
        """Return the tick of a deadline: late, unless the task succeeded in time."""
        try:
            found = deadline_tick(schedule, now)
            if found is None:
                return due_tick(schedule, now)  # the zone has changed: the tick lies ahead
            tick, nominal, before = found
            if nominal < schedule.since or await self._is_done(schedule, deadline, nominal, before):
                return tick
            return late(tick, nominal, deadline.words(nominal))
        except ValueError as error:
            self._complain(schedule, error)
        except StoreError as error:
            log.warning("cannot look whether %s is late, it is offered again: %s", schedule.task, error)
        return None

    async def _is_done(self, schedule: Schedule, deadline: Deadline, nominal: float, before: float | None) -> bool:
        """Return whether the task succeeded for the time `nominal`; without a period, since the deadline `before`."""
        key = deadline.key(nominal)
        since = before or 0.0 if deadline.period is None else 0.0
        rows = (await self._store.rows(MarkRow, RowQuery(task=schedule.task, key=key))).items
        if any(row.mark and row.mark.succeeded_at is not None and row.mark.succeeded_at > since for row in rows):
            return True
        # A mark may be forgotten before the next deadline comes; the last runs of a task are kept.
        query = RunQuery(task=schedule.task, key=key, state=[State.SUCCEEDED], limit=LAST_RUNS)
        done = (await self._store.runs(query)).runs if deadline.period is None else []
        return any(run.finished_at is not None and run.finished_at > since for run in done)

    def _complain(self, schedule: Schedule, error: ValueError) -> None:
        if (schedule.id, schedule.version) not in self._odd:
            self._odd.add((schedule.id, schedule.version))
            log.error("schedule %s (%s) cannot be planned here: %s", schedule.id, schedule.trigger, error)

    def _log(self, schedule: Schedule, tick: Tick, fired: Fired, level: int) -> None:
        if not fired.applied:
            return  # another worker has fired it, or it has changed since
        if tick.missed is not None and tick.missed.reason is Reason.LATE:
            log.warning("%s is late: %s", schedule.task, tick.missed.words)
            key = None if schedule.deadline is None else schedule.deadline.key(tick.missed.last)
            self._hooks.emit(Event("late", schedule.task, reason="late", note=tick.missed.words, key=key))
        elif tick.missed is not None:
            log.log(level, "schedule %s missed %s", schedule.id, missed_words(tick.missed))
            self._hooks.emit(Event("refused", schedule.task, reason="missed", note=tick.missed.words, key=schedule.key))
        for nominal, decision in zip(tick.nominals, fired.decisions, strict=True):
            if not decision:
                skipped = f"schedule {schedule.id} skipped its tick of {shown(nominal)}"
                reason = str(decision.reason)
                self._log_skipped(schedule, skipped, decision.reason)
                self._hooks.emit(Event("refused", schedule.task, reason=reason, note=skipped, key=schedule.key))
        if log.isEnabledFor(logging.DEBUG):
            log.debug("schedule %s fired %d, next %s", schedule.id, len(tick.runs), shown(tick.then))

    def _log_skipped(self, schedule: Schedule, skipped: str, reason: Reason) -> None:
        """Log a skipped tick. DEBUG if somebody disabled the task on purpose, or if it was logged once that the code no
        longer declares the schedule."""
        left = schedule.id in self._undeclared
        quiet = reason is Reason.DISABLED or schedule.id in self._logged
        words = "; it is no longer in the code of its app, `rota sync --prune` deletes it" if left else ""
        log.log(logging.DEBUG if quiet else logging.WARNING, "%s: %s%s", skipped, reason, words)
        if left:
            self._logged.add(schedule.id)

    async def _follow_zones(self) -> None:
        """Compute the next ticks anew, because the time-zone database may have changed, and move those that differ."""
        try:
            async for page in row_pages(self._store, Schedule, RowQuery(limit=PAGE)):
                ticks = [(each, self._computed(each, partial(moved_tick, each))) for each in page.items]
                moved = [(schedule, tick) for schedule, tick in ticks if tick is not None]
                for schedule, tick in moved:
                    log.info("schedule %s moves: next %s", schedule.id, shown(tick.then))
                await self._fire(moved)
        except StoreError as error:
            log.warning("cannot look whether ticks have moved with their zones: %s", error)


def _position(schedule: Schedule) -> tuple[str, int, float | None]:
    """Return the next tick of a declared schedule; it changes when the tick is fired."""
    return schedule.id, schedule.version, schedule.next_at
