"""Reads the tables of django-celery-beat by SQL. Neither Django nor Celery has to be installed."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from rota.domain.scheduling import Timed
from rota.domain.triggers import At, Every
from rota.domain.triggers.zones import zone_name
from rota.errors import InvalidOptions
from rota.movein.celery_cron import crontab_row
from rota.movein.code import literals
from rota.movein.database import Database
from rota.movein.plan import Row, Source, named_apart, refuse
from rota.movein.stops import stop_beat

QUERY = """
SELECT t.name, t.task, t.args, t.kwargs, t.queue, t.exchange, t.routing_key, t.headers, t.priority, t.expires,
       t.expire_seconds, t.one_off, t.start_time, t.enabled, t.last_run_at,
       t.interval_id, i.every, i.period, t.clocked_id, k.clocked_time, t.solar_id,
       t.crontab_id, c.minute, c.hour, c.day_of_week, c.day_of_month, c.month_of_year, c.timezone
FROM django_celery_beat_periodictask t
LEFT JOIN django_celery_beat_intervalschedule i ON i.id = t.interval_id
LEFT JOIN django_celery_beat_clockedschedule k ON k.id = t.clocked_id
LEFT JOIN django_celery_beat_crontabschedule c ON c.id = t.crontab_id
ORDER BY t.id
"""
CLEANUP = "celery.backend_cleanup"
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
PERIODS = ("days", "hours", "minutes", "seconds", "microseconds")
FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
NOTES = (
    "beat sends a task whatever the one before does: overlap allow; after a stop it sends it once: catch_up latest",
    "Celery forgets a task whose worker dies, unless it is acks_late: lost fail; use lost='retry' for those",
)

Record = Mapping[str, Any]


def read_beat(database: Database, where: str, now: datetime, tz: str | None = None) -> Source:
    """Return the rows of the tables. `tz` is the zone of all crontabs if beat ignores their own."""
    records = database.read(QUERY)
    rows = named_apart(_row(record, now, tz) for record in records)
    carried = [str(record["name"]) for record, row in zip(records, rows, strict=True) if not row.refused]
    return Source(
        kind="beat-db",
        where=where,
        rows=rows,
        notes=NOTES,
        engine="Celery's own crontab" if any(row.engine for row in rows) else "",
        stop="say --disable-source (it sets `expires` of its rows to that instant), or stop beat then",
        stop_at=stop_beat(carried, database.write, now),
    )


def _row(record: Record, now: datetime, tz: str | None) -> Row:
    task, name = str(record["task"]), str(record["name"])
    zone = tz or str(record["timezone"] or "UTC")
    expires = _instant(record["expires"])
    row = Row(
        name=name[:100],
        where=f"row {name}"[:40],
        says=f"{_says(record)} {task}",
        task=task,
        timed=Timed(
            overlap="allow",
            lost="fail",
            grace=record["expire_seconds"],
            queue=record["queue"] or None,
            times=1 if record["one_off"] else None,
            start=_instant(record["start_time"]),
            end=None if expires is None else expires - timedelta(milliseconds=1),
        ),
        paused=not record["enabled"],
        notes=_notes(record),
    )
    try:
        args, kwargs = _document(record["args"], list), _document(record["kwargs"], dict)
        row = replace(row, tz=zone_name(zone) or "UTC", args=args, kwargs=kwargs, **call_code(task, args, kwargs))
        return _timed_row(row, record, now)
    except ValueError as error:
        return refuse(row, str(error))


def _timed_row(row: Row, record: Record, now: datetime) -> Row:
    if row.task == CLEANUP:
        raise ValueError("it removes old results of Celery; rota forgets its own (keep=)")
    if row.timed.end is not None and row.timed.end <= now:
        raise ValueError(f"it expired at {row.timed.end.isoformat()}")
    if record["crontab_id"] is not None:
        return crontab_row(row, {field: str(record[field]) for field in FIELDS}, now)
    if record["interval_id"] is not None:
        return _interval_row(row, record, now)
    if record["clocked_id"] is not None:
        clocked = _instant(record["clocked_time"])
        if clocked is None or clocked <= now:
            raise ValueError(f"its time has passed: {record['clocked_time']}")
        return replace(row, tz="UTC", trigger=At(clocked), timed=replace(row.timed, times=None))
    if record["solar_id"] is not None:
        raise ValueError("rota knows no sun: compute the times, and submit with using(at=…), or use app.plan")
    raise ValueError("it has no schedule; such a row stops beat")


def _interval_row(row: Row, record: Record, now: datetime) -> Row:
    if record["period"] not in PERIODS:
        raise ValueError(f"rota does not know the period {record['period']!r}")
    last = _instant(record["last_run_at"])
    counted = "beat counts from when it last sent, and drifts; rota keeps to the rate, counted from "
    note = f"{counted}{'that instant' if last else 'now: beat has not sent it yet'}"
    anchor = (last or now).replace(microsecond=0)
    every = Every(timedelta(**{record["period"]: int(record["every"])}), anchor=anchor)
    return replace(row, tz="UTC", trigger=every, notes=[*row.notes, note])


def _says(record: Record) -> str:
    if record["crontab_id"] is not None:
        return f"crontab({', '.join(f'{field}={record[field]!r}' for field in FIELDS if record[field] != '*')})"
    if record["interval_id"] is not None:
        return f"every {record['every']} {record['period']}"
    return f"clocked {record['clocked_time']}" if record["clocked_id"] is not None else "solar"


def _notes(record: Record) -> list[str]:
    notes: list[str] = []
    if record["priority"] is not None:
        notes.append(
            f"priority {record['priority']} is left out: with Redis 0 is the highest, with RabbitMQ the lowest"
        )
    if record["exchange"] or record["routing_key"]:
        notes.append("exchange and routing_key are left out: rota routes by queue")
    if record["headers"] not in (None, "", "{}"):
        notes.append("its headers are left out")
    return notes


def _document(text: object, kind: type) -> Any:
    """Return the arguments of a row, which are JSON."""
    try:
        found = json.loads(str(text or ("[]" if kind is list else "{}")))
    except ValueError as error:
        raise ValueError(f"its arguments are no JSON: {error}") from None
    if not isinstance(found, kind):
        raise ValueError(f"its arguments are no JSON {'array' if kind is list else 'object'}: {text}")
    return found


def call_code(task: str, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, Any]:
    """Return the function of the code: a plain call of a Celery task runs it in the caller's process."""
    if DOTTED.fullmatch(task):
        return {"imports": [f"import {task.rpartition('.')[0]}"], "body": [f"{task}({literals(args, kwargs)})"]}
    return {"body": [f"raise NotImplementedError({f'call what Celery calls {task}'!r})"]}


def _instant(value: object) -> datetime | None:
    """Return an instant of the database; SQLite has texts in UTC."""
    if value is None:
        return None
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise InvalidOptions(f"{value!r} in the tables of django-celery-beat is not an instant") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
