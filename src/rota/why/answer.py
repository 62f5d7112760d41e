"""The parts of an answer, and how it speaks of time and reasons."""

from collections.abc import Iterable

from rota.domain.answers import Fact as Fact
from rota.domain.answers import Why as Why
from rota.domain.decision import Reason
from rota.domain.timing import shown


def first_hold(facts: Iterable[Fact]) -> Fact | None:
    """Return the first fact that keeps work from starting."""
    return next((fact for fact in facts if fact.holds), None)


def changes_at(facts: Iterable[Fact], ticks: Iterable[float] = ()) -> float | None:
    """Return when the answer changes by itself: with the end of what it names; if nothing holds, with the next of
    `ticks`."""
    hold = first_hold(facts)
    return min(ticks, default=None) if hold is None else hold.until


UNITS = ((86_400.0, "day"), (3600.0, "hour"), (60.0, "minute"), (1.0, "second"))
LONG = 200
"""Characters of an error's text in an answer; the facts quote all of it."""


def away(instant: float, now: float) -> str:
    """Return `in 5 minutes` or `3 hours ago`."""
    seconds = abs(instant - now)
    size, unit = next((pair for pair in UNITS if seconds >= 1.5 * pair[0]), UNITS[-1])
    count = round(seconds / size)
    words = f"{count} {unit}" if count == 1 else f"{count} {unit}s"
    return f"in {words}" if instant > now else f"{words} ago"


def at(instant: float, now: float) -> str:
    return f"{away(instant, now)} ({shown(instant)})"


def quoted(text: object, limit: int = LONG) -> str:
    """Return any text as part of a sentence: in one line, with at most `limit` characters."""
    line = " ".join(str(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


REFUSALS = {
    Reason.DISABLED: "the task is disabled",
    Reason.ALREADY_QUEUED: "an equal run waited already",
    Reason.ALREADY_RUNNING: "an earlier run still ran",
    Reason.ALREADY_DONE: "it was done already",
    Reason.RESTING: "it rests after its last run",
    Reason.BREAKER: "its breaker is open",
    Reason.QUEUE_FULL: "the queue was full",
    Reason.ID_CONFLICT: "its id belonged to a run with another task or other arguments",
    Reason.BUFFER_FULL: "as many of its runs waited as its buffer holds",
    Reason.MISSED: "no worker was there to fire it",
    Reason.UNKNOWN_TASK: "nobody knows the task",
    Reason.NO_ACTIVITY: "the task has no activity policy",
    Reason.EXPIRED: "it was too late to start",
}
"""Why no run was made."""


def refusal(reason: Reason) -> str:
    """Return `the queue was full (queue_full)`."""
    return f"{REFUSALS[reason]} ({reason})" if reason in REFUSALS else str(reason)
