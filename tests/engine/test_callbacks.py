"""`on_success=`, `on_failure=`, `on_cancel=`: durable calls that the end of a run makes."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from rota import Context, Ended, Every, InvalidOptions, Retry, Rota, RunFailed, RunHandle, State
from rota.store import Count, RunQuery
from rota.testing import Simulation, StoreClock, simulate

START = datetime(2026, 3, 1, tzinfo=UTC)


async def test_one_submit_has_callbacks_of_its_own() -> None:
    app, told, both = Rota("memory://"), list[str](), asyncio.Event()

    def tell(word: str) -> None:
        told.append(word)
        if len(told) == 2:
            both.set()

    @app.task
    async def usual(ended: Ended) -> None:
        tell(f"usual {ended.result}")

    @app.task
    async def special(ended: Ended) -> None:
        tell(f"special {ended.result}")

    @app.task(on_success=usual)
    async def work(n: int) -> int:
        return n

    with pytest.raises(InvalidOptions, match=r"work\.using: on_cancel=7: a task, or the name of a task"):
        work.using(on_cancel=7)  # type: ignore[arg-type]
    async with app:
        await work.submit(1)
        await work.using(on_success=special, on_failure="nobody").submit(2)
        async with asyncio.timeout(10):
            await both.wait()
    assert sorted(told) == ["special 2", "usual 1"]


async def test_each_end_calls_its_task_once_with_what_happened() -> None:
    app = Rota("memory://")
    told: dict[str, Ended] = {}
    all_told = asyncio.Event()

    def tell(word: str, ended: Ended) -> None:
        assert word not in told
        told[word] = ended
        if len(told) == 3:
            all_told.set()

    @app.task
    async def done(ended: Ended) -> None:
        tell("done", ended)

    @app.task
    async def broken(ctx: Context, ended: Ended, more: int = 0) -> None:
        assert ctx.headers == {"tenant": "acme"}
        tell("broken", ended)

    @app.task
    def gone(ended: Ended) -> None:
        tell("gone", ended)

    @app.task(key="{n}", retry=Retry(1, delay=0), on_success=done, on_failure=broken, on_cancel="gone")
    async def work(n: int) -> dict[str, int]:
        if n < 0:
            raise ValueError("below zero")
        return {"n": n}

    async with app:
        good = await work.submit(5)
        bad = await work.using(headers={"tenant": "acme"}).submit(-1)
        later = await work.using(delay=60).submit(7)
        await later.cancel("not needed")
        async with asyncio.timeout(10):
            await all_told.wait()
    assert told["done"] == Ended(good.id, "work", "5", State.SUCCEEDED, None, None, {"n": 5})
    assert (told["broken"].id, told["broken"].state, str(told["broken"].error)) == (
        bad.id,
        State.FAILED,
        "ValueError: below zero",
    )
    assert (told["gone"].id, told["gone"].reason) == (later.id, "cancelled")


async def test_a_timeout_is_a_failure_and_a_run_that_expires_is_cancelled() -> None:
    app = Rota("memory://")
    told: dict[str, Ended] = {}
    both = asyncio.Event()

    @app.task
    async def heard(ended: Ended) -> None:
        told[ended.task] = ended
        if len(told) == 2:
            both.set()

    @app.task(timeout=0.01, on_success="gone", on_failure=heard, on_cancel="gone")
    async def slow() -> None:
        await asyncio.Event().wait()

    @app.task(on_success="gone", on_failure="gone", on_cancel=heard)
    async def late() -> None: ...

    @app.task
    async def gone(ended: Ended) -> None:
        raise AssertionError(ended)

    await late.using(expires=0).submit()
    StoreClock(app.backend).move(seconds=1)
    async with app:
        await slow.submit()
        async with asyncio.timeout(10):
            await both.wait()
        assert await app.runs(task="gone").count() == Count(0, False)
    assert (told["slow"].state, told["slow"].reason) == (State.FAILED, "timed_out")
    assert (told["late"].state, told["late"].reason) == (State.CANCELLED, "expired")


def test_a_run_that_kills_its_workers_calls_back_once() -> None:
    app = Rota("memory://", lease=30)
    told: list[Ended] = []

    @app.task
    async def heard(ended: Ended) -> None:
        told.append(ended)

    @app.task(on_failure=heard)
    async def bad() -> None:
        simulations[0].crash()

    simulations: list[Simulation] = []

    async def scenario(simulation: Simulation) -> None:
        simulations.append(simulation)
        await bad.submit()

    simulate(app, START, START + timedelta(hours=1), scenario=scenario)
    assert [(ended.task, ended.state, ended.reason) for ended in told] == [("bad", State.FAILED, "poison")]


async def test_a_retry_calls_back_again() -> None:
    app = Rota("memory://")

    @app.task
    async def broken(ended: Ended) -> str:
        return ended.id

    @app.task(on_failure=broken)
    async def work() -> None:
        raise ValueError

    async with app:
        run = await work.submit()
        for each in (run, await _retried(run)):
            with pytest.raises(RunFailed):
                await each.result(timeout=10)
            (called,) = [
                found for found in (await app.client().runs(RunQuery(task="broken"))).runs if found.origin.of == each.id
            ]
            assert await app.handle(called.id).result(timeout=10) == each.id


async def _retried(run: RunHandle[None]) -> RunHandle[None]:
    with pytest.raises(RunFailed):
        await run.result(timeout=10)
    return await run.retry()


def test_the_runs_of_a_schedule_call_back_in_a_simulation() -> None:
    app = Rota("memory://")
    told: list[str] = []

    @app.task
    async def broken(ended: Ended) -> None:
        told.append(f"{ended.task} {ended.state} {ended.reason}")

    @app.task(schedule=Every(hours=1), timeout=10, on_failure=broken)
    async def hourly() -> None:
        await asyncio.sleep(60)

    simulate(app, START, START + timedelta(hours=3, minutes=5))
    assert told == ["hourly failed timed_out"] * len(told)
    assert len(told) >= 3


def test_a_callback_is_a_task_that_takes_one_argument() -> None:
    app = Rota("memory://")

    @app.task
    async def two(a: int, b: int) -> None: ...

    async def work() -> None: ...

    with pytest.raises(InvalidOptions, match="called with one argument"):
        app.task(on_failure=two)(work)
    for wrong in (5, work, ""):
        with pytest.raises(InvalidOptions, match=r"on_failure|task name"):
            app.task(on_failure=wrong)(work)  # type: ignore[arg-type]


async def test_those_without_callbacks_store_no_more_bytes() -> None:
    app = Rota("memory://")

    @app.task
    async def work() -> None: ...

    assert (await (await work.submit()).refresh()).body == b'{"v":1,"args":{}}'
