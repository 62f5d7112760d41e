"""Refusals: when a run that a guard refused would no longer be refused by it."""

from rota.domain.decision import Reason
from rota.domain.guards import Mark, cooled_down_at
from rota.domain.run import NewRun
from rota.store import MarkRow, Reads, RowQuery


async def retry_at(store: Reads, new: NewRun, reason: Reason) -> float | None:
    """Return when the cooldowns or the window that refused `new` are over; None if nobody knows, as for a run in the
    way, a full queue or a success that counts for ever."""
    if reason in (Reason.RESTING, Reason.BREAKER):
        mark = await _mark(store, new.task, new.unique_key or new.key or "")
        over = 0.0 if mark is None else cooled_down_at(new.guards.cooldowns, mark, 0.0)
        return over or None
    if reason is Reason.ALREADY_DONE and new.unique_row is not None and new.guards.within is not None:
        window = await _mark(store, new.unique_row, new.unique_key or "")
        if window is not None and window.finished_at is not None:
            return window.finished_at + new.guards.within
    return None


async def _mark(store: Reads, row: str, key: str) -> Mark | None:
    found = (await store.rows(MarkRow, RowQuery(task=row, key=key))).items
    return found[0].mark if found else None
