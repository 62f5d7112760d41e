"""Events for hooks: a run started, a call ended, a run ended without having started."""

import logging
from collections.abc import Sequence

from rota.domain.decision import Reason
from rota.domain.event import Event
from rota.domain.run import Run, State
from rota.domain.settlement import Finish, Settlement
from rota.domain.text import plural
from rota.engine.hooks import Hooks
from rota.engine.settler import Ending
from rota.engine.tallies import Tallies
from rota.errors import StoreError
from rota.store import RunQuery, Store
from rota.store.paging import all_runs

log = logging.getLogger("rota")

PAGE = 500
HOOK_PATIENCE = 5.0
"""Seconds that hooks have to end when the worker stops."""


def in_hand(name: str, run: Run, reason: str = "") -> Event:
    """Return the event about a run that a worker has in hand."""
    return Event(name, run.task, run, reason, key=run.key, attempt=_calls(run))


def ended(run: Run, settlement: Settlement, now: float) -> Event:
    """Return the event about a call whose ending was recorded at `now`; without a name if the run was only given
    back."""
    if isinstance(settlement.action, Finish):
        name, reason = str(settlement.action.state), str(settlement.action.reason or "")
    else:
        retried = "retried" if settlement.error else ""
        name, reason = ("lost" if settlement.lost else retried), settlement.outcome
    return Event(
        name,
        run.task,
        run,
        reason,
        settlement.error,
        key=run.key,
        attempt=_calls(run),
        seconds=settlement.seconds,
        ended_at=now,
    )


def unstarted(run: Run) -> Event:
    """Return the event about a run that ended while it waited: it expired or was cancelled."""
    reason, called = str(run.reason or ""), run.failures + run.losses
    return Event(
        "cancelled", run.task, run, reason, note=run.note or "", key=run.key, attempt=called, ended_at=run.finished_at
    )


async def announce_unstarted(store: Store, hooks: Hooks, ids: Sequence[str]) -> None:
    """Read the runs that this process ended in the queue, and emit `cancelled` for each.

    A run that ended with a call of its handler is left out: its worker emits that event.
    """
    for first in range(0, len(ids), PAGE):
        try:
            found = (await store.runs(RunQuery(ids=ids[first : first + PAGE]))).runs
        except StoreError as error:
            left = plural(len(ids) - first, "run")
            log.warning("%s ended in the queue, and the hooks do not hear of it: %s", left, error)
            return
        for run in found:
            by_call = bool(run.attempts) and run.attempts[-1].ended_at == run.finished_at
            if run.state is State.CANCELLED and not by_call:
                hooks.emit(unstarted(run))


async def announce_stopped(store: Store, hooks: Hooks, group: str, now: float) -> None:
    """Emit `cancelled` for each run of `group` that the failure of a step, recorded at `now`, has cancelled."""
    query = RunQuery(group=group, state=[State.CANCELLED], limit=PAGE)
    try:
        async for run in all_runs(store, query):
            if run.reason is Reason.STOPPED and run.finished_at == now:
                hooks.emit(unstarted(run))
    except StoreError as error:
        log.warning("runs of %s were cancelled, and the hooks do not hear of them: %s", group, error)


class Announcer:
    """Counts what becomes of the runs of a worker, and tells the hooks."""

    def __init__(self, store: Store, hooks: Hooks) -> None:
        self.tallies = Tallies()
        self._store = store
        self._hooks = hooks

    def started(self, run: Run) -> None:
        if self._hooks.wanted("started"):
            self._hooks.emit(in_hand("started", run))

    def stuck(self, run: Run) -> None:
        """The call of `run` goes on, although the run has ended."""
        self._hooks.emit(in_hand("stuck", run, "overdue"))

    def recorded(self, endings: Sequence[Ending], now: float) -> None:
        """Count and announce the endings that the store recorded at `now`."""
        for settlement, run, _ in endings:
            self.tallies.ended(run, settlement, now)
        if (observe := self._hooks.observe) is not None:
            for settlement, run, _ in endings:
                observe(run, settlement)
        if not self._hooks.empty:
            for settlement, run, _ in endings:
                self._announce(run, settlement, now)

    def _announce(self, run: Run, settlement: Settlement, now: float) -> None:
        event = ended(run, settlement, now)
        if self._hooks.wanted(event.name):
            self._hooks.emit(event)
        if settlement.stops is not None and self._hooks.wanted("cancelled"):
            self._hooks.later(announce_stopped(self._store, self._hooks, settlement.stops, now))

    def expired(self, ids: Sequence[str]) -> None:
        """The store has cancelled these runs because it is too late to start them."""
        if ids and self._hooks.wanted("cancelled"):
            self._hooks.later(announce_unstarted(self._store, self._hooks, ids))

    async def drain(self) -> None:
        """Wait for hooks that still run, but not for ever."""
        await self._hooks.drain(HOOK_PATIENCE)


def _calls(run: Run) -> int:
    """Return the number of this call. `run` has the counts of the time of its claim."""
    return run.failures + run.losses + 1
