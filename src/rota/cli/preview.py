"""`rota preview`: a calendar of what will fire, where schedules meet, and what it will take."""

import asyncio
from typing import Annotated
from zoneinfo import ZoneInfo

from cyclopts import Parameter

from rota.cli.apps import Target
from rota.cli.groups import Shared
from rota.cli.preview_view import calendar
from rota.cli.show import Column, Show
from rota.cli.text import iso
from rota.cli.timetable import Timetable, read_timetable
from rota.domain.forecast import DAY, Forecast, forecast
from rota.domain.schedule import Schedule
from rota.errors import InvalidOptions

LONGEST = 366

COLUMNS = [Column("at"), Column("schedule"), Column("task"), Column("meets")]


def preview(
    *,
    days: Annotated[int, Parameter(help="So many days from now.")] = 7,
    task: Annotated[str | None, Parameter(help="Only of this task.")] = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Show when schedules will fire: those the app's code declares, as if it were started now, and those in the store.

    By day and hour of the app's zone, with schedules that meet in the same minute and the seats that will be busy,
    going by how long runs usually took in the last two days. Nothing is called and nothing is changed.
    """
    if not 1 <= days <= LONGEST:
        raise InvalidOptions(f"--days {days}: from 1 to {LONGEST}")
    table = asyncio.run(read_timetable(target, target.app() if target.reference is not None else None))
    chosen = [each for each in table.started().values() if task is None or each.task == task]
    found = forecast(chosen, table.durations, table.now, table.now + days * DAY, ZoneInfo(table.tz))
    if show.json:
        show.value(_document(table, found, chosen))
    else:
        show.records(
            [_fire(fire.at, fire.schedule, fire.task, fire.meets) for fire in found.fires],
            COLUMNS,
            render=lambda: calendar(table, found, chosen),
        )
        if not show.terminal:
            for pace in found.frequent:
                show.note(f"{pace.schedule} fires {pace.per_day:,} times a day; its fires are not listed")
    if found.until < found.end:
        show.note(f"more than {len(found.fires):,} fires: told until {iso(found.until)}; fewer --days show all")


def _fire(at: float, schedule: str, task: str, meets: bool) -> dict[str, object]:
    return {"at": iso(at), "schedule": schedule, "task": task, "meets": meets}


def _document(table: Timetable, found: Forecast, chosen: list[Schedule]) -> dict[str, object]:
    return {
        "from": iso(found.start),
        "to": iso(found.end),
        "until": iso(found.until),
        "zone": table.tz,
        "seats": table.seats,
        "fires": [_fire(fire.at, fire.schedule, fire.task, fire.meets) for fire in found.fires],
        "frequent": [{"schedule": p.schedule, "task": p.task, "per_day": p.per_day} for p in found.frequent],
        "collisions": [
            {"schedules": [*met.schedules], "minutes": [iso(minute) for minute in met.minutes]}
            for met in found.collisions
        ],
        "hours": [
            {
                "day": day.isoformat(),
                "hour": hour,
                "fires": found.counts.get((day, hour), 0),
                "seats": round(found.seats.get((day, hour), 0.0), 4),
            }
            for day, hour in sorted({*found.counts, *found.seats})
        ],
        "durations": {task: table.durations[task] for task in sorted({s.task for s in chosen} & {*table.durations})},
        "paused": sorted(schedule.id for schedule in chosen if schedule.paused),
        "unreadable": [*found.unreadable],
    }
