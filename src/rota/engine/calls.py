"""Calls: start a run on a seat, call its handler, give its ending to the settler."""

import asyncio
import logging
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from rota.domain.lifecycle import Failed, Interrupted, Outcome, Released, TimedOut, settlement_of
from rota.domain.run import Failure, Run
from rota.domain.settlement import without_secrets
from rota.domain.tail import Tail
from rota.domain.text import plural
from rota.engine.context import Context, context_here
from rota.engine.endings import log_ending
from rota.engine.events import Announcer
from rota.engine.heart import Heart
from rota.engine.log_tails import keep_tails
from rota.engine.outcomes import stored
from rota.engine.runner import Runner
from rota.engine.seats import Seat, Seats, Stop
from rota.engine.settler import Settler
from rota.engine.traces import observed, processed, processing, traceparent
from rota.engine.waiters import Waiters

log = logging.getLogger("rota")

CLEANUP, THREAD_CLEANUP = 6.0, 0.5
"""Seconds of cleanup for a handler that was asked to stop; THREAD_CLEANUP: for a handler in a thread."""

_WAITING = (Failed, TimedOut)
Left = Callable[[Seat], None]
"""Called when the run of a seat is no longer in hand."""


class Calls:
    def __init__(
        self,
        runner: Runner,
        seats: Seats,
        heart: Heart,
        settler: Settler,
        announcer: Announcer,
        resources: Any,
        written: Callable[[str], str],
    ) -> None:
        """`written` spells a period as the app writes it."""
        self.tasks = list(runner.handlers)
        self._runner = runner
        self._seats = seats
        self._heart = heart
        self._beat_soon = heart.beat_soon
        self._settler = settler
        self._announcer = announcer
        self._resources = resources
        self._written = written
        self._logged = frozenset(name for name, handler in runner.handlers.items() if handler.logs)
        self._parents = frozenset(name for name, handler in runner.handlers.items() if handler.trace == "parent")
        self._stop_tails = keep_tails() if self._logged else None
        self._waiters = Waiters(seats, runner.handlers.keys())
        self._loop = asyncio.get_running_loop()
        self._observed = False

    def start(self, runs: Sequence[Run], deadline: float, ahead: float, left: Left) -> list[Seat]:
        """Take a seat for each run and call its handler in a task of its own. No lease ends later than `deadline`, and
        `ahead` is what to add to the store's time for that of this process."""
        self._observed = observed()  # to ask for each run took a tenth of a short one
        self._announcer.tallies.claimed(runs)
        seats = [self._seat(run, min(deadline, ahead + (run.until or 0.0))) for run in runs]
        if seats and not self._seats:
            self._heart.filled()
        for seat in seats:  # each is taken before the first handler is called, which may take long
            self._seats.take(seat)
        start = self._starts_eagerly() or self._loop.create_task
        for seat in seats:
            seat.task = start(self._serve(seat, left), name=f"{seat.run.task} {seat.run.id}")
        return seats

    def _starts_eagerly(self) -> Callable[..., asyncio.Task[None]] | None:
        """Return what makes a task and takes its first step at once, where Python has this (3.12) and the app has not
        said how its loop makes tasks. A handler that does not wait has ended then, without a turn of the loop."""
        usual = type(self._loop).create_task is asyncio.BaseEventLoop.create_task
        if usual and self._loop.get_task_factory() is None and sys.version_info >= (3, 12):
            return partial(asyncio.Task, loop=self._loop, eager_start=True)
        return None

    def _seat(self, run: Run, deadline: float) -> Seat:
        period = None if run.origin.period is None else self._written(run.origin.period)
        context = Context(run, self._resources, self._beat_soon, period)
        context.waiters = self._waiters
        if run.task in self._logged:
            context.tail = Tail()
        return Seat(run, context, deadline)

    async def _serve(self, seat: Seat, left: Left) -> None:
        started = self._runner.stopwatch()
        if seat.task is None:  # an eager start calls the handler before it returns the task
            seat.task = asyncio.current_task()
        context_here.set(seat.context)  # for this asyncio task only
        if self._observed:
            seat.span = processing(seat.run, seat.run.task in self._parents)
        log.info("%s %s started (fence %d)", seat.run.task, seat.run.id, seat.run.fence)
        self._announcer.started(seat.run)
        outcome: Outcome | None = Interrupted()
        try:
            call = self._runner.plain_call(seat)
            if call is None:
                outcome = await self._runner.outcome(seat)
            else:
                try:
                    outcome = stored(await call)
                except BaseException as error:
                    outcome = self._runner.unsuccessful(error, seat)
            if isinstance(outcome, _WAITING):
                outcome = self._runner.waiting(outcome, seat)
        except GeneratorExit:  # the coroutine is thrown away together with its loop: there is nobody left to tell
            outcome = None
            raise
        except Exception as error:
            log.exception("%s %s: the runner itself failed; this is a bug in rota", seat.run.task, seat.run.id)
            outcome = Failed(Failure(type(error).__name__, "the runner itself failed; see the worker's log"))
        finally:  # whatever else happens, the run is settled and the seat is free again
            if outcome is not None:
                # to the microsecond; `round` takes five times as long
                self._end(seat, outcome, int((self._runner.stopwatch() - started) * 1e6 + 0.5) / 1e6, left)

    def _end(self, seat: Seat, outcome: Outcome, seconds: float, left: Left) -> None:
        run, context = seat.run, seat.context
        if seat.given_back:  # the worker has stopped: this ending is neither recorded nor logged
            self._seats.leave(seat)
            return
        settlement = settlement_of(run, outcome, seconds, context.note(), context.warnings)
        if context.tail is not None:
            settlement = replace(settlement, log=context.log)
        if settlement.has_text:
            settlement = without_secrets(settlement, run.body, seat.args)
        if seat.span is not None:
            settlement = replace(settlement, trace=traceparent(seat.span))
        if self._observed or seat.span is not None:
            processed(seat.span, run.task, settlement)
        self._settler.settle(settlement, run, seat.lease)
        self._seats.leave(seat)
        if seat.overdue is not None:
            self._seats.outlived[seat.overdue] = seat
            log.warning("%s %s ended, but its call runs on and keeps its seat", run.task, run.id)
            self._announcer.stuck(run)
            seat.overdue.add_done_callback(self._overdue_call_ended)
        left(seat)
        log_ending(run, settlement)

    def _overdue_call_ended(self, call: "asyncio.Future[object]") -> None:
        if not call.cancelled():
            call.exception()  # marks the exception as seen: nobody else looks at it
        del self._seats.outlived[call]

    async def drain(self, drain_seconds: float, cleanup: bool = True) -> None:
        """Wait `drain_seconds` for the handlers, then ask them to stop, then give back the runs that are left.

        Without `cleanup`, the runs are given back before their handlers have reacted.
        """
        if not await self._seats.emptied(drain_seconds):
            still = plural(len(self._seats), "handler")
            log.warning(
                "%s still running%s: told to stop", still, f" after {drain_seconds:.1f} s" if drain_seconds else ""
            )
            for seat in self._seats:
                seat.request_stop(Stop.SHUTDOWN)
            if cleanup:
                await self._clean_up()
        for seat in self._seats:
            if not seat.given_back:
                self._give_back(seat)
        await self._runner.close()
        if self._stop_tails is not None:
            self._stop_tails()
        await self._announcer.drain()

    def _give_back(self, seat: Seat) -> None:
        """Record the run without its handler: what the handler may still return comes too late."""
        seat.given_back = True
        log.warning("%s %s does not stop: its run is given back while the call goes on", seat.run.task, seat.run.id)
        outcome = Released() if seat.called_at is None else Interrupted()
        settlement = settlement_of(seat.run, outcome, None, seat.context.note(), seat.context.warnings)
        self._settler.settle(settlement, seat.run)

    async def _clean_up(self) -> None:
        """Handlers that were told to stop may clean up. A thread that has not reacted by now never will."""
        if await self._seats.emptied(THREAD_CLEANUP):
            return
        seats = [seat for seat in self._seats if self._runner.handlers[seat.run.task].executor != "thread"]
        slow = [seat.task for seat in seats if seat.task is not None]
        if slow:
            await asyncio.wait(slow, timeout=CLEANUP - THREAD_CLEANUP)
