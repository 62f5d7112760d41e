"""A schedule that is put at run time with `expect`: its deadline comes, goes and speaks with it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota import InvalidOptions, Period, Rota, ScheduleTaken
from rota.app.core import core_of
from rota.domain.decision import DecisionCount, Reason
from rota.store import RowQuery
from rota.testing import Simulation, simulate

START = datetime(2026, 11, 15, 3, 0, tzinfo=UTC)


class Scene:
    """A report that fails when it is told to, and the late ones that were heard of."""

    def __init__(self, **options: Any) -> None:
        self.app = Rota("memory://", tz="UTC")
        self.failing = False
        self.late: list[str] = []
        self.app.on("late", lambda event: self.late.append(event.note or ""))

        @self.app.task(**options)
        async def report(name: str = "a") -> None:
            if self.failing:
                raise ValueError(name)

        self.report = report

    def play(self, hours: float, scenario: Callable[[Simulation], Awaitable[object]]) -> Simulation:
        return simulate(self.app, START, START + timedelta(hours=hours), scenario=scenario)

    async def ids(self) -> list[str]:
        return [schedule.id for schedule in await self.app.schedules.list()]


def test_what_has_succeeded_in_time_is_not_late_and_what_failed_is() -> None:
    scene = Scene()

    async def puts(simulation: Simulation) -> None:
        await scene.app.schedules.put("dawn", "daily 05:00", scene.report.bind("dawn"), expect="07:00")
        await asyncio.sleep(24 * 3600)
        assert scene.late == []
        scene.failing = True
        await asyncio.sleep(24 * 3600)
        assert scene.late == ["not done by 2026-11-16 07:00 UTC"]
        store = await scene.app.client().store()
        decided = (await store.rows(DecisionCount, RowQuery(task="report", key="schedule:dawn"))).items
        assert [row.note for row in decided if row.reason is Reason.LATE] == scene.late

    scene.play(52, puts)


def test_a_paused_schedule_is_late_too_and_a_sibling_does_not_stand_for_it() -> None:
    scene = Scene()

    async def puts(simulation: Simulation) -> None:
        items = [("one", "daily 05:00", scene.report.bind("1")), ("two", "daily 05:00", scene.report.bind("2"))]
        await scene.app.schedules.put_many(items, expect="07:00")
        await scene.app.schedules.pause("two")

    scene.play(6, puts)
    assert len(scene.late) == 1


def test_a_schedule_of_a_task_that_is_done_once_looks_for_its_period() -> None:
    scene = Scene(once=Period.day())

    async def puts(simulation: Simulation) -> None:
        await scene.app.schedules.put("dawn", "daily 05:00", scene.report.bind(), expect="07:00")
        assert await scene.report.submit(), "by hand, before its tick"
        await asyncio.sleep(5 * 3600)
        assert scene.late == []
        await scene.app.schedules.pause("dawn")

    scene.play(30, puts)
    assert len(scene.late) == 1, "the day after has none"


def test_the_deadline_goes_with_its_schedule() -> None:
    scene = Scene()

    async def puts(simulation: Simulation) -> None:
        schedules = scene.app.schedules
        await schedules.put("dawn", "daily 05:00", scene.report.bind(), expect="07:00")
        assert await scene.ids() == ["dawn", "expect:dawn"]
        await schedules.delete("dawn")
        assert await scene.ids() == []
        await schedules.put("dawn", "daily 05:00", scene.report.bind(), expect="07:00")
        await schedules.put("dawn", "daily 05:00", scene.report.bind())
        assert await scene.ids() == ["dawn"]

    scene.play(6, puts)
    assert scene.late == []


def test_what_the_code_expects_is_not_taken_away_by_a_schedule_of_its_name() -> None:
    scene = Scene(expect="07:00")

    async def puts(simulation: Simulation) -> None:
        await core_of(scene.app).declare_schedules()
        schedules = scene.app.schedules
        await schedules.put("report", "daily 05:00", scene.report.bind())
        await schedules.delete("report")
        assert await scene.ids() == ["expect:report"]
        with pytest.raises(ScheduleTaken, match="expect:report"):
            await schedules.put("report", "daily 05:00", scene.report.bind(), expect="08:00")

    scene.play(1, puts)


def test_a_deadline_is_no_work_to_be_asked_for() -> None:
    scene = Scene()

    async def asks(simulation: Simulation) -> None:
        schedules = scene.app.schedules
        await schedules.put("dawn", "daily 05:00", scene.report.bind(), expect="07:00")
        with pytest.raises(InvalidOptions, match="expect:dawn is a deadline: it makes no runs"):
            await schedules.run_now("expect:dawn")
        with pytest.raises(InvalidOptions, match="is a deadline"):
            await schedules.backfill("expect:dawn", START - timedelta(days=2), START)
        with pytest.raises(InvalidOptions, match="dawn: "):
            await schedules.put("dawn", "daily 05:00", scene.report.bind(), expect="whenever")

    scene.play(1, asks)


def test_a_deadline_follows_its_task_to_a_new_name() -> None:
    scene = Scene(expect="07:00", aliases=("old",))

    async def starts(simulation: Simulation) -> None:
        before = Rota("memory://", tz="UTC", name=scene.app.settings.name)
        before.task(name="old", expect="07:00")(lambda: None)
        await scene.app.schedules.delete("expect:report")
        await scene.app.schedules.declare(core_of(before).registry.declared())
        assert await scene.ids() == ["expect:old"]
        await core_of(scene.app).declare_schedules()
        assert await scene.ids() == ["expect:report"]

    scene.play(1, starts)
