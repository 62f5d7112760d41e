"""Freshness, in virtual time: what has not succeeded by its time is late, even if nothing ever fired."""

import asyncio
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from rota import DailyAt, Event, InvalidOptions, Monthly, Period, Reason, Rota, Weekly
from rota.app.core import core_of
from rota.domain.decision import DecisionCount
from rota.store import RowQuery
from rota.testing import simulate
from rota.testing.simulation import Simulation

PARIS = ZoneInfo("Europe/Paris")
START = datetime(2026, 11, 15, 3, 0, tzinfo=PARIS)


class Alarms:
    """Who was late, and when that was noticed."""

    def __init__(self, app: Rota) -> None:
        self.heard: list[tuple[str, str]] = []
        self.keys: list[str | None] = []
        self.simulation: Simulation

        async def hear(event: Event) -> None:
            self.heard.append((event.task, f"{self.simulation.now:%d %H:%M}"))
            self.keys.append(event.key)
            assert event.note.startswith("not done by 2026-11-")

        app.on("late", hear)
        self.app = app

    def play(self, days: float, workers: int = 1) -> list[tuple[str, str]]:
        async def look(simulation: Simulation) -> None:
            self.simulation = simulation

        simulate(self.app, START, START + timedelta(days=days), scenario=look, workers=workers)
        return self.heard


def test_what_was_done_in_time_is_not_late() -> None:
    app = Rota("memory://", tz="Europe/Paris")

    @app.task(schedule=DailyAt(6), expect="07:00")
    async def report() -> None: ...

    assert Alarms(app).play(3) == []


def test_what_never_ran_is_late_every_day_and_heard_once() -> None:
    app = Rota("memory://", tz="Europe/Paris")

    @app.task(expect="07:00")
    async def report() -> None: ...

    assert Alarms(app).play(3, workers=3) == [("report", f"{day} 07:00") for day in (15, 16, 17)]


def test_a_failure_is_no_success_and_a_late_success_is_too_late() -> None:
    app = Rota("memory://", tz="Europe/Paris")
    days: list[int] = []

    @app.task(schedule=DailyAt(6), expect="07:00")
    async def report() -> None:
        days.append(1)
        if len(days) == 2:
            raise ValueError
        if len(days) == 3:
            await asyncio.sleep(5400)

    assert Alarms(app).play(4) == [("report", "16 07:00"), ("report", "17 07:00")]


def test_the_decision_is_kept() -> None:
    app = Rota("memory://", tz="Europe/Paris")

    @app.task(expect="07:00")
    async def report() -> None: ...

    async def looks(simulation: Simulation) -> None:
        await asyncio.sleep(86_400)
        store = await app.client().store()
        (row,) = (await store.rows(DecisionCount, RowQuery(task="report"))).items
        assert (row.reason, row.count, row.note) == (Reason.LATE, 1, "not done by 2026-11-15 07:00 Europe/Paris")

    simulate(app, START, START + timedelta(days=2), scenario=looks)


def test_a_step_is_expected_in_its_own_period() -> None:
    app = Rota("memory://")

    @app.task
    async def load() -> None:
        await asyncio.sleep(5 * 3600)

    day = app.flow("day", once=Period.day(tz="Europe/Paris"), recheck=DailyAt(4))
    day.step(load, expect="08:00")
    alarms = Alarms(app)
    assert alarms.play(2) == [("load", "15 08:00"), ("load", "16 08:00")]
    assert alarms.keys == ["day/load@2026-11-15", "day/load@2026-11-16"]


def test_a_step_that_was_done_early_is_fresh() -> None:
    app = Rota("memory://")

    @app.task
    async def load() -> None: ...

    day = app.flow("day", once=Period.day(tz="Europe/Paris"), recheck=DailyAt(0, 1))
    day.step(load, expect="23:59")
    assert Alarms(app).play(3) == [("load", "15 23:59")], "the first day began before the app did"


def test_one_that_is_done_once_a_week() -> None:
    app = Rota("memory://", tz="Europe/Paris")

    @app.task(once=Period.week(), expect=Weekly("wed", 12))
    async def weekly() -> None: ...

    assert Alarms(app).play(14) == [("weekly", "18 12:00"), ("weekly", "25 12:00")]


def test_a_success_of_weeks_ago_counts_where_the_deadline_before_was_earlier() -> None:
    app = Rota("memory://")

    @app.task(schedule=Monthly(1, 6), expect=Monthly(28, 12))
    async def monthly() -> None: ...

    assert Alarms(app).play(60) == [("monthly", "28 13:00")], "the first of November was over when the app began"


def test_nobody_was_there_at_that_time() -> None:
    app = Rota("memory://", tz="Europe/Paris")
    alarms = Alarms(app)

    @app.task(expect="07:00")
    async def report() -> None: ...

    async def sleeps(simulation: Simulation) -> None:
        alarms.simulation = simulation
        await asyncio.sleep(60)
        simulation.crash(restart=50 * 3600)

    simulate(app, START, START + timedelta(days=3), scenario=sleeps)
    assert [at for _, at in alarms.heard] == ["17 05:01", "17 07:00"], "noticed as soon as somebody is there, and once"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"expect": "7 o'clock"}, "report"),
        ({"expect": "07:00", "once": Period.month()}, "by when in the month"),
        ({"expect": "07:00", "once": lambda at: "x"}, "needs once= as a Period"),
    ],
)
def test_what_is_wrong_with_it_is_said_when_the_app_starts(options: dict[str, object], why: str) -> None:
    app = Rota("memory://")
    app.task(name="report", **options)(lambda: None)  # type: ignore[call-overload]
    with pytest.raises(InvalidOptions, match=why):
        core_of(app).registry.declared()


def test_an_expectation_of_the_wrong_kind_is_refused_where_it_is_written() -> None:
    with pytest.raises(InvalidOptions, match="report: expect=7: a time of day such as '07:00'"):
        Rota("memory://").task(name="report", expect=7)(lambda: None)  # type: ignore[call-overload]
