"""Rehearsal: one start per period, its steps by how long they usually take, and rechecks that only heal."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from rota.domain.deadline import Deadline
from rota.domain.flow import StepSpec
from rota.domain.forecast import DAY, HOUR, Fire, forecast
from rota.domain.once import Once
from rota.domain.period import Period
from rota.domain.rehearsal import FlowShape, rehearse
from rota.domain.schedule import Schedule
from rota.domain.ticks import with_first_tick
from rota.domain.triggers import Trigger

NOW = datetime(2026, 11, 15, tzinfo=UTC).timestamp()
STEPS = {
    "load": StepSpec(name="load", task="fetch"),
    "left": StepSpec(name="left", task="slow", after=("load",)),
    "right": StepSpec(name="right", task="fast", after=("load",)),
    "join": StepSpec(name="join", task="unknown", after=("left", "right")),
}
DURATIONS = {"fetch": 60.0, "slow": HOUR, "fast": 10.0}


def scheduled(id: str, trigger: str, deadline: Deadline | None = None) -> Schedule:
    text = str(Trigger.parse(trigger).in_zone("UTC"))
    return with_first_tick(Schedule(id=id, trigger=text, task=id, body="{}", key="", deadline=deadline), NOW)


def shape(once: Once, *begun: str) -> FlowShape:
    return FlowShape("day", once, STEPS, frozenset(begun))


def test_a_period_starts_with_its_first_tick_and_the_others_are_rechecks() -> None:
    rechecked = scheduled("day", "cron */7 4-23 * * *")

    first, second = rehearse(rechecked, shape(Period.day()), {}, NOW, NOW + 2 * DAY - 1)

    assert (first.period, second.period) == ("2026-11-15", "2026-11-16")
    assert [(each.at - NOW) / HOUR for each in (first, second)] == [4, 28]
    assert (first.rechecks, first.more) == (20 * 9 - 1, False)


def test_steps_begin_when_those_before_them_end_and_overlap_where_they_can() -> None:
    (found,) = rehearse(scheduled("day", "daily 04:00"), shape(Period.day()), DURATIONS, NOW, NOW + DAY - 1)

    assert [(step.name, step.begin - found.at, step.end - found.at) for step in found.steps] == [
        ("load", 0, 60),
        ("left", 60, 3660),
        ("right", 60, 70),
        ("join", 3660, 3660),
    ]
    assert found.ends == found.at + 3660


def test_a_period_that_is_under_way_is_only_rechecked() -> None:
    hourly = scheduled("day", "cron 0 * * * *")

    found = list(rehearse(hourly, shape(Period.day(), "2026-11-15"), DURATIONS, NOW, NOW + DAY))

    assert [(each.period, each.begun, each.rechecks, len(each.steps)) for each in found] == [
        ("2026-11-15", True, 23, 0),
        ("2026-11-16", False, 0, 4),
    ]


def test_more_ticks_than_one_would_count_are_told_as_such() -> None:
    busy = scheduled("day", "every 10s")

    first, second, *_ = rehearse(busy, shape(Period.day()), {}, NOW, NOW + 3 * DAY)

    assert (first.more, first.rechecks) == (True, 1499)
    assert second.at == NOW + DAY


def test_periods_of_ones_own_and_of_another_zone() -> None:
    hourly = scheduled("day", "cron 0 * * * *")
    halves = list(rehearse(hourly, shape(lambda at: f"{at:%d}-{at.hour // 12}"), {}, NOW, NOW + DAY - 1))
    zoned = list(rehearse(hourly, shape(Period.day("Asia/Tokyo")), {}, NOW, NOW + DAY - 1))

    assert [(each.period, each.rechecks) for each in halves] == [("15-0", 10), ("15-1", 11)]
    assert [((each.at - NOW) / HOUR, each.period) for each in zoned] == [(1, "2026-11-15"), (15, "2026-11-16")]


def test_a_forecast_counts_a_flow_once_per_period_and_its_steps_take_seats() -> None:
    schedules = [scheduled("day", "cron */5 * * * *"), scheduled("plain", "daily 00:05")]

    found = forecast(schedules, DURATIONS, NOW, NOW + DAY - 1, UTC, {"day": shape(Period.day())})

    assert found.fires == [Fire(NOW + 300, "day", "day"), Fire(NOW + 300, "plain", "plain")]
    assert found.frequent == []
    assert [met.schedules for met in found.collisions] == [("day", "plain")]
    (period,) = found.flows
    assert period.rechecks == 286
    assert sum(found.seats.values()) * HOUR == pytest.approx(60 + HOUR + 10)
    assert found.counts == {(date(2026, 11, 15), 0): 2}


def test_deadlines_are_no_runs() -> None:
    looks = scheduled("expect:report", "daily 07:00", Deadline())
    broken = Schedule(id="expect:x", trigger="whenever", task="x", body="{}", key="", deadline=Deadline())

    found = forecast([looks, broken], {"expect:report": HOUR}, NOW, NOW + 2 * DAY, ZoneInfo("UTC"))

    assert (found.fires, found.counts, found.seats, found.collisions) == ([], {}, {}, [])
    assert [(fire.at - NOW) / HOUR for fire in found.deadlines] == [7, 31]
    assert found.unreadable == ["expect:x"]
