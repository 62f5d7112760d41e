"""Endings that the store does not take at once: none is lost, none starves, and their runs do not start again."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from rota import Rota, StoreCorrupt, StoreUnavailable, Unstorable
from rota.domain.lifecycle import Succeeded, settlement_of
from rota.domain.run import Lease, Note, State
from rota.domain.settlement import Settlement
from rota.engine.seats import Seats
from rota.engine.settler import Settler
from rota.store import ClaimRequest, Renewal, Reply, RunQuery, Store
from rota.stores.memory import MemoryBackend
from storekit.contract import new_run
from storekit.faults import FaultyBackend

PATIENCE = 10.0


async def twice(n: int) -> int:
    return 2 * n


class Choosy:
    """A memory store that does not take the endings of some runs, and tells of refusals and renewals."""

    def __init__(self) -> None:
        self._backend = MemoryBackend()
        self.url, self.poll = self._backend.url, self._backend.poll
        self.submits_within = None
        self.errors: dict[str, Exception] = {}
        """By run: what a settle of a batch with its ending raises. A rescuer's word that it is lost is taken."""
        self.refusals = asyncio.Semaphore(0)
        self.renewed: dict[str, threading.Semaphore] = {}
        self.hold: asyncio.Event | None = None
        """A settle waits for this event before it is carried out."""

    @property
    def skew(self) -> float:
        return self._backend.skew

    @skew.setter
    def skew(self, seconds: float) -> None:
        self._backend.skew = seconds

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Store]:
        async with self._backend.open() as store:
            yield cast(Store, ChoosyStore(store, self))


class ChoosyStore:
    def __init__(self, store: Store, backend: Choosy) -> None:
        self._store = store
        self._backend = backend

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._store, verb)

    async def settle(self, settlements: Sequence[Settlement]) -> Reply[Any]:
        for settlement in settlements:
            if settlement.run in self._backend.errors and not settlement.lost:
                self._backend.refusals.release()
                raise self._backend.errors[settlement.run]
        if self._backend.hold is not None:
            self._backend.refusals.release()
            await self._backend.hold.wait()
        return await self._store.settle(settlements)

    async def renew(self, leases: Sequence[Lease], seconds: float, notes: Mapping[str, Note]) -> Reply[Renewal]:
        reply = await self._store.renew(leases, seconds, notes)
        for lease in leases:
            if lease.run in self._backend.renewed:
                self._backend.renewed[lease.run].release()
        return reply


async def refused(backend: Choosy, times: int) -> None:
    async with asyncio.timeout(PATIENCE):
        for _ in range(times):
            await backend.refusals.acquire()


@pytest.mark.parametrize("error", [RuntimeError("a bug"), StoreCorrupt("an odd row")])
async def test_an_ending_that_was_set_aside_is_recorded_while_others_keep_coming(error: Exception) -> None:
    backend = Choosy()
    app = Rota(backend, concurrency=2)
    double = app.task(twice)
    first = await double.submit(1)
    backend.errors[first.id] = error
    async with app:
        await refused(backend, 2)  # in its batch, and alone
        assert await (await double.submit(2)).result(timeout=PATIENCE) == 4, "it holds up nobody"
        backend.errors.clear()
        async with asyncio.timeout(PATIENCE):
            while not (await first.refresh()).state.final:
                await (await double.submit(3)).result()
        run = await first.refresh()
        assert (run.state, run.fence) == (State.SUCCEEDED, 1)


async def test_a_store_that_is_away_while_endings_are_sent_alone_sets_none_aside(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One ending cannot be written, so its neighbours are sent alone: that the store is away says nothing of them."""
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)
    double = app.task(twice)
    handles = await app.submit_many([double.bind(n) for n in range(3)])
    backend.fail("settle", Unstorable("not this batch"))
    backend.fail("settle", Unstorable("not this one"))  # the first of the batch
    backend.fail("settle", StoreUnavailable("away"))
    async with app:
        assert [await handle.result(timeout=PATIENCE) for handle in handles[1:]] == [2, 4]
    assert "next try in" in caplog.text
    assert "cannot record its ending" not in caplog.text


async def test_the_lease_of_an_ending_is_renewed_until_the_store_has_taken_the_ending() -> None:
    backend = Choosy()
    app = Rota(backend, lease=1)
    double = app.task(twice)
    run = await double.submit(1)
    backend.errors[run.id] = StoreUnavailable("away")
    async with app:
        await refused(backend, 1)
        renewals = backend.renewed[run.id] = threading.Semaphore(0)
        for _ in range(2):
            assert await asyncio.to_thread(renewals.acquire, timeout=PATIENCE), "its lease is not renewed"
        backend.errors.clear()
        assert await run.result(timeout=PATIENCE) == 2
        assert (await run.refresh()).fence == 1


async def test_a_worker_does_not_rescue_a_run_whose_ending_it_holds() -> None:
    """The lease has lapsed, as after a freeze, and the ending waits: the run succeeded, and is not lost."""
    backend = Choosy()
    app = Rota(backend, lease=10)
    double = app.task(twice)
    first = await double.submit(1)
    backend.errors[first.id] = RuntimeError("a bug")
    async with app:
        await refused(backend, 2)
        backend.skew += 11
        assert await (await double.submit(2)).result(timeout=PATIENCE) == 4
        await refused(backend, 1)
        backend.errors.clear()
        assert await first.result(timeout=PATIENCE) == 2
        run = await first.refresh()
        assert (run.losses, run.fence) == (0, 1)


async def test_an_ending_that_never_comes_through_does_not_stop_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims wait while many endings are not recorded; they do not wait for the last of them."""
    monkeypatch.setattr("rota.engine.worker.BACKLOG", 1)
    backend = Choosy()
    app = Rota(backend, concurrency=1)
    double = app.task(twice)
    first, second = await app.submit_many([double.bind(n) for n in (1, 2)])
    backend.errors = {first.id: RuntimeError("a bug"), second.id: RuntimeError("a bug")}
    async with app:
        await refused(backend, 4)  # two endings for one seat: no claim
        third = await double.submit(3)
        del backend.errors[second.id]
        assert await third.result(timeout=PATIENCE) == 6
        backend.errors.clear()
        assert await first.result(timeout=PATIENCE) == 2


async def test_a_settler_that_is_cancelled_keeps_the_ending_that_is_under_way() -> None:
    backend = Choosy()
    async with backend.open() as store:
        await store.put([new := new_run()])
        (run,) = (await store.claim(ClaimRequest("ada", 1, ["greet"], 1, 30))).runs
        backend.errors[run.id] = RuntimeError("a bug")
        seats = Seats("ada", 1)
        settler = Settler(store, seats, lambda endings, now: None, lambda: None)
        first = asyncio.create_task(settler.run())
        settler.settle(settlement_of(run, Succeeded()), run)
        await refused(backend, 2)
        backend.errors.clear()
        backend.hold = asyncio.Event()
        await refused(backend, 1)  # it is due again, and sent
        first.cancel()
        await asyncio.wait((first,))
        assert (settler.backlog, seats.unsettled()) == (1, [run.lease])
        backend.hold = None
        second = asyncio.create_task(settler.run())
        async with asyncio.timeout(PATIENCE):
            await settler.flush()
        second.cancel()
        await asyncio.wait((second,))
        page = await store.runs(RunQuery(ids=[new.id]))
        assert page.runs[0].state is State.SUCCEEDED
        assert seats.unsettled() == []
