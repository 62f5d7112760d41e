"""Deadlines: what code expects to be done by when, as schedules that look for a success instead of making runs."""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from rota.domain import codec
from rota.domain.deadline import Deadline, deadline_id, deadline_trigger
from rota.domain.once import NO_ARGUMENTS
from rota.domain.period import Period
from rota.domain.policy import Policy
from rota.domain.run import Origin
from rota.domain.schedule import Schedule
from rota.domain.triggers import Trigger
from rota.errors import InvalidOptions
from rota.flow import Flow
from rota.task import Task, definition_of


def deadlines(
    tasks: Iterable[Task[..., ..., Any, Any]], flows: Iterable[Flow], tz: str, owner: str
) -> Iterator[Schedule]:
    """Yield the deadlines of `tasks` and of the steps of `flows`."""
    for task in tasks:
        expect = definition_of(task).expect
        if expect is not None:
            period = _period(definition_of(task).once, task.name)
            about = None if period is None else ""
            yield deadline(task.name, task.name, expect, Deadline(about, period), tz, owner)
    for flow in flows:
        for step in flow.steps.values():
            if step.expect is not None:
                name = f"{flow.name}/{step.name}"
                yield deadline(name, step.spec.task, step.expect, Deadline(name, _period(flow.once, name)), tz, owner)


def expecting(schedule: Schedule, expect: Trigger | str, tz: str) -> tuple[Schedule, Schedule]:
    """Return the schedule with runs that leave marks, and the deadline that looks for these marks."""
    marking = replace(schedule, guards=replace(schedule.guards, marks=True))
    expected = Deadline(schedule.key, schedule.once)
    return marking, deadline(schedule.id, schedule.task, expect, expected, tz, schedule.owner)


def deadline(of: str, task: str, expect: Trigger | str, expected: Deadline, tz: str, owner: str = "") -> Schedule:
    zone = (expected.period and expected.period.tz) or tz
    try:
        trigger = deadline_trigger(expect, expected.period).in_zone(zone)
    except (TypeError, ValueError) as error:
        raise InvalidOptions(f"{of}: {error}") from None
    return Schedule(
        id=deadline_id(of),
        trigger=str(trigger),
        task=task,
        body=codec.encode(NO_ARGUMENTS, Origin(), Policy()).decode(),
        key=expected.about or "",
        owner=owner,
        deadline=replace(expected, tz=getattr(trigger, "tz", None) or zone),
    )


def _period(once: object, of: str) -> Period | None:
    if once is not None and not isinstance(once, Period):
        raise InvalidOptions(f"{of}: expect= needs once= as a Period: workers without this code look after it too")
    return None if once is None else once.stored()
