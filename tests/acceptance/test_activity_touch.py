"""Rows of the first source document: work that follows a user's activity. Numbers are those of the rows."""

import asyncio
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rota import (
    Activity,
    Breaker,
    Context,
    Decision,
    Every,
    Reason,
    Retry,
    Rota,
    RunCancelled,
    UserKey,
)
from rota.domain.activity import Mode
from rota.stores.memory import MemoryBackend
from rota.stores.sqlite import SqliteBackend
from rota.task import definition_of
from rota.testing import drain, simulate
from rota.testing.simulation import Simulation
from storekit.faults import FaultyBackend
from tests.requirement import requirement

START = datetime(2026, 5, 4, 12, tzinfo=UTC)


@requirement("0.1")
def test_0_1_two_trigger_modes_per_user_and_periodic() -> None:
    app = Rota("memory://")
    calls: list[tuple[str, float]] = []

    @app.task(activity=Activity(after=1800, key=UserKey()))
    async def summarise(user_id: str, device_id: str | None = None, agent_id: str | None = None) -> None:
        calls.append((user_id, (simulation_now() - START).total_seconds()))

    @app.task(schedule=Every(3600))
    async def clean() -> None:
        calls.append(("everyone", (simulation_now() - START).total_seconds()))

    running: list[Simulation] = []

    def simulation_now() -> datetime:
        return running[0].now

    async def scenario(simulation: Simulation) -> None:
        running.append(simulation)
        await summarise.touch("u1")
        await asyncio.sleep(600)
        await summarise.touch("u2", "phone")

    simulate(app, START, START + timedelta(minutes=61), scenario=scenario)
    assert calls == [("u1", 1800.0), ("u2", 2400.0), ("everyone", 3600.0)]


@requirement("0.4")
def test_0_4_a_touch_while_one_is_pending_keeps_the_due_time_or_pushes_it() -> None:
    app = Rota("memory://")
    seen: list[tuple[str, int]] = []

    @app.task(activity=Activity(after=1800, key="{user}"))
    async def coalesced(user: str, note: int) -> None:
        seen.append(("coalesced", note))

    @app.task(activity=Activity(after=1800, key="{user}", mode="debounce", max_wait=3000))
    async def debounced(user: str, note: int) -> None:
        seen.append(("debounced", note))

    async def scenario(simulation: Simulation) -> None:
        for note in range(20):
            await coalesced.touch("u1", note)
            await debounced.touch("u1", note)
            await asyncio.sleep(101)

    simulation = simulate(app, START, START + timedelta(hours=1), scenario=scenario)
    assert [start - START for start in simulation.starts("coalesced")] == [timedelta(seconds=1800)]
    assert [start - START for start in simulation.starts("debounced")] == [timedelta(seconds=3000)]
    assert seen == [("coalesced", 17), ("debounced", 19)], "the newest arguments win"


@requirement("0.5")
@pytest.mark.parametrize("fails", [False, True])
async def test_0_5_skip_if_the_last_execution_is_within_the_interval(fails: bool) -> None:
    backend = MemoryBackend()
    app = Rota(backend)

    @app.task(activity=Activity(after=10, key="{user}", spacing=1800))
    async def summarise(user: str) -> None:
        if fails:
            raise RuntimeError("no")

    assert await summarise.touch("u1")
    backend.skew += 10
    await drain(app)
    backend.skew += 1790
    refused = await summarise.touch("u1")
    assert (bool(refused), refused.reason) == (False, Reason.RESTING)
    assert await summarise.touch("u2"), "other keys are free"
    backend.skew += 11
    assert await summarise.touch("u1")


@requirement("0.6")
async def test_0_6_after_failures_in_a_row_the_breaker_refuses_until_it_has_cooled_down() -> None:
    backend = MemoryBackend()
    app = Rota(backend)
    broken = True

    @app.task(activity=Activity(after=60, key="{user}", breaker=Breaker(3)))
    async def summarise(user: str) -> None:
        if broken:
            raise RuntimeError("no")

    async def touched_and_run() -> Decision:
        decision = await summarise.touch("u1")
        backend.skew += 61
        await drain(app)
        backend.skew += 61
        return decision

    for _ in range(3):
        assert await touched_and_run()
    assert (await summarise.touch("u1")).reason is Reason.BREAKER
    backend.skew += 86_400 - 200
    assert (await summarise.touch("u1")).reason is Reason.BREAKER, "max(3 * 60 * 2, 86400) s"
    backend.skew += 200
    broken = False
    assert await touched_and_run()
    broken = True
    for _ in range(2):
        assert await touched_and_run(), "a success has reset it"
    assert await touched_and_run()
    assert (await summarise.touch("u1")).reason is Reason.BREAKER


@requirement("0.4")
async def test_a_touch_with_other_arguments_starts_afresh() -> None:
    backend = MemoryBackend()
    app = Rota(backend)
    calls: list[tuple[str, object, int]] = []

    @app.task(activity=Activity(after=10, key="{user}"), retry=Retry(1, delay=60, jitter=0))
    async def summarise(ctx: Context, user: str, page: str) -> None:
        calls.append((page, ctx.saved, ctx.attempt))
        if page == "first":
            ctx.checkpoint(3)
            raise RuntimeError("no")

    first = await summarise.touch("u1", "first")
    backend.skew += 11
    await drain(app)
    assert (await summarise.touch("u1", "second")).run == first.run
    backend.skew += 61
    await drain(app)
    assert calls == [("first", None, 1), ("second", None, 1)]


@requirement("0.17")
@pytest.mark.parametrize("while_it", ["waits", "runs"])
async def test_0_17_a_cancelled_run_says_nothing_to_spacing_and_breaker(while_it: str) -> None:
    backend = MemoryBackend()
    app = Rota(backend)
    begun = asyncio.Event()

    @app.task(activity=Activity(after=60, key="{user}", spacing=1800, breaker=Breaker(1)))
    async def summarise(user: str) -> None:
        begun.set()
        await asyncio.Event().wait()

    decision = await summarise.touch("u1")
    run = summarise.handle(decision.run)
    if while_it == "runs":
        backend.skew += 61
        async with app:
            await begun.wait()
            await run.cancel()
            with pytest.raises(RunCancelled):
                await run.result(timeout=30)
    else:
        await run.cancel()
    assert (await run.refresh()).state == "cancelled"
    assert await summarise.touch("u1"), "neither rest nor breaker"


@requirement("0.14")
@pytest.mark.parametrize("mode", ["coalesce", "debounce"])
async def test_0_14_a_touched_run_expires(mode: Mode) -> None:
    backend = MemoryBackend()
    app = Rota(backend)

    @app.task(activity=Activity(after=1800, key="{user}", mode=mode, expires=7200))
    async def summarise(user: str) -> None: ...

    first = summarise.handle((await summarise.touch("u1")).run)
    backend.skew += 1000
    assert (await summarise.touch("u1")).run == first.id
    run = await first.refresh()
    assert run.expires_at == pytest.approx(run.due_at + 7200, abs=0.001)
    backend.skew += 1800 + 7201
    await drain(app)
    assert ((await first.refresh()).state, (await first.refresh()).reason) == ("cancelled", "expired")
    assert await summarise.touch("u1"), "one that expired did not run, so there is nothing to rest from"


@requirement("0.7")
async def test_0_7_the_first_no_wins_and_unknown_or_disabled_never_raises() -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)

    @app.task(activity=Activity(after=60, key="{user}"))
    async def summarise(user: str) -> None: ...

    @app.task
    async def plain(user: str) -> None: ...

    @app.task(enabled=False, activity=Activity(after=60))
    async def off() -> None: ...

    answers = [await app.touch("nobody", "u1"), await app.touch("plain", "u1"), await off.touch()]
    assert [(bool(answer), answer.reason) for answer in answers] == [
        (False, Reason.UNKNOWN_TASK),
        (False, Reason.NO_ACTIVITY),
        (False, Reason.DISABLED),
    ]
    created = await summarise.touch("u1")
    joined = await summarise.touch("u1")
    assert (created.reason, joined.reason, joined.run) == (Reason.ACCEPTED, Reason.JOINED, created.run)
    with pytest.raises(TypeError):
        await app.touch("summarise", wrong=1)

    backend.calls.clear()
    await summarise.touch("u1")
    assert backend.calls == ["put"], "a touch is one round trip"
    backend.fail("put", "request lost")
    lost = await summarise.touch("u1")
    assert (bool(lost), lost.reason) == (False, Reason.UNAVAILABLE)


@requirement("0.c")
def test_0_beyond_activity_during_a_run_queues_exactly_one_more_behind_it() -> None:
    app = Rota("memory://")

    @app.task(activity=Activity(after=60, key="{user}", spacing=0))
    async def summarise(user: str) -> None:
        await asyncio.sleep(600)

    async def scenario(simulation: Simulation) -> None:
        await summarise.touch("u1")
        await asyncio.sleep(100)
        for _ in range(5):
            assert await summarise.touch("u1")

    simulation = simulate(app, START, START + timedelta(hours=1), scenario=scenario)
    assert [(start - START).total_seconds() for start in simulation.starts("summarise")] == [60.0, 660.0]


@requirement("0.5")
@requirement("0.6")
def test_0_5_and_0_6_hold_for_the_one_that_waits_behind_too() -> None:
    app = Rota("memory://")

    @app.task(activity=Activity(after=60, key="{user}", spacing=3600, breaker=Breaker(1, cool_down=86_400)))
    async def summarise(user: str) -> None:
        await asyncio.sleep(100)
        if user == "broken":
            raise RuntimeError("no")

    async def scenario(simulation: Simulation) -> None:
        for user in ("fine", "broken"):
            await summarise.touch(user)
        await asyncio.sleep(100)
        for user in ("fine", "broken"):
            assert await summarise.touch(user), "while it runs, one more is queued"

    simulation = simulate(app, START, START + timedelta(days=2), scenario=scenario)
    due = {
        key: [run.due_at - START.timestamp() for run in simulation.runs if run.key == key] for key in ("fine", "broken")
    }
    assert due == {"fine": [60.0, 160.0 + 3600], "broken": [60.0, 160.0 + 86_400]}


@requirement("0.6")
async def test_0_6_a_plain_submit_of_the_key_counts_for_its_breaker() -> None:
    app = Rota("memory://")

    @app.task(activity=Activity(after=0, key="{user}", spacing=0, breaker=Breaker(1)))
    async def summarise(user: str) -> None:
        raise RuntimeError("no")

    await summarise.using(key="u1").submit("u1")
    await drain(app)
    assert (await summarise.touch("u1")).reason is Reason.BREAKER


@requirement("0.7")
async def test_0_7_a_touch_by_name_makes_the_same_key_and_refuses_what_the_task_does_not_take() -> None:
    backend = FaultyBackend(MemoryBackend())
    app, elsewhere = Rota(backend), Rota(backend)

    @app.task(activity=Activity(after=60, key=UserKey(agent=False)))
    async def summarise(user_id: str, device_id: str = "web") -> None: ...

    await (await app.client().store()).declare([definition_of(summarise).spec])
    here = await summarise.touch("u1")
    there = await elsewhere.touch("summarise", "u1")
    assert (there.reason, there.run) == (Reason.JOINED, here.run)
    with pytest.raises(TypeError, match="no parameter 'bogus'"):
        await elsewhere.touch("summarise", "u1", bogus=1)
    backend.calls.clear()
    await elsewhere.touch("summarise", "u1")
    assert backend.calls == ["put"], "one round trip, by name as well"


@requirement("0.7")
async def test_0_7_a_touch_does_not_wait_for_a_store_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.client.client.TOUCH", 0.05)
    backend = SqliteBackend(tmp_path / "rota.db")
    app = Rota(backend)

    @app.task(activity=Activity(after=60, key="{user}"))
    async def summarise(user: str) -> None: ...

    async with app.client():
        assert await summarise.touch("u1")
        hog = sqlite3.connect(backend.path, isolation_level=None)
        hog.execute("BEGIN IMMEDIATE")
        refused = await summarise.touch("u2")
        hog.execute("ROLLBACK")
        hog.close()
    assert (bool(refused), refused.reason) == (False, Reason.UNAVAILABLE)
