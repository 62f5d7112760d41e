"""Reads the periodic tasks of a Huey, through its own library: they are Python functions, which the user's modules
define. No consumer starts, and its storage, which holds pickles, is not opened."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from inspect import getclosurevars
from typing import Any
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from rota.domain.scheduling import Timed
from rota.errors import InvalidOptions
from rota.movein.fields import CronSets
from rota.movein.plan import Fires, Row, Source, named_apart, refuse

NOTES = (
    "Huey enqueues a task whatever the one before does: overlap allow; it forgets one whose worker dies: lost fail",
    "what falls into a stop of the consumer is left out: catch_up skip",
    "a consumer looks once a minute, at a second of its own; rota fires when the minute begins",
    "what was revoked is in Huey's storage, which is not read; nor are locks (lock_task)",
)
CRONTAB = "crontab.<locals>.validate_date"
"""The qualified name of the function that `huey.crontab` makes."""
TERMS = {"default_retries": "retry", "default_timeout": "timeout", "default_priority": "priority"}
"""Attributes of a task of Huey, and the options of a task of rota."""
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)

Check = Callable[[datetime], bool]


def read_huey(app: object, where: str, now: datetime, local: str | None = None, local_from: str = "--tz") -> Source:
    """Return the rows of a Huey. `local` is the zone of one with `utc=False`."""
    try:
        from huey.api import Huey  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise InvalidOptions(f"{where}: Huey is not installed here; its own library makes its periodic tasks") from None
    if not isinstance(app, Huey):
        raise InvalidOptions(f"{where} is a {type(app).__name__}, not a Huey")
    known: Any = app
    tz = "UTC" if known.utc else local
    rows = named_apart(_row(task, tz, now) for task in known._registry._periodic_tasks)
    said = "utc=True" if known.utc else f"utc=False: of {local_from}"
    return Source(
        kind="huey",
        where=where,
        rows=rows,
        notes=[*NOTES, f"the zone is {tz or 'not known'} ({said})"],
        engine="Huey's own crontab",
        stop="take @huey.periodic_task off at that instant, or start the consumer with --no-periodic from then on",
    )


def _row(task: Any, tz: str | None, now: datetime) -> Row:
    function: Any = getclosurevars(task.execute).nonlocals["func"]
    module, name = str(function.__module__), str(function.__qualname__)
    path = f"{module}.{name}"
    check: Any = getclosurevars(task.validate_datetime).nonlocals.get("validate_datetime")
    row = Row(
        name=str(task.__name__)[:100],
        where=f"task {task.__name__}"[:40],
        says=f"{getattr(check, '__qualname__', check)} {path}",
        task=path,
        timed=Timed(overlap="allow", catch_up="skip", lost="fail"),
        notes=[
            f"{theirs}={value!r}: give the task {ours}="
            for theirs, ours in TERMS.items()
            if (value := getattr(task, theirs, None))
        ],
    )
    try:
        row = replace(row, imports=[f"import {module}"], body=[_call(module, name, task)])
        if tz is None:
            raise ValueError("which zone? this Huey has utc=False, and nothing says the zone of its machine: give --tz")
        sets = sets_of(check)
        row = replace(row, tz=tz, says=f"{_said(sets)} {path}")
        trigger = sets.trigger(tz, "each")
        first = trigger.next_after(now)
        engine = None if first is None else huey_engine(check, ZoneInfo(tz), first)
        return replace(row, trigger=trigger, engine=engine)
    except ValueError as error:
        return refuse(row, str(error))


def _call(module: str, name: str, task: Any) -> str:
    """Return the line that does what a worker of Huey does."""
    if task.context:
        raise ValueError("context=True: its function wants the task of Huey as an argument")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise ValueError("its function is inside another one, or its module has it under another name")
    return f"{module}.{name}{'.call_local' if hasattr(found, 'call_local') else ''}()"


def sets_of(check: Any) -> CronSets:
    """Return the numbers of a `huey.crontab`; ValueError if the function is another one. All fields have to match."""
    if getattr(check, "__module__", "") != "huey.api" or getattr(check, "__qualname__", "") != CRONTAB:
        raise ValueError("a function of your own decides when it runs; give rota the times")
    fields: Sequence[Sequence[int]] = getclosurevars(check).nonlocals["cron_settings"]
    months, days, weekdays, hours, minutes = map(frozenset, fields)
    return CronSets(
        minutes=minutes, hours=hours, days=days, months=months, weekdays=frozenset(day % 7 for day in weekdays)
    )


def _said(sets: CronSets) -> str:
    """Return the crontab as Huey writes it, as far as it is known: Huey keeps numbers only."""
    whole: Mapping[str, tuple[frozenset[int], int]] = {
        "minute": (sets.minutes, 60),
        "hour": (sets.hours, 24),
        "day": (sets.days, 31),
        "month": (sets.months, 12),
        "day_of_week": (sets.weekdays, 7),
    }
    given = [
        f"{name}={','.join(map(str, sorted(numbers)))!r}"
        for name, (numbers, count) in whole.items()
        if len(numbers) < count
    ]
    return f"crontab({', '.join(given)})"


def huey_engine(check: Check, zone: ZoneInfo, first: datetime) -> Fires:
    """Return when Huey's own function says yes to the time of day that a clock shows.

    The function looks at each field by itself, so the minutes of a day are the same on all days: it is asked for every
    minute of the day of `first`, and then for the minutes found, on every day. A reading that a night repeats counts
    twice, and one that a night leaves out does not come.
    """
    midnight = datetime.combine(first.astimezone(zone).date(), time())
    of_day = [each for each in (n * MINUTE for n in range(24 * 60)) if check(midnight + each)]

    def fires(start: datetime, end: datetime) -> Iterator[datetime]:
        last, day = end.astimezone(zone).date(), start.astimezone(zone).date()
        found: set[datetime] = set()
        while day <= last:
            midnight = datetime.combine(day, time())
            found.update(at for each in of_day if check(midnight + each) for at in instants(midnight + each, zone))
            day += DAY
        yield from sorted(at for at in found if start < at <= end)

    return fires


def instants(reading: datetime, zone: ZoneInfo) -> set[datetime]:
    """Return when a clock of the zone shows a reading: once, twice in a repeated hour, never inside a gap."""
    both = {reading.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return {at for at in both if at.astimezone(zone).replace(tzinfo=None) == reading}
