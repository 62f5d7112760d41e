"""Guards: what a run may not stand beside, judged by the store in the step that admits it."""

from typing import Literal

from msgspec import Struct

from rota.domain.decision import Reason

Unique = Literal["queued", "active", "done"]
"""What an equal run must not be: waiting; waiting or running; or any of these, or done."""
Join = Literal["keep", "push", "set", "refuse"]
"""What a newcomer does to an equal run that is queued: `keep` leaves the due time of the queued run, `push` moves it to
the newcomer's due time if that is later, `set` moves it there in any case, and `refuse` refuses the newcomer."""
Meeting = Join | Literal["wait"]
"""`wait` is for ticks. A queued equal that was never called is joined: it keeps its time and takes the arguments of the
tick. If the queued equal was called before, the run of the tick waits for its end."""


class Cooldown(Struct, frozen=True, omit_defaults=True, array_like=True):
    """Refuse while this (task, key) has `failures` failed runs in a row and ended less than `seconds` ago."""

    failures: int
    seconds: float
    reason: Reason = Reason.RESTING


class Guards(Struct, frozen=True, omit_defaults=True):
    """The first no wins. `max_wait` bounds how far a push can move the due time from the first arrival."""

    unique: Unique | None = None
    join: Meeting = "keep"
    max_wait: float | None = None
    cooldowns: tuple[Cooldown, ...] = ()
    max_pending: int | None = None
    behind: bool = False
    """Where an equal one runs, wait for its end."""
    marks: bool = False
    """Write a mark although no guard of this very run reads it: its task has others that do."""

    @property
    def reads_marks(self) -> bool:
        return self.unique == "done" or bool(self.cooldowns) or self.marks


class Mark(Struct, frozen=True):
    """What is known of a (task, key): its last success, its last end, and failed runs in a row."""

    succeeded_at: float | None = None
    finished_at: float | None = None
    failures: int = 0


def cooldown_reason(cooldowns: tuple[Cooldown, ...], mark: Mark | None, now: float) -> Reason | None:
    """The first rule by which (task, key) must rest now."""
    if mark is None or mark.finished_at is None:
        return None
    for rule in cooldowns:
        if mark.failures >= rule.failures and now < mark.finished_at + rule.seconds:
            return rule.reason
    return None


def cooled_down_at(cooldowns: tuple[Cooldown, ...], mark: Mark, due_at: float) -> float:
    """When a run that waited for its key may start: not before each rule that holds now has let go."""
    finished = mark.finished_at
    if finished is None:
        return due_at
    return max([due_at, *(finished + rule.seconds for rule in cooldowns if mark.failures >= rule.failures)])


def push_due(created_at: float, due_at: float, wanted: float, max_wait: float | None) -> float:
    """Where a debounced run moves: never earlier than it was, never beyond `max_wait` from its first arrival."""
    latest = wanted if max_wait is None else min(wanted, created_at + max_wait)
    return max(due_at, latest)
