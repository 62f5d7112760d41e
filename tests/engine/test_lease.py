"""app.lease: a named lease for code outside rota, fenced, renewed and taken over, on every store."""

import asyncio
import logging
import threading
from datetime import UTC, datetime, timedelta

import pytest

from rota import InvalidOptions, LeaseLost, Rota, State
from rota.app import leases
from rota.store import Backend, Command, RunQuery, WorkerSeen
from rota.stores.memory import MemoryBackend
from rota.testing import Simulation, simulate
from rota.views.workers import worker_views
from storekit.faults import FaultyBackend
from tests.requirement import requirement


@requirement("1.14")
async def test_one_caller_at_a_time_has_the_lease_and_the_fence_grows(backend: Backend) -> None:
    app = Rota(backend)
    inside, most, fences = 0, 0, list[int]()

    async def work() -> None:
        nonlocal inside, most
        async with app.lease("nightly", seconds=60) as fence:
            inside += 1
            most = max(most, inside)
            fences.append(fence)
            await asyncio.sleep(0)
            inside -= 1

    async with app.client():
        await asyncio.wait_for(asyncio.gather(*(work() for _ in range(8))), 30)
        async with app.lease("other", seconds=60), app.lease("nightly", seconds=60) as last:
            assert not last.lost, "leases of two names do not meet"
        runs = (await app.client().runs(RunQuery(task="rota.lease:nightly"))).runs
    assert most == 1
    assert fences == sorted(set(fences))
    assert last > max(fences)
    assert [run.state for run in runs] == [State.QUEUED], "there is one run for all of it"


async def test_the_lease_of_a_dead_holder_goes_to_the_next_without_any_worker(backend: Backend) -> None:
    app, entered = Rota(backend), asyncio.get_running_loop().create_future()
    cut_off = FaultyBackend(backend)
    cut_off.fail("renew", "request lost", times=1000)
    other = Rota(cut_off)

    async def hold() -> None:
        async with other.lease("nightly", seconds=60) as fence:
            entered.set_result(fence)
            await asyncio.Event().wait()

    async with app.client(), other.client():
        dead = asyncio.create_task(hold())
        first = await entered
        with pytest.raises(TimeoutError, match=r"lease nightly was not free within 0\.1 s"):
            await enter(app, timeout=0.1)
        backend.skew += 61  # as if its process had been killed: nobody has renewed it
        async with app.lease("nightly", seconds=60, timeout=20) as second:
            assert second > first
            dead.cancel()  # the zombie ends its block: that does not free the lease of the next holder
            with pytest.raises((asyncio.CancelledError, LeaseLost)):
                await dead
            (run,) = (await app.client().runs(RunQuery(task="rota.lease:nightly"))).runs
            assert (run.state, run.losses, second.lost) == (State.RUNNING, 1, False)


async def enter(app: Rota, seconds: float = 60.0, timeout: float | None = None, wait: bool = False) -> None:
    """Have the lease for a moment, or, with `wait`, until it is lost."""
    async with app.lease("nightly", seconds, timeout):
        if wait:
            await asyncio.wait_for(asyncio.Event().wait(), 20)


async def test_who_holds_a_lease_is_no_worker(backend: Backend) -> None:
    app = Rota(backend)
    async with app.client(), app.lease("nightly", seconds=60):
        client = app.client()
        (seen,) = (await client.rows(WorkerSeen)).items
        assert (seen.name[:19], seen.tasks, seen.idle) == ("rota.lease:nightly/", (), False)
        assert await worker_views(client) == []
        assert await app.workers.names() == []


@pytest.mark.parametrize(
    ("command", "why", "state"),
    [
        (Command.CANCEL, "somebody cancelled its run", State.CANCELLED),
        (Command.PAUSE, "somebody paused its run", State.PAUSED),
    ],
)
async def test_a_person_takes_the_lease_away(command: Command, why: str, state: State) -> None:
    app = Rota("memory://")
    async with app.client():
        holding = asyncio.create_task(enter(app, seconds=1, wait=True))  # renewed three times a second
        client = app.client()
        while not (running := (await client.runs(RunQuery(state=State.RUNNING))).runs):
            await client.news(0.02)
        await client.control(command, [running[0].id])
        with pytest.raises(LeaseLost, match=f"lease nightly: {why}"):
            await holding
        assert (await client.run(running[0].id)).state is state
        if command is Command.PAUSE:
            with pytest.raises(TimeoutError):
                await enter(app, timeout=0.1)
            await client.control(Command.RESUME, [running[0].id])
        await enter(app, timeout=20)


async def test_a_lease_that_cannot_be_renewed_is_lost_in_time() -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)
    async with app.client():
        backend.fail("renew", "request lost", times=100)
        with pytest.raises(LeaseLost, match="lease nightly: it could not be renewed for 1 s"):
            await enter(app, seconds=1, wait=True)


async def test_what_the_block_raises_goes_on_and_the_lease_is_free(backend: Backend) -> None:
    app = Rota(backend)
    async with app.client():
        for error in (ValueError, TimeoutError):

            async def work(error: type[Exception] = error) -> None:
                async with app.lease("nightly", seconds=60):
                    raise error("mine")

            with pytest.raises(error, match="mine"):
                await work()
        await enter(app, timeout=20)


async def test_a_claim_whose_caller_is_cancelled_is_given_back() -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)
    async with app.client():
        backend.fail("claim", "reply lost")  # sent again after 0.2 s: the caller is cancelled meanwhile
        with pytest.raises(TimeoutError):
            await enter(app, timeout=0.05)
        (run,) = (await app.client().runs(RunQuery(task="rota.lease:nightly"))).runs
        assert (run.state, run.fence) == (State.QUEUED, 1)


def test_synchronous_code_has_leases_too() -> None:
    app, order = Rota("memory://"), list[str]()
    held, go = threading.Event(), threading.Event()

    def first() -> None:
        with app.lease_sync("nightly", seconds=60) as fence:
            held.set()
            go.wait(20)
            order.append(f"first {fence.lost}")

    thread = threading.Thread(target=first)
    thread.start()
    held.wait(20)
    with pytest.raises(TimeoutError), app.lease_sync("nightly", timeout=0.05):
        pass
    go.set()
    with app.lease_sync("nightly", timeout=20):
        order.append("second")
    thread.join(20)
    assert order == ["first False", "second"]
    app.stop_sync()


def test_the_end_of_a_synchronous_block_says_that_the_lease_was_lost() -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)
    backend.fail("renew", "request lost", times=100)
    lost = threading.Event()
    heard = logging.Handler()
    heard.emit = lambda record: lost.set() if " lost: " in record.getMessage() else None  # type: ignore[method-assign]
    logging.getLogger("rota").addHandler(heard)

    def hold() -> None:
        with app.lease_sync("nightly", seconds=1) as fence:
            assert lost.wait(20)
            assert fence.lost

    try:
        with pytest.raises(LeaseLost, match="could not be renewed"):
            hold()
    finally:
        logging.getLogger("rota").removeHandler(heard)
        app.stop_sync()


@pytest.mark.parametrize(("name", "seconds"), [("a b", 60), ("", 60), ("x" * 300, 60), ("ok", 0.5), ("ok", 1e9)])
async def test_odd_names_and_spans_are_refused(name: str, seconds: float) -> None:
    with pytest.raises(InvalidOptions, match="lease "):
        await Rota("memory://").lease(name, seconds=seconds).__aenter__()


def test_a_lease_is_renewed_in_a_simulation() -> None:
    app = Rota("memory://")
    seen: list[float] = []

    @app.task
    async def nightly() -> None:
        async with app.lease("nightly", seconds=60) as fence:
            await asyncio.sleep(3600)
            assert not fence.lost

    async def play(sim: Simulation) -> None:
        began = asyncio.get_running_loop().time()
        runs = [await nightly.submit() for _ in range(2)]
        for run in runs:
            await run.result()
        seen.append(asyncio.get_running_loop().time() - began)

    start = datetime(2026, 11, 16, tzinfo=UTC)
    simulate(app, start, start + timedelta(hours=3), scenario=play)
    assert 7200 <= seen[0] < 7210


def test_the_fence_of_a_run_that_replaces_a_cancelled_one_is_larger() -> None:
    assert leases.FENCES * 1_800_000_001 + 1 > leases.FENCES * 1_800_000_000 + 500_000
