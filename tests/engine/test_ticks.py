"""Ticks: one step stays short however much was missed, and one schedule spoils no other."""

import asyncio
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from rota import Every, Rota
from rota.domain.schedule import Schedule
from rota.domain.scheduling import Timed
from rota.engine.hooks import Hooks
from rota.engine.tallies import Tallies
from rota.engine.ticks import BATCH, Ticks
from rota.store import ClaimRequest, Fired, Reply
from rota.stores.sqlite import SqliteBackend
from rota.task import call_of


class Fires:
    """A store of which only `fire` and an empty `rows` are asked."""

    def __init__(self, enough: int) -> None:
        self.sizes: list[int] = []
        self.some = asyncio.Event()
        self.all = asyncio.Event()
        self._left = enough

    async def rows(self, kind: type, query: object) -> Reply[Any]:
        return Reply(0.0, [])

    async def fire(self, ticks: list[Any], audit: object = None) -> Reply[Fired]:
        self.sizes.append(sum(len(tick.runs) for tick in ticks))
        self.some.set()
        self._left -= len(ticks)
        if self._left <= 0:
            self.all.set()
        return Reply(0.0, [Fired(False) for _ in ticks])


async def test_a_step_is_bounded_by_the_runs_it_makes() -> None:
    app = Rota("memory://")
    task = app.task(name="each")(lambda: None)
    minutely = call_of(task.bind()).to_schedule("s", Every(60), Timed(catch_up="all"))
    begin = 1_700_000_000.0
    due = [replace(minutely, id=f"s{i}", anchor=begin, next_at=begin + 60, fires_at=begin + 60) for i in range(45)]
    store = Fires(len(due))
    ticks = Ticks(store, Hooks(), Tallies())  # type: ignore[arg-type]
    ticks.take(due, begin + 86_400)
    running = asyncio.create_task(ticks.run())
    async with asyncio.timeout(30):
        await store.all.wait()
    running.cancel()
    await asyncio.wait((running,))
    assert sum(store.sizes) == 45 * 100
    assert max(store.sizes) <= BATCH + 100
    assert len(store.sizes) == 5


class SlowFires(Fires):
    """It takes every step that it is given, and answers none before it is told to."""

    def __init__(self, enough: int) -> None:
        super().__init__(enough)
        self.two = asyncio.Event()
        self.answer = asyncio.Event()

    async def fire(self, ticks: list[Any], audit: object = None) -> Reply[Fired]:
        reply = await super().fire(ticks)
        if len(self.sizes) == 2:
            self.two.set()
        await self.answer.wait()
        return reply


async def test_while_the_store_takes_a_step_the_next_is_planned() -> None:
    app = Rota("memory://")
    task = app.task(name="each")(lambda: None)
    begin = 1_700_000_000.0
    minutely = replace(
        call_of(task.bind()).to_schedule("s", Every(60), Timed()), anchor=begin, next_at=begin, fires_at=begin
    )
    due = [replace(minutely, id=f"s{i}") for i in range(3 * BATCH)]
    store = SlowFires(len(due))
    ticks = Ticks(store, Hooks(), Tallies())  # type: ignore[arg-type]
    ticks.take(due, begin + 1)
    running = asyncio.create_task(ticks.run())
    async with asyncio.timeout(30):
        await store.two.wait()
        assert store.sizes == [BATCH, BATCH], "whole steps, and no more than two at once"
        store.answer.set()
        await store.all.wait()
    running.cancel()
    await asyncio.wait((running,))
    assert store.sizes == [BATCH] * 3


async def test_a_tick_in_hand_is_not_taken_twice_and_one_that_did_not_apply_is_taken_again() -> None:
    """A store offers once more what is not fired soon: whoever has it in hand would plan and fire it in vain."""
    app = Rota("memory://")
    task = app.task(name="each")(lambda: None)
    begin = 1_700_000_000.0
    due = replace(
        call_of(task.bind()).to_schedule("s", Every(60), Timed()), anchor=begin, next_at=begin, fires_at=begin
    )
    store = Fires(2)
    ticks = Ticks(store, Hooks(), Tallies())  # type: ignore[arg-type]
    ticks.take([due], begin + 1)
    ticks.take([due], begin + 3)
    running = asyncio.create_task(ticks.run())
    async with asyncio.timeout(30):
        await store.some.wait()
        ticks.take([due], begin + 5)
        await store.all.wait()
    running.cancel()
    await asyncio.wait((running,))
    assert store.sizes == [1, 1]


async def test_a_schedule_that_this_version_cannot_read_spoils_no_other(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "rota.db")
    app = Rota(backend)
    task = app.task(name="each")(lambda: None)
    async with app.client():
        for name in ("a", "b", "c"):
            await app.schedules.put(name, Every(60, anchor=datetime(2026, 1, 1, tzinfo=UTC)), task.bind())
        connection = sqlite3.connect(backend.path)
        connection.execute(
            "UPDATE schedules SET schedule = json_set(schedule, '$.overlap', 'of tomorrow') WHERE id = 'b'"
        )
        connection.commit()
        connection.close()
        backend.skew += 120
        run = await task.submit()
        store = await app.client().store()
        claim = await store.claim(ClaimRequest("w", 1, ["each"], 9, 30))
        assert [found.id for found in claim.runs] == [run.id], "what has nothing to do with it is claimed"
        assert [schedule.id for schedule in claim.schedules] == ["a", "c"]
        assert [schedule.id for schedule in await app.schedules.list()] == ["a", "c"]
        assert [schedule.id for schedule in (await store.rows(Schedule)).items] == ["a", "c"]
        again = await store.claim(ClaimRequest("w", 2, ["each"], 9, 30))
        assert again.schedules == []
        assert again.wake is None or again.wake > 0, "nor is it met at every claim"
