"""Rows of the first source document: claiming, locks, workers, outcomes, stopping. Numbers are those of the rows."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from rota import Activity, Context, Every, Limit, Reason, Rota, RunFailed, State
from rota.domain.lifecycle import Succeeded, settlement_of
from rota.domain.settlement import Verdict
from rota.store import ClaimRequest
from rota.stores.memory import MemoryBackend
from rota.testing import Simulation, simulate
from storekit.contract.stage import new_run
from storekit.faults import FaultyBackend
from tests.requirement import requirement


@requirement("0.8")
async def test_0_8_atomic_pop_only_when_due_and_release_only_with_the_token() -> None:
    backend = MemoryBackend()
    async with backend.open() as store:
        await store.put([new_run(task="t", delay=60)])
        assert not (await store.claim(ClaimRequest("w1", 1, ["t"], 10, 30))).runs, "only when due"
        backend.skew += 61
        claims = await asyncio.gather(*(store.claim(ClaimRequest(f"w{n}", 2, ["t"], 10, 30)) for n in range(2, 8)))
        (run,) = [run for claim in claims for run in claim.runs]  # popped by one
        backend.skew += 31
        (orphan,) = (await store.claim(ClaimRequest("cleaner", 1, ["t"], 0, 30))).lapsed  # orphans are found
        assert orphan.lease == run.lease
        stranger = settlement_of(run, Succeeded())
        wrong_token = replace(stranger, fence=run.fence + 1)
        assert (await store.settle([wrong_token])).items == [Verdict.STALE]
        assert (await store.settle([stranger])).items == [Verdict.APPLIED]


@requirement("0.9")
async def test_0_9_a_cap_acquired_before_claiming_and_draining_without_a_poll() -> None:
    app = Rota("memory://", concurrency=5)
    running = most = 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    one = app.task(name="one", limit=Limit(1))(work)
    many = app.task(name="many")(work)
    handles = await app.submit_many([*(one.bind() for _ in range(10)), *(many.bind() for _ in range(30))])
    async with app:
        await asyncio.gather(*(handle.result(timeout=10) for handle in handles))
    assert most <= 5


@requirement("0.10")
@pytest.mark.parametrize("fault", ["request lost", "reply lost"])
async def test_0_10_the_outcome_is_recorded_even_on_cancellation_or_a_failed_state_write(fault: str) -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)
    started = asyncio.Event()

    @app.task
    async def work() -> None:
        started.set()
        await asyncio.Event().wait()

    async with app:
        run = await work.submit()
        await started.wait()
        backend.fail("settle", fault, times=2)  # type: ignore[arg-type]
        await run.cancel()
        async with asyncio.timeout(10):
            while not (seen := await run.refresh()).state.final:
                await app.client().news()
        assert seen.state is State.CANCELLED
        assert app.status().free == 10, "and the lock is released"


@requirement("0.11")
async def test_0_11_stop_lets_handlers_finish_then_cancels_them_and_awaits_their_cleanup() -> None:
    app = Rota("memory://")
    story: list[str] = []
    started = asyncio.Event()

    @app.task
    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            story.append("cleaned up")

    await app.start()
    await app.start()  # a second start is harmless
    await work.submit()
    await started.wait()
    await app.stop(grace=0)  # immediate
    assert story == ["cleaned up"]


@requirement("0.14")
async def test_0_14_true_is_success_false_is_failure_and_every_run_knows_its_origin() -> None:
    app = Rota("memory://")

    @app.task(fail_on=lambda result: result is False)
    async def handler(ctx: Context, answer: bool) -> bool:
        assert ctx.run.origin.kind == "submit"
        assert Rota.current() is app
        return answer

    async with app:
        assert await (await handler.submit(True)).result(timeout=10)
        with pytest.raises(RunFailed):
            await (await handler.submit(False)).result(timeout=10)


@requirement("0.14")
async def test_0_14_state_has_a_time_to_live() -> None:
    backend = MemoryBackend()
    app = Rota(backend)

    @app.task
    async def handler() -> None: ...

    run = await handler.using(expires=7200).submit()
    backend.skew += 7201
    async with app:
        await (await handler.submit()).result(timeout=10)
    assert ((await run.refresh()).state, (await run.refresh()).reason) == ("cancelled", "expired")


@requirement("0.a")
async def test_beyond_a_crash_after_the_pop_neither_loses_the_task_nor_blocks_the_user(tmp_path: Path) -> None:
    backend = MemoryBackend()
    app = Rota(backend)

    @app.task(key="{user}", unique="active")
    async def summarise(user: str) -> str:
        return user

    run = await summarise.submit("u1")
    async with backend.open() as store:
        assert (await store.claim(ClaimRequest("crashed", 1, ["summarise"], 1, 30))).runs
    backend.skew += 31
    async with app:
        assert await run.result(timeout=10) == "u1"
        assert await (await summarise.submit("u1")).result(timeout=10) == "u1"


@requirement("0.b")
def test_beyond_a_timeout_is_enforced_and_a_lock_is_renewed_as_long_as_the_work_takes() -> None:
    """There, the timeout was a number nobody looked at, and a lock of 300 s ended under a longer task."""
    app = Rota("memory://")

    @app.task(timeout=300)
    async def hangs() -> None:
        await asyncio.Event().wait()

    @app.task
    async def long() -> None:
        await asyncio.sleep(3000)

    async def submits(_: Simulation) -> None:
        await hangs.submit()
        await long.submit()

    start = datetime(2026, 5, 4, tzinfo=UTC)
    simulation = simulate(app, start, start + timedelta(hours=1), scenario=submits, workers=2)
    (hung,), (done,) = simulation.of(hangs), simulation.of(long)
    assert hung.reason is Reason.TIMED_OUT
    assert hung.attempts[0].seconds == pytest.approx(300, abs=1)
    assert (done.state, len(simulation.starts(long))) == (State.SUCCEEDED, 1)


@requirement("0.d")
def test_beyond_work_starts_when_it_is_due_and_a_period_does_not_drift() -> None:
    """There, a look every ten seconds came late by up to ten, and each period began when the last run had ended."""
    app = Rota("memory://")

    @app.task(schedule=Every(60))
    async def periodic() -> None:
        await asyncio.sleep(7)

    @app.task(activity=Activity(after=1800, key="{user}"))
    async def summarise(user: str) -> None: ...

    async def touches(_: Simulation) -> None:
        await summarise.touch("u1")

    start = datetime(2026, 5, 4, tzinfo=UTC)
    simulation = simulate(app, start, start + timedelta(hours=1), scenario=touches)
    assert [at - start for at in simulation.starts(summarise)] == [timedelta(seconds=1800)]
    assert [at - start for at in simulation.starts(periodic)] == [timedelta(seconds=60 * n) for n in range(1, 60)]
