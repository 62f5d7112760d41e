"""Reasons: every answer to "should this run?" and every word for how a run ended."""

from enum import StrEnum

from msgspec import Struct


class Reason(StrEnum):
    ACCEPTED = "accepted"
    JOINED = "joined"
    DISABLED = "disabled"
    PAUSED = "paused"
    RESUMED = "resumed"
    ALREADY_QUEUED = "already_queued"
    ALREADY_RUNNING = "already_running"
    ALREADY_DONE = "already_done"
    RESTING = "resting"
    BREAKER = "breaker"
    QUEUE_FULL = "queue_full"
    EXPIRED = "expired"
    MISSED = "missed"
    UNKNOWN_TASK = "unknown_task"
    NO_ACTIVITY = "no_activity"
    UNAVAILABLE = "unavailable"
    CANCELLED = "cancelled"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    POISON = "poison"
    INTERRUPTED = "interrupted"
    UNBINDABLE = "unbindable"
    BAD_RESULT = "bad_result"
    DISCARDED = "discarded"
    PARTIAL = "partial"
    SKIPPED = "skipped"
    SUPERSEDED = "superseded"
    DROPPED = "dropped"
    STOPPED = "stopped"
    LATE = "late"

    UNKNOWN = "unknown"
    """A word of a newer version."""

    @classmethod
    def _missing_(cls, value: object) -> "Reason":
        return cls.UNKNOWN


class DecisionCount(Struct, frozen=True, omit_defaults=True):
    """One kind of answer about one (task, key), however often it was given; `run`, `note` and `by` are of the last."""

    task: str
    key: str
    reason: Reason
    count: int
    first_at: float
    last_at: float
    run: str | None = None
    note: str | None = None
    by: str | None = None


class Decision(Struct, frozen=True):
    """The answer to one submit: truthy when there is a run for it, else the reason why not.

    `run` is the run that now stands for it: its own, or the one that was there already.
    """

    run: str
    reason: Reason

    def __bool__(self) -> bool:
        return self.reason in (Reason.ACCEPTED, Reason.JOINED)
