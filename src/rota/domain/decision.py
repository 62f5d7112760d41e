"""Reasons: every answer to "should this run?" and every word for how a run ended."""

from enum import StrEnum

from msgspec import Struct


class Reason(StrEnum):
    ACCEPTED = "accepted"
    QUEUE_FULL = "queue_full"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    POISON = "poison"
    INTERRUPTED = "interrupted"
    UNBINDABLE = "unbindable"
    BAD_RESULT = "bad_result"

    UNKNOWN = "unknown"
    """A word of a newer version."""

    @classmethod
    def _missing_(cls, value: object) -> "Reason":
        return cls.UNKNOWN


class Decision(Struct, frozen=True):
    """The answer to one submit: truthy when there is a run for it, else the reason why not."""

    run: str
    reason: Reason

    def __bool__(self) -> bool:
        return self.reason is Reason.ACCEPTED
