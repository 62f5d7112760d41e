"""Joining: how a queued run changes when another run of its unique key is put."""

from typing import TypeVar

from msgspec.structs import replace

from rota.domain.guards import push_due
from rota.domain.run import ATTEMPTS_KEPT, Attempt, NewRun, RunHead, after

S = TypeVar("S", bound=RunHead)

REPLACED = "replaced"
"""The outcome of a row among the attempts that is no attempt: the attempts before this row were of other work."""


def joined(holder: S, new: NewRun, now: float) -> S:
    """Return `holder` with the due time, expiry and priority that it has after `new` has joined it. The store itself
    changes the needs and decides whether the run stays parked."""
    due_at = _due(holder, new, now)
    priority = max(holder.priority, new.priority)
    return replace(
        holder,
        due_at=due_at,
        expires_at=_expiry(holder, new, due_at, now),
        priority=priority,
        touches=holder.touches + 1,
        touched_at=now,
    )


def afresh(run: S, now: float) -> S:
    """Return the run with other work: failures, losses, checkpoint and progress of the work before do not count for it.

    The fence goes on growing, and the attempts stay for people to read. A `replaced` row behind the attempts says when
    the new work came. If the work is replaced again before it is called, that row gets the new time: a second row
    would say nothing, and many of them would push the attempts out of the list.
    """
    attempts = run.attempts
    if attempts:
        called = attempts[:-1] if attempts[-1].outcome == REPLACED else attempts
        attempts = (*called, Attempt(run.fence, "", REPLACED, now, now))[-ATTEMPTS_KEPT:]
    return replace(run, failures=0, losses=0, saved=None, progress=None, error=None, attempts=attempts)


def moved_expiry(run: RunHead, due_at: float) -> float | None:
    """Return the expiry of a run whose due time moves to `due_at`: the time between due and expiry stays the same."""
    if run.expires_at is None or due_at == run.due_at:
        return run.expires_at
    return after(due_at, run.expires_at - run.due_at)


def _due(holder: RunHead, new: NewRun, now: float) -> float:
    match new.guards.join:
        case "push":
            return push_due(holder.created_at, holder.due_at, new.due_at(now), new.guards.max_wait)
        case "set":
            return new.due_at(now)
        case _:
            return holder.due_at


def _expiry(holder: RunHead, new: NewRun, due_at: float, now: float) -> float | None:
    """Return the expiry after a join: that of `new`, counted from the due time after the join; else the expiry of
    `holder` moves with its due time. A join never makes a run expire before it is due."""
    if new.expires_after is not None:
        return after(max(now, due_at), new.expires_after)
    if new.expires_at is not None and new.expires_at > due_at:
        return new.expires_at
    return moved_expiry(holder, due_at)
