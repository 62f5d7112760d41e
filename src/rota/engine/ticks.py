"""Ticks: due schedules become runs. The plan is pure; the store takes it whole, or not at all if it is late."""

import asyncio
import logging
from collections import deque
from collections.abc import Collection, Iterable, Sequence

from rota.domain.deadline import Deadline
from rota.domain.decision import Reason
from rota.domain.firing import deadline_tick, due_tick, late, moved_tick
from rota.domain.plain import plural
from rota.domain.run import State
from rota.domain.schedule import Schedule, Tick
from rota.domain.timing import missed_words, shown
from rota.engine.hooks import Event, Hooks
from rota.errors import StoreError
from rota.store import OFFER_AGAIN, Fired, MarkRow, RowQuery, RunQuery, Store
from rota.store.paging import row_pages

log = logging.getLogger("rota")

BATCH = 1000
"""Runs (or schedules that make none) of one step, so that it stays short for all who wait behind it."""
BREATH = 100
"""Schedules that are planned at a time, so that the loop stays free for others."""
AT_ONCE = 2
"""Steps under way: while the store takes one, the next is planned."""
PAGE = 1000
LAST_RUNS = 50
TOLD = 10
"""Missed ranges of one step that are told one by one."""


class Ticks:
    """Takes what a claim offers and fires it, while claiming goes on. What it cannot fire is offered again."""

    def __init__(self, store: Store, hooks: Hooks, undeclared: Collection[str] = ()) -> None:
        """`undeclared` are schedules that left the code: a tick of one that makes no run is told of once."""
        self._store = store
        self._undeclared = undeclared
        self._told: set[str] = set()
        self._hooks = hooks
        self._due: deque[tuple[Schedule, float]] = deque()
        self._some = asyncio.Event()
        self._turn = asyncio.Lock()  # to plan
        self._odd: set[tuple[str, int]] = set()  # versions that cannot be planned here

    def take(self, due: Iterable[Schedule], now: float) -> None:
        """What is offered again while it waits here is left out."""
        if self._due and now - self._due[0][1] >= OFFER_AGAIN:
            waiting = {_stand(schedule) for schedule, _ in self._due}
            due = [schedule for schedule in due if _stand(schedule) not in waiting]
        self._due.extend((schedule, now) for schedule in due)
        if self._due:
            self._some.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as parts:
            parts.create_task(self._follow_zones())
            for _ in range(AT_ONCE):
                parts.create_task(self._fire_due())

    async def _fire_due(self) -> None:
        while True:
            async with self._turn:
                await self._some.wait()
                ticks = await self._fire_batch()
                if not self._due:
                    self._some.clear()
            await self._fire(ticks)

    async def _fire_batch(self) -> list[tuple[Schedule, Tick]]:
        ticks: list[tuple[Schedule, Tick]] = []
        weight = 0
        while self._due and weight < BATCH:
            schedule, now = self._due.popleft()
            tick = self._tick_of(schedule, now) if schedule.deadline is None else await self._look(schedule, now)
            if tick is not None:
                ticks.append((schedule, tick))
                weight += max(1, len(tick.runs))
            if len(ticks) % BREATH == 0:
                await asyncio.sleep(0)
        return ticks

    async def _fire(self, ticks: Sequence[tuple[Schedule, Tick]]) -> None:
        """What the store did not take, or whose reply was lost, is offered again soon; a tick applies once."""
        if not ticks:
            return
        try:
            reply = await self._store.fire([tick for _, tick in ticks])
        except StoreError as error:
            log.warning("cannot fire %s, offered again soon: %s", plural(len(ticks), "schedule"), error)
            return
        missed = 0
        for (schedule, tick), fired in zip(ticks, reply.items, strict=True):
            missed += fired.applied and tick.missed is not None and tick.missed.reason is Reason.MISSED
            self._tell(schedule, tick, fired, logging.WARNING if missed <= TOLD else logging.DEBUG)
        if missed > TOLD:
            log.warning("%s more missed ticks; `rota why` tells of each", plural(missed - TOLD, "schedule"))

    def _tick_of(self, schedule: Schedule, now: float) -> Tick | None:
        try:
            return due_tick(schedule, now)
        except ValueError as error:
            self._complain(schedule, error)
            return None

    async def _look(self, schedule: Schedule, now: float) -> Tick | None:
        """The step of a deadline: late, unless what it is about was done in time."""
        try:
            found = deadline_tick(schedule, now)
            if found is None:
                return due_tick(schedule, now)  # its zone has changed: the tick lies ahead
            tick, nominal, before = found
            if nominal < schedule.since or await self._is_done(schedule, nominal, before):
                return tick
            return late(tick, nominal, (schedule.deadline or Deadline()).words(nominal))
        except ValueError as error:
            self._complain(schedule, error)
        except StoreError as error:
            log.warning("cannot look whether %s is late, it is offered again: %s", schedule.task, error)
        return None

    async def _is_done(self, schedule: Schedule, nominal: float, before: float | None) -> bool:
        deadline = schedule.deadline or Deadline()
        key = deadline.key(nominal)
        since = before or 0.0 if deadline.period is None else 0.0
        rows = (await self._store.rows(MarkRow, RowQuery(task=schedule.task, key=key))).items
        if any(row.mark and row.mark.succeeded_at is not None and row.mark.succeeded_at > since for row in rows):
            return True
        # A mark may be forgotten sooner than the next deadline comes; the last runs of a task are kept.
        query = RunQuery(task=schedule.task, key=key, states=[State.SUCCEEDED], limit=LAST_RUNS)
        done = (await self._store.runs(query)).runs if deadline.period is None else []
        return any(run.finished_at is not None and run.finished_at > since for run in done)

    def _complain(self, schedule: Schedule, error: ValueError) -> None:
        if (schedule.id, schedule.version) not in self._odd:
            self._odd.add((schedule.id, schedule.version))
            log.error("schedule %s (%s) cannot be planned here: %s", schedule.id, schedule.trigger, error)

    def _tell(self, schedule: Schedule, tick: Tick, fired: Fired, level: int) -> None:
        if not fired.applied:
            return  # somebody else was first, or it was changed meanwhile
        if tick.missed is not None and tick.missed.reason is Reason.LATE:
            log.warning("%s is late: %s", schedule.task, tick.missed.words)
            key = (schedule.deadline or Deadline()).key(tick.missed.last)
            self._hooks.emit(Event("late", schedule.task, reason="late", note=tick.missed.words, key=key))
        elif tick.missed is not None:
            log.log(level, "schedule %s missed %s", schedule.id, missed_words(tick.missed))
            self._hooks.emit(Event("refused", schedule.task, reason="missed", note=tick.missed.words, key=schedule.key))
        for nominal, decision in zip(tick.nominals, fired.decisions, strict=True):
            if not decision:
                skipped = f"schedule {schedule.id} skipped its tick of {shown(nominal)}"
                reason = str(decision.reason)
                self._tell_skipped(schedule, skipped, decision.reason)
                self._hooks.emit(Event("refused", schedule.task, reason=reason, note=skipped, key=schedule.key))
        if log.isEnabledFor(logging.DEBUG):
            log.debug("schedule %s fired %d, next %s", schedule.id, len(tick.runs), shown(tick.then))

    def _tell_skipped(self, schedule: Schedule, skipped: str, reason: Reason) -> None:
        """Not every tick of what somebody disabled on purpose, nor of what left the code: the start of the worker says
        so."""
        left = schedule.id in self._undeclared
        quiet = reason is Reason.DISABLED or schedule.id in self._told
        words = "; it is no longer in the code of its app, `rota sync --prune` deletes it" if left else ""
        log.log(logging.DEBUG if quiet else logging.WARNING, "%s: %s%s", skipped, reason, words)
        if left:
            self._told.add(schedule.id)

    async def _follow_zones(self) -> None:
        """The time-zone database may have changed since the coming ticks were computed: each moves to where it lies
        now."""
        try:
            async for page in row_pages(self._store, Schedule, RowQuery(limit=PAGE)):
                moved = [(schedule, tick) for schedule in page.items if (tick := self._move(schedule))]
                for schedule, tick in moved:
                    log.info("schedule %s moves: next %s", schedule.id, shown(tick.then))
                await self._fire(moved)
        except StoreError as error:
            log.warning("cannot look whether ticks have moved with their zones: %s", error)

    def _move(self, schedule: Schedule) -> Tick | None:
        try:
            return moved_tick(schedule)
        except ValueError as error:
            self._complain(schedule, error)
            return None


def _stand(schedule: Schedule) -> tuple[str, int, float | None]:
    """Which tick of which declaration: once it is fired, the schedule stands elsewhere."""
    return schedule.id, schedule.version, schedule.next_at
