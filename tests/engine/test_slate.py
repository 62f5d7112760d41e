"""What a worker tells the renewer: that it lives, what it has renewed, and what it has let go."""

import asyncio
import logging
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rota import Rota
from rota.app.core import core_of
from rota.domain.run import Lease
from rota.domain.tuning import Tuning
from rota.engine.heart import DRAIN_LEASE, Heart
from rota.engine.renewer import LOOKS
from rota.engine.seats import Seats
from rota.engine.slate import Slate
from rota.engine.world import World
from rota.stores import connect
from storekit.faults import FaultyBackend
from tests.engine.renewer_side import knowing, use_the_processor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the renewer judges its workers as Linux shows them")

HOURS = Tuning(lease=3600)


class Sleeper:
    """The heart of a worker with one run in hand, on a clock that the test moves. The event loop that the heart watches
    answers when the test says so."""

    def __init__(self, backend: FaultyBackend, seats: Seats, slate: Slate) -> None:
        self.now = time.monotonic()
        self.heart = Heart(backend, seats, HOURS, World(monotonic=lambda: self.now), slate)
        self.heart._main = self._loop = asyncio.new_event_loop()
        self._backend = backend

    async def beat(self, later: float = 0.0) -> None:
        self.now += later
        async with self._backend.open() as store:
            await self.heart._beat(store)

    async def answer(self) -> None:
        await asyncio.to_thread(self._loop.run_until_complete, asyncio.sleep(0))

    def close(self) -> None:
        self._loop.close()


@asynccontextmanager
async def sleeper(folder: Path, slate: Slate) -> AsyncGenerator[tuple[Sleeper, FaultyBackend, Lease]]:
    url = f"sqlite:///{folder}/rota.db"
    backend = FaultyBackend(connect(url))  # not the engine's, which has a heart of its own
    app = Rota(url, lease=HOURS.lease)
    started, go = asyncio.Event(), asyncio.Event()

    @app.task
    async def slow() -> None:
        started.set()
        await go.wait()

    async with app:
        await slow.submit()
        await started.wait()
        (lease,) = core_of(app).engine._seats.leases()
        found = Sleeper(backend, core_of(app).engine._seats, slate)
        try:
            yield found, backend, lease
        finally:
            found.close()
            go.set()


async def test_a_beat_without_a_renewal_does_not_count_as_one(tmp_path: Path) -> None:
    """The store is away for most of a lease. The heart beats all the while, then a call takes the interpreter."""
    slate = Slate(1)
    async with (
        sleeper(tmp_path, slate) as (worker, backend, lease),
        knowing(slate, "sqlite:///:memory:", HOURS) as client,
    ):
        ends = worker.now + HOURS.lease
        slate.take(lease, ends)
        backend.fail("renew", "request lost", times=2)
        for _ in range(2):
            await worker.beat(1200)
            await worker.answer()
        assert client.leases() == [(lease.run, lease.fence, ends)], "nothing was renewed"
        assert client.wanted(worker.now) == {lease.run: lease.fence}, "1200 s are left"
        await worker.beat()
        assert client.leases() == [(lease.run, lease.fence, worker.now + HOURS.lease)]


async def test_a_lease_that_came_after_a_renewal_began_is_not_covered_by_it(tmp_path: Path) -> None:
    slate = Slate(1)
    async with knowing(slate, "sqlite:///:memory:", HOURS) as client:
        began = time.monotonic()
        slate.take(Lease("late", 1, "me"), began + 10)
        slate.renewed(began)
        assert client.leases() == [("late", 1, began + 10)]


async def test_a_loop_that_owes_no_answer_is_not_silent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With a lease of an hour, beats are 20 minutes apart: longer than `silence`, which is 600 s."""
    slate = Slate(1)
    with caplog.at_level(logging.ERROR, "rota"):
        async with sleeper(tmp_path, slate) as (worker, backend, _):
            await worker.beat()
            await worker.answer()
            await worker.beat(1200)
            assert backend.calls.count("renew") == 2
        slate.close()
    assert not caplog.records


async def test_what_the_heart_has_let_go_the_renewer_lets_go(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An event loop that is silent for too long, beside a heart that beats: nobody renews until the loop answers."""
    slate = Slate(1)
    async with (
        sleeper(tmp_path, slate) as (worker, backend, lease),
        knowing(slate, "sqlite:///:memory:", HOURS) as client,
    ):
        await worker.beat()
        slate.take(lease, worker.now + 1300)
        await worker.beat(1200)
        assert "its leases are no longer renewed" in caplog.text
        assert backend.calls.count("renew") == 1
        assert client.wanted(worker.now) == {}
        await worker.answer()
        use_the_processor()
        assert client.wanted(worker.now + HOURS.lease / LOOKS) == {lease.run: lease.fence}


async def test_the_renewer_renews_for_less_once_the_worker_stops(tmp_path: Path) -> None:
    """A worker that is killed while it stops shall not keep its runs: neither by its heart nor by the renewer."""
    slate = Slate(1)
    async with (
        sleeper(tmp_path, slate) as (worker, _, lease),
        knowing(slate, "sqlite:///:memory:", HOURS) as client,
    ):
        slate.take(lease, worker.now + HOURS.lease)
        assert client.span == HOURS.lease
        worker.heart.drain()
        await worker.beat(1)
        assert client.leases() == [(lease.run, lease.fence, worker.now + DRAIN_LEASE)]
        assert client.wanted(worker.now) == {}, "ten seconds are left"
        use_the_processor()
        assert client.wanted(worker.now + 6) == {lease.run: lease.fence}, "four are"
        assert client.span == DRAIN_LEASE, "for so long it renews"
