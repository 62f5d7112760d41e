"""The forecast: what the code declares and what the store keeps at one moment, and what will fire from then on."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from rota.domain.difference import started
from rota.domain.forecast import Forecast
from rota.domain.rehearsal import FlowShape, PeriodStart
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.errors import InvalidOptions
from rota.store import Stat, bucket_seconds
from rota.views.values import Record, iso


class Inventory(Struct, frozen=True):
    """What the code declares and what the store keeps, at one moment.

    `owner` is the app's name; without an app, `declared`, `specs` and `flows` are empty. `durations` are the usual
    seconds of a call by task.
    """

    now: float
    tz: str
    owner: str
    declared: Sequence[Schedule]
    stored: Mapping[str, Schedule]
    specs: Sequence[TaskSpec]
    published: Mapping[str, TaskSpec]
    durations: Mapping[str, float]
    seats: int
    flows: Mapping[str, FlowShape]

    def is_disabled(self, schedule: Schedule) -> bool:
        """Return whether the task of `schedule` is disabled, by the app's code or else by the published spec."""
        specs = {**self.published, **{spec.name: spec for spec in self.specs}}
        spec = specs.get(schedule.task)
        return schedule.deadline is None and spec is not None and not spec.enabled

    def started(self) -> dict[str, Schedule]:
        """Return all schedules as they are once this code has started."""
        try:
            return started(self.declared, self.stored, self.now)
        except ValueError as error:
            raise InvalidOptions(str(error)) from None


def usual_durations(stats: Iterable[Stat]) -> dict[str, float]:
    """Seconds that half of the calls of each task stay within."""
    calls: dict[str, Counter[int]] = defaultdict(Counter)
    for stat in stats:
        calls[stat.tally.task].update(stat.tally.durations)
    return {task: _median(counts) for task, counts in calls.items() if counts}


def _median(counts: Mapping[int, int]) -> float:
    half, seen = sum(counts.values()) / 2, 0
    for index in sorted(counts):
        seen += counts[index]
        if seen >= half:
            return bucket_seconds(index)
    return 0.0


def forecast_lines(found: Forecast, inventory: Inventory) -> list[Record]:
    """Runs, flows with their steps, and deadlines, one record each, in the order of time."""
    lines = [
        _fire(fire.at, fire.schedule, fire.task, fire.meets, "flow" if fire.task in inventory.flows else "run")
        for fire in found.fires
    ]
    lines += [
        _fire(step.begin, period.schedule, step.task, False, "step", step.name)
        for period in found.flows
        for step in period.steps
    ]
    lines += [_fire(each.at, each.schedule, each.task, False, "deadline") for each in found.deadlines]
    return sorted(lines, key=lambda line: str(line["at"]))


def _flow(period: PeriodStart) -> Record:
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


def _fire(at: float, schedule: str, task: str, meets: bool, kind: str | None = None, step: str | None = None) -> Record:
    fields: Record = {"at": iso(at), "schedule": schedule, "task": task, "meets": meets}
    return fields if kind is None else fields | {"kind": kind, "step": step}


def forecast_view(inventory: Inventory, found: Forecast, chosen: Sequence[Schedule]) -> Record:
    return {
        "from": iso(found.start),
        "to": iso(found.end),
        "until": iso(found.until),
        "zone": inventory.tz,
        "seats": inventory.seats,
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
        "durations": {
            task: inventory.durations[task] for task in sorted({s.task for s in chosen} & {*inventory.durations})
        },
        "paused": sorted(schedule.id for schedule in chosen if schedule.paused),
        "disabled": sorted(schedule.id for schedule in chosen if inventory.is_disabled(schedule)),
        "unreadable": [*found.unreadable],
    }
