"""Schedules that are changed on terms, moved, paused for a while, and reconciled with a table of one's own."""

import asyncio
from datetime import timedelta
from typing import NamedTuple

import pytest

from rota import DailyAt, Every, InvalidOptions, Rota, ScheduleChanged
from rota.store import Declared
from rota.testing import simulate
from rota.testing.simulation import Simulation
from tests.requirement import requirement
from tests.simulate.test_schedules import START

DAY = 86_400


class Customer(NamedTuple):
    id: str
    at: str


def test_a_put_if_absent_leaves_what_is_there() -> None:
    app = Rota("memory://")

    @app.task
    async def report() -> None: ...

    async def scenario(simulation: Simulation) -> None:
        first = await app.schedules.put("report", DailyAt(9), report.bind(), if_absent=True)
        assert await app.schedules.put("report", DailyAt(17), report.bind(), if_absent=True, paused=True) == first
        assert not first.paused

    simulate(app, START, START + timedelta(hours=1), scenario=scenario)


def test_a_put_with_a_version_is_refused_if_somebody_was_faster() -> None:
    app = Rota("memory://")

    @app.task
    async def report() -> None: ...

    async def scenario(simulation: Simulation) -> None:
        seen = await app.schedules.put("report", DailyAt(9), report.bind())
        await app.schedules.pause("report")
        with pytest.raises(ScheduleChanged, match="no longer has version 1; read it again"):
            await app.schedules.put("report", DailyAt(17), report.bind(), if_version=seen.version)
        seen = await app.schedules.get("report")
        after = await app.schedules.put("report", DailyAt(17), report.bind(), if_version=seen.version)
        assert (after.trigger, after.version, after.paused) == ("daily 17:00 UTC", 3, True)
        with pytest.raises(InvalidOptions, match="says already that there is no version"):
            await app.schedules.put("report", DailyAt(17), report.bind(), if_version=3, if_absent=True)

    simulate(app, START, START + timedelta(hours=1), scenario=scenario)


async def test_a_version_that_no_schedule_has_is_refused() -> None:
    app = Rota("memory://")
    report = app.task(name="report")(lambda: None)
    await app.schedules.put("report", DailyAt(9), report.bind())
    with pytest.raises(InvalidOptions, match="versions begin with 1; or give if_absent"):
        await app.schedules.put("report", DailyAt(10), report.bind(), if_version=0)
    with pytest.raises(InvalidOptions, match="if_absent says already"):
        await app.schedules.put("report", DailyAt(10), report.bind(), if_version=1, if_absent=True)
    await app.stop()


def test_the_next_tick_can_be_set() -> None:
    app = Rota("memory://")

    @app.task(schedule=DailyAt(9))
    async def report() -> None: ...

    async def scenario(simulation: Simulation) -> None:
        moved = await app.schedules.set_next("report", START + timedelta(days=3))
        assert moved.next == (START + timedelta(days=3)).replace(hour=9, minute=0, second=0)
        await app.schedules.put("once", "at 2026-03-02T00:00:00Z", report.bind())
        with pytest.raises(InvalidOptions, match="does not fire after that"):
            await app.schedules.set_next("once", START + timedelta(days=3))

    days = simulate(app, START, START + timedelta(days=6), scenario=scenario)
    assert [at.day for at in days.starts(report)] == [2, 4, 5, 6]


def test_a_pause_can_end_by_itself_and_earlier() -> None:
    app = Rota("memory://")

    @app.task(schedule=DailyAt(9))
    async def report() -> None: ...

    @app.task(schedule=DailyAt(9))
    async def other() -> None: ...

    async def scenario(simulation: Simulation) -> None:
        assert await app.schedules.pause("report", until=START + timedelta(days=2))
        assert not await app.schedules.pause("report", until=2 * DAY)
        with pytest.raises(InvalidOptions, match="is past: nothing is paused"):
            await app.schedules.pause("report", until=START - timedelta(days=2))
        assert await app.schedules.pause("other", "the disks are full", until=timedelta(days=4))
        assert (await app.schedules.get("other")).note == "the disks are full"
        await asyncio.sleep(DAY)
        assert await app.schedules.resume("other")
        assert (await app.schedules.get("other")).note is None
        assert not await app.schedules.resume("other")

    days = simulate(app, START, START + timedelta(days=4), scenario=scenario)
    assert [at.day for at in days.starts(report)] == [3, 4]
    assert [at.day for at in days.starts(other)] == [2, 3, 4]


@requirement("1.15")
def test_schedules_follow_a_table_in_one_step() -> None:
    app = Rota("memory://")

    @app.task
    async def sync(customer: str) -> None: ...

    async def reconciled(*rows: Customer) -> dict[str, Declared]:
        found = await app.schedules.reconcile(
            "sync", rows, key=lambda row: row.id, trigger=lambda row: row.at, call=lambda row: sync.bind(row.id)
        )
        return dict(found)

    async def scenario(simulation: Simulation) -> None:
        await app.schedules.put("another", Every(hours=1), sync.bind("x"))
        ada, bob = Customer("ada", "daily 09:00"), Customer("bob", "daily 10:00")
        assert await reconciled(ada, bob) == {"sync/ada": "added", "sync/bob": "added"}
        before = await app.schedules.get("sync/ada")
        eve = Customer("eve", "daily 11:00")
        assert await reconciled(ada, bob._replace(at="daily 12:00"), eve) == {
            "sync/ada": "unchanged",
            "sync/bob": "changed",
            "sync/eve": "added",
        }
        assert await app.schedules.get("sync/ada") == before
        assert await reconciled(eve) == {"sync/eve": "unchanged", "sync/ada": "dropped", "sync/bob": "dropped"}
        assert await reconciled() == {"sync/eve": "dropped"}
        assert [each.id for each in await app.schedules.list()] == ["another"]
        with pytest.raises(InvalidOptions, match="sync/ada is put twice at once"):
            await reconciled(ada, ada)

    simulate(app, START, START + timedelta(minutes=5), scenario=scenario)
