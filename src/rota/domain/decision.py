"""Decisions and reasons: the answer to a submit, and the words for why a run exists or how it ended."""

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
    ID_CONFLICT = "id_conflict"
    BUFFER_FULL = "buffer_full"
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
    EDITED = "edited"
    DELETED = "deleted"
    STOPPED = "stopped"
    LATE = "late"

    UNKNOWN = "unknown"
    """Any reason that this version does not know."""

    @classmethod
    def _missing_(cls, value: object) -> "Reason":
        return cls.UNKNOWN


class DecisionCount(Struct, frozen=True, omit_defaults=True):
    """How often one reason was given for one (task, key). `run`, `note` and `by` are those of the last time."""

    task: str
    key: str
    reason: Reason
    count: int
    first_at: float
    last_at: float
    run: str | None = None
    note: str | None = None
    by: str | None = None


class Decision(Struct, frozen=True, gc=False):
    """The answer to one submit: truthy if a run does the work; else `reason` says why not.

    `run` is the id of the new run, of the run that the submit joined, or of the run because of which it was refused.
    """

    run: str
    reason: Reason

    def __bool__(self) -> bool:
        return self.reason in (Reason.ACCEPTED, Reason.JOINED)
