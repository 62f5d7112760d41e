"""`rota preview`: a calendar of what will fire, where schedules meet, and what it will take."""

from typing import Annotated
from zoneinfo import ZoneInfo

from cyclopts import Parameter

from rota.cli.forecast.timetable import Timetable, read_timetable
from rota.cli.forecast.view import calendar
from rota.cli.options.parameters import Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Column, Show
from rota.cli.render.text import iso
from rota.domain.forecast import DAY, Forecast, forecast
from rota.domain.rehearsal import PeriodStart
from rota.domain.schedule import Schedule
from rota.errors import InvalidOptions

LONGEST = 366

COLUMNS = [Column("at"), Column("schedule"), Column("task"), Column("meets"), Column("kind"), Column("step")]


def preview(
    *,
    days: Annotated[int, Parameter(help="So many days from now.")] = 7,
    task: Annotated[str | None, Parameter(help="Only of this task.")] = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Show when schedules will fire: those the app's code declares, as if it were started now, and those in the store.

    By day and hour of the app's zone, with schedules that meet in the same minute and the seats that will be busy,
    going by how long runs usually took in the last two days. A flow is told once per period, with its steps and when
    they can be expected; deadlines are told beside it. Nothing is called and nothing is changed.
    """
    if not 1 <= days <= LONGEST:
        raise InvalidOptions(f"--days {days}: from 1 to {LONGEST}")
    table = target.run(read_timetable(target, target.app() if target.reference is not None else None))
    chosen = [each for each in table.started().values() if task is None or each.task == task]
    end = table.now + days * DAY
    firing = [each for each in chosen if not table.is_disabled(each)]
    found = forecast(firing, table.durations, table.now, end, ZoneInfo(table.tz), table.flows)
    if show.json:
        show.value(_document(table, found, chosen))
    else:
        show.records(
            _lines(found, table),
            COLUMNS,
            render=lambda: calendar(table, found, chosen),
        )
        if not show.terminal:
            for pace in found.frequent:
                show.note(f"{pace.schedule} fires {pace.per_day:,} times a day; its fires are not listed")
    if found.until < found.end:
        show.note(f"more than {len(found.fires):,} fires: told until {iso(found.until)}; fewer --days show all")


def _lines(found: Forecast, table: Timetable) -> list[dict[str, object]]:
    """All that is to come, in the order of time: runs, flows with their steps, and deadlines."""
    lines = [
        _fire(fire.at, fire.schedule, fire.task, fire.meets, "flow" if fire.task in table.flows else "run")
        for fire in found.fires
    ]
    lines += [
        _fire(step.begin, period.schedule, step.task, False, "step", step.name)
        for period in found.flows
        for step in period.steps
    ]
    lines += [_fire(each.at, each.schedule, each.task, False, "deadline") for each in found.deadlines]
    return sorted(lines, key=lambda line: str(line["at"]))


def _flow(period: PeriodStart) -> dict[str, object]:
    return {
        "flow": period.flow,
        "schedule": period.schedule,
        "period": period.period,
        "at": iso(period.at),
        "begun": period.begun,
        "rechecks": period.rechecks,
        "more": period.more,
        "ends": iso(period.ends),
        "steps": [
            {"step": step.name, "task": step.task, "begin": iso(step.begin), "end": iso(step.end)}
            for step in period.steps
        ],
    }


def _fire(
    at: float, schedule: str, task: str, meets: bool, kind: str | None = None, step: str | None = None
) -> dict[str, object]:
    told: dict[str, object] = {"at": iso(at), "schedule": schedule, "task": task, "meets": meets}
    return told if kind is None else told | {"kind": kind, "step": step}


def _document(table: Timetable, found: Forecast, chosen: list[Schedule]) -> dict[str, object]:
    return {
        "from": iso(found.start),
        "to": iso(found.end),
        "until": iso(found.until),
        "zone": table.tz,
        "seats": table.seats,
        "fires": [_fire(fire.at, fire.schedule, fire.task, fire.meets) for fire in found.fires],
        "flows": [_flow(period) for period in found.flows],
        "deadlines": [{"at": iso(each.at), "schedule": each.schedule, "task": each.task} for each in found.deadlines],
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
        "disabled": sorted(schedule.id for schedule in chosen if table.is_disabled(schedule)),
        "unreadable": [*found.unreadable],
    }
