"""Guards: rules that the store checks in the transaction that admits a run."""

from datetime import timedelta
from typing import Literal

from msgspec import Struct

from rota.domain.decision import Reason

Unique = Literal["queued", "active", "done"]
"""Which other run of the same unique key refuses a new one: a queued one; a queued or running one; or also a
success."""
Join = Literal["keep", "push", "set", "refuse"]
"""What a newcomer does to an equal run that is queued: `keep` leaves the due time of the queued run, `push` moves it to
the newcomer's due time if that is later, `set` moves it there in any case, and `refuse` refuses the newcomer."""
Meeting = Join | Literal["wait", "replace", "full"]
"""`wait` and `replace` are for ticks. A queued equal that was never called is joined: it keeps its time and takes the
arguments of the tick. If the queued equal was called before, `wait` lets the run of the tick wait for its end, and
`replace` cancels it. `replace` also asks an equal that runs to stop; the run of the tick waits for its end. `full`
refuses the newcomer because its place in a buffer is taken."""


class Sliding(Struct, frozen=True):
    """For `within=`: a window of so many seconds that begins anew with every submit of the key, also a refused one."""

    seconds: float | int | timedelta


class Cooldown(Struct, frozen=True, omit_defaults=True, array_like=True):
    """Refuse while this (task, key) has `failures` failed runs in a row and ended less than `seconds` ago."""

    failures: int
    seconds: float
    reason: Reason = Reason.RESTING


class Guards(Struct, frozen=True, omit_defaults=True):
    """The rules for one run; the first that refuses it decides. `max_wait` bounds how many seconds after its creation a
    run can be pushed."""

    unique: Unique | None = None
    join: Meeting = "keep"
    max_wait: float | None = None
    cooldowns: tuple[Cooldown, ...] = ()
    max_pending: int | None = None
    behind: bool = False
    """If another run of the unique key is running, wait for its end."""
    marks: bool = False
    """Write a mark although the guards of this run read none: other runs of the task read it."""
    within: float | None = None
    """With `unique="done"`: a success refuses a new run for so many seconds, counted from the accepted submit."""
    sliding: bool = False
    """Count `within` from the last submit of the key instead, also if it was refused."""
    unique_in: str | None = None
    """The name under which several tasks share their unique keys."""

    @property
    def reads_marks(self) -> bool:
        return self.unique == "done" or bool(self.cooldowns) or self.marks


class Mark(Struct, frozen=True):
    """What a store remembers of a (task, key): the last success, the last end, and the failed runs in a row.

    The mark of a row of unique keys (`spec.unique_row`) has other meanings: `succeeded_at` is when the last run of the
    key was accepted, `finished_at` from when its window counts, and `holder` the task and id of that run.
    """

    succeeded_at: float | None = None
    finished_at: float | None = None
    failures: int = 0
    holder: str | None = None


def cooldown_reason(cooldowns: tuple[Cooldown, ...], mark: Mark | None, now: float) -> Reason | None:
    """Return the reason of the first cooldown that refuses a run of this key now; None if none does."""
    if mark is None or mark.finished_at is None:
        return None
    for rule in cooldowns:
        if mark.failures >= rule.failures and now < mark.finished_at + rule.seconds:
            return rule.reason
    return None


def cooled_down_at(cooldowns: tuple[Cooldown, ...], mark: Mark, due_at: float) -> float:
    """Return when a run that waited for another run of its key may start: at `due_at`, or when the last cooldown is
    over."""
    finished = mark.finished_at
    if finished is None:
        return due_at
    return max([due_at, *(finished + rule.seconds for rule in cooldowns if mark.failures >= rule.failures)])


def push_due(created_at: float, due_at: float, wanted: float, max_wait: float | None) -> float:
    """Return the due time of a run that is pushed to `wanted`: never before `due_at`, at most `max_wait` after
    `created_at`."""
    latest = wanted if max_wait is None else min(wanted, created_at + max_wait)
    return max(due_at, latest)
