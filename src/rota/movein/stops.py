"""Stops a source at the instant of a cut-over: the rows of django-celery-beat, the stored jobs of APScheduler."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from rota.errors import InvalidOptions

Statement = tuple[str, Sequence[Sequence[object]]]
"""A statement of SQL with `?`, and the values of each time that it is executed."""
Write = Callable[[Sequence[Statement]], None]
"""Executes statements in one transaction."""
Stop = Callable[[datetime], Sequence[str]]
"""Lets a source fire nothing from an instant on; returns what people still have to do or to know."""

EXPIRES = """
UPDATE django_celery_beat_periodictask SET expires = ? WHERE name = ? AND (expires IS NULL OR expires > ?)
"""
CHANGED = (
    "INSERT INTO django_celery_beat_periodictasks (ident, last_update) SELECT 1, ? "
    "WHERE NOT EXISTS (SELECT 1 FROM django_celery_beat_periodictasks)",
    "UPDATE django_celery_beat_periodictasks SET last_update = ?",
)
"""By this row a running beat notices that others have changed."""
IN_QUEUE = "a task that beat has sent before then and that no worker has taken by then is dropped by Celery"
LAST_FIRE = "APScheduler removes a job after its last fire before then"
STEP = timedelta(microseconds=1)
NAMED = 5
"""Jobs that a message names."""


def stop_beat(names: Sequence[str], write: Write, now: datetime) -> Stop:
    """Return what gives rows an end. A row that ends earlier keeps its end."""

    def stop(at: datetime) -> Sequence[str]:
        write([(EXPIRES, [(at, name, at) for name in names]), *((sql, [(now,)]) for sql in CHANGED)])
        return [IN_QUEUE]

    return stop


def stop_jobs(scheduler: Any, ids: Sequence[str]) -> Stop:
    """Return what gives the triggers of stored jobs an end, and pauses the jobs that have no fire before it."""

    def stop(at: datetime) -> Sequence[str]:
        by_hand = [id for id in ids if not _stopped(scheduler, id, at)]
        notes = [LAST_FIRE] if len(by_hand) < len(ids) else []
        if by_hand:
            named = ", ".join(by_hand[:NAMED]) + (" …" if len(by_hand) > NAMED else "")
            notes.append(f"no job store can stop {named}: the process of the scheduler has to, at that instant")
        return notes

    return stop


def _stopped(scheduler: Any, id: str, at: datetime) -> bool:
    """Give one job its end; return False if it lives in memory, or has a trigger that knows no end."""
    for store in scheduler._jobstores.values():
        job = None if type(store).__name__ == "MemoryJobStore" else store.lookup_job(id)
        if job is None or not hasattr(job.trigger, "end_date"):
            continue
        end = job.trigger.end_date
        if end is None or end >= at:
            job.trigger.end_date = (at - STEP).astimezone(job.trigger.timezone)
        if job.next_run_time is not None and job.next_run_time >= at:
            job.next_run_time = None
        store.update_job(job)
        kept = store.lookup_job(id)
        if kept is not None and (kept.trigger.end_date is None or kept.trigger.end_date >= at):
            raise InvalidOptions(f"the scheduler has changed its job {id} meanwhile; run the same command again")
        return True
    return False


def as_text(value: object) -> object:
    """Return an instant as SQLite has it for Django: a text in UTC."""
    if not isinstance(value, datetime):
        return value
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
