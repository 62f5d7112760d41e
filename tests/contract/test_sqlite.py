"""The SQLite store keeps the contract, also between processes."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rota.domain.policy import Rate
from rota.domain.run import State
from rota.store import Backend, ClaimRequest, Retention
from rota.stores.sqlite import SqliteBackend
from storekit.contract import Stage, StoreContract, new_run


class TestSqlite(StoreContract):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Backend:
        return SqliteBackend(tmp_path / "rota.db")


async def test_rates_that_hold_up_nobody_are_forgotten(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "rota.db")
    async with backend.open() as store:
        stage = Stage(backend, store)
        await stage.declare(rate=Rate(1, per=60, per_key=True))
        await stage.put(*(new_run(key=f"k{i}") for i in range(5)))
        assert len((await stage.claim(free=9)).runs) == 5
        counts: list[int] = []
        for _ in range(2):
            await store.sweep(Retention())
            with closing(sqlite3.connect(backend.path)) as file:
                counts += file.execute("SELECT count(*) FROM rates").fetchone()
            stage.wait(61)
        assert counts == [5, 0]


class TestTwoBackendsOfOneFile:
    """As two processes have them: nothing is shared but the file."""

    async def test_a_hint_finds_its_way_through_the_file(self, tmp_path: Path) -> None:
        here, there = SqliteBackend(tmp_path / "rota.db"), SqliteBackend(tmp_path / "rota.db")
        async with here.open() as near, there.open() as far:
            await near.claim(ClaimRequest("ada", 1, ["greet"], 1, 30))
            run = new_run("other")
            await far.put([run])
            await near.claim(ClaimRequest("bob", 1, ["other"], 1, 30))
            async with near.changes() as hints:
                await far.put([new_run()])
                async for hint in hints:
                    if "ada" in hint.workers:
                        break
                await Stage(there, far).cancel(run)
                async for hint in hints:
                    if run.id in hint.runs:
                        break

    async def test_the_clock_never_goes_back_between_them(self, tmp_path: Path) -> None:
        here, there = SqliteBackend(tmp_path / "rota.db"), SqliteBackend(tmp_path / "rota.db")
        here.skew = 1000
        async with here.open() as near, there.open() as far:
            ahead = (await near.put([])).now
            assert (await far.put([])).now >= ahead
            assert (await far.depths()).now >= ahead

    async def test_what_was_put_is_there_after_everything_was_closed(self, tmp_path: Path) -> None:
        new = new_run()
        async with SqliteBackend(tmp_path / "rota.db").open() as store:
            await store.put([new])
        backend = SqliteBackend(tmp_path / "rota.db")
        async with backend.open() as store:
            assert (await Stage(backend, store).see(new)).state is State.QUEUED
