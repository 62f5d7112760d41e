"""Reads the `beat_schedule` of a Celery app, which its own library makes: also what `add_periodic_task` adds."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from rota.domain.policy import Lost
from rota.domain.scheduling import Timed
from rota.domain.triggers import Every
from rota.errors import InvalidOptions
from rota.movein.beat_db import CLEANUP, call_code
from rota.movein.celery_cron import FIELDS, crontab_row
from rota.movein.fires import zone_of
from rota.movein.plan import Row, Source, named_apart, refuse

NOTES = (
    "beat sends a task whatever the one before does: overlap allow; after a stop it sends it once: catch_up latest",
    "Celery forgets a task whose worker dies: lost fail; a task with acks_late is delivered again: lost retry",
)
COUNTED = "beat counts from when it last sent, and drifts; rota keeps to the rate, counted from now"
SHIFTS = ("countdown", "eta")
PARTS = ("task", "schedule", "args", "kwargs", "options", "relative")
CARRIED = ("queue", "expires")


def read_celery(app: object, where: str, now: datetime) -> Source:
    """Return the rows of the app's schedule. Nothing is sent: neither a beat nor a worker starts."""
    try:
        from celery import Celery  # type: ignore[import-untyped]
    except ImportError:
        raise InvalidOptions(f"{where}: Celery is not installed here; its own library reads its schedule") from None
    if not isinstance(app, Celery):
        raise InvalidOptions(f"{where} is a {type(app).__name__}, not an app of Celery")
    known: Any = app
    known.loader.import_default_modules()
    known.finalize()
    entries = cast("Mapping[str, Any]", known.conf.beat_schedule or {})
    return Source(
        kind="celery",
        where=where,
        rows=named_apart(_row(str(name), entry, known, now) for name, entry in entries.items()),
        notes=NOTES,
        engine="Celery's own crontab",
        stop="take these entries out of beat_schedule at that instant, or stop beat then",
    )


def _row(name: str, entry: Any, app: Any, now: datetime) -> Row:
    listed = isinstance(entry, Mapping)
    given: dict[str, Any] = {part: entry.get(part) if listed else getattr(entry, part, None) for part in PARTS}
    task, options = str(given.get("task")), dict(given.get("options") or {})
    known = app.tasks.get(task)
    row = Row(
        name=name[:100],
        where=f"entry {name}"[:40],
        says=f"{given.get('schedule')!r} {task}",
        task=task,
        args=list(given.get("args") or ()),
        kwargs=dict(given.get("kwargs") or {}),
        notes=_notes(options, bool(given.get("relative")), known is not None),
    )
    try:
        msgspec.json.encode([row.args, row.kwargs])
        row = replace(row, timed=_timed(options, known, now), **call_code(task, row.args, row.kwargs))
        return _timed_row(row, given.get("schedule"), app, now)
    except (ValueError, TypeError) as error:
        return refuse(row, str(error))


def _timed(options: Mapping[str, Any], task: Any, now: datetime) -> Timed:
    for name in SHIFTS:
        if options.get(name) is not None:
            raise ValueError(f"{name}={options[name]!r} moves each start: give rota the time itself")
    expires, grace, end = options.get("expires"), None, None
    if isinstance(expires, datetime):
        end = (expires if expires.tzinfo else expires.replace(tzinfo=UTC)).astimezone(UTC)
        if end <= now:
            raise ValueError(f"it expired at {end.isoformat()}")
    elif isinstance(expires, timedelta):
        grace = expires.total_seconds()
    elif expires is not None:
        grace = float(expires)
    lost: Lost = "retry" if getattr(task, "acks_late", False) else "fail"
    return Timed(overlap="allow", lost=lost, grace=grace, end=end, queue=options.get("queue"))


def _timed_row(row: Row, schedule: Any, app: Any, now: datetime) -> Row:
    from celery import schedules  # pyright: ignore[reportMissingTypeStubs]

    if row.task == CLEANUP:
        raise ValueError("it removes old results of Celery; rota forgets its own (keep=)")
    known: Any = schedules.maybe_schedule(schedule, app=app)
    match type(known).__name__ if type(known).__module__ == "celery.schedules" else "":
        case "crontab":
            fields = {name: _text(getattr(known, f"_orig_{name}")) for name in FIELDS}
            return crontab_row(replace(row, tz=zone_of(app.timezone)), fields, now)
        case "schedule":
            every = Every(known.run_every, anchor=now.replace(microsecond=0))
            return replace(row, trigger=every, notes=[*row.notes, COUNTED])
        case "solar":
            raise ValueError("rota knows no sun: compute the times, and submit with using(at=…), or use app.plan")
        case _:
            raise ValueError(f"rota does not know the schedule {type(known).__name__}")


def _text(field: Any) -> str:
    """Return a field of a crontab as text: Celery also takes numbers and sets of them."""
    if isinstance(field, str | int):
        return str(field)
    return ",".join(str(each) for each in sorted(field))


def _notes(options: Mapping[str, Any], relative: bool, known: bool) -> list[str]:
    left = sorted(set(options) - {*CARRIED, *SHIFTS, "priority"})
    notes = [f"left out of its options: {', '.join(left)}"] if left else []
    if options.get("priority") is not None:
        notes.append(
            f"priority {options['priority']} is left out: with Redis 0 is the highest, with RabbitMQ the lowest"
        )
    if relative:
        notes.append("relative: Celery rounds its interval to the clock; rota counts from an anchor")
    if not known:
        notes.append("the app has no such task, so nobody knows whether it is acks_late")
    return notes
