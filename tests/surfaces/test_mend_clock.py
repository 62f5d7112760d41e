"""`rota doctor --mend-clock`: an SQLite store that a process with a wrong clock has used goes on at once."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rota.domain.policy import Rate
from rota.store import Store, WorkerSeen
from rota.stores.sqlite import SqliteBackend
from storekit.contract import Stage, new_run
from storekit.contract.stage import ids
from tests.surfaces.called import Called


async def used(store: Store) -> float:
    """Leave behind what a process can: runs that wait, runs in hand, a drawn rate, an idle worker."""
    stage = Stage(SqliteBackend("unused"), store)
    await stage.declare(rate=Rate(1, per=60), task="rated")
    await stage.put(new_run(id="held"), new_run("rated", id="first"))
    await stage.claim("gone", 2, tasks=["greet", "rated"])
    await stage.put(new_run(id="waits", delay=10), new_run("rated", id="second"))
    await stage.claim("idle", tasks=["other"])
    return await stage.now()


async def goes_on(path: Path, then: float) -> None:
    backend = SqliteBackend(path)
    async with backend.open() as store:
        stage = Stage(backend, store)
        assert await stage.now() < then - 1500
        seen = await store.rows(WorkerSeen)
        assert all(worker.seen_at <= seen.now for worker in seen.items)
        assert (await stage.claim("bob")).runs == [], "ten seconds are not over"
        stage.wait(11)
        assert ids((await stage.claim("bob")).runs) == ["waits"]
        stage.wait(61)
        assert ids((await stage.claim("bob", tasks=["rated"])).runs) == ["second"]
        stage.wait(600)
        assert {"first", "held"} <= set(ids((await stage.claim("cyd")).lapsed))


@pytest.mark.parametrize("ahead", [1800.0, 7200.0, 400 * 86_400.0])
def test_a_clock_that_was_ahead_is_mended(tmp_path: Path, rota: Called, ahead: float) -> None:
    then = rota.store(used, skew=ahead)
    assert "set back, 2 waiting runs and 2 leases brought back to now" in rota("doctor", "--mend-clock")
    asyncio.run(goes_on(tmp_path / "rota.db", then))


@pytest.mark.parametrize("row", ['{"name":"bad","enabled":null,"limit":{"total":0}}', "no json at all"])
def test_rows_that_cannot_be_read_do_not_stand_in_the_way(tmp_path: Path, rota: Called, row: str) -> None:
    then = rota.store(used, skew=7200)
    with closing(sqlite3.connect(tmp_path / "rota.db")) as connection, connection:
        connection.execute("INSERT INTO specs VALUES ('bad', ?)", (row,))
        connection.execute("INSERT INTO schedules VALUES ('bad', 'bad', ?, 0)", (row,))
    assert "set back, 2 waiting runs and 2 leases brought back to now" in rota("doctor", "--mend-clock")
    asyncio.run(goes_on(tmp_path / "rota.db", then))


def test_the_doctor_says_how_and_leaves_a_right_clock_alone(rota: Called) -> None:
    rota.store(lambda store: store.put([]), skew=1800)
    (clock,) = [check for check in rota.json("doctor") if check["check"] == "clock"]
    assert "30 m ahead of this host" in clock["detail"]
    assert "rota doctor --mend-clock" in clock["advice"]
    rota("doctor", "--mend-clock")
    assert "nothing to mend" in rota("doctor", "--mend-clock")
    (clock,) = [check for check in rota.json("doctor") if check["check"] == "clock"]
    assert clock["verdict"] == "ok"


def test_a_server_keeps_its_own_clock(rota: Called) -> None:
    rota.url = "redis://127.0.0.1:1"
    rota("doctor", "--mend-clock", code=2)
    assert "goes by the clock of its server" in rota.err
