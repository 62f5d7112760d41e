"""A claim reads no more shares than it fills seats: what it does is counted while few and while many shares wait."""

import sqlite3
import sys
from pathlib import Path
from types import FrameType

from rota.domain.policy import Share
from rota.domain.spec import TaskSpec
from rota.store import ClaimRequest, Store
from rota.stores import connect
from rota.stores.memory import MemoryBackend
from rota.stores.postgres import PostgresBackend
from rota.stores.sqlite.statements import LANES, NEXT_SHARE
from storekit.contract import new_run
from storekit.contract.stage import GREET
from storekit.servers import RedisServer, valkey_of_wheel
from tests.stores.redis_stages import at
from tests.stores.test_postgres_floors import analyze, read_entries
from tests.stores.test_sqlite_lanes import instructions

FEW, MANY, SEATS = 20, 600, 4
NOISE = 1.3


async def wait_in_shares(store: Store, shares: int) -> None:
    await store.declare([TaskSpec(GREET, share=Share("{tenant}"))])
    await store.put([new_run(share=f"tenant {n:04}") for n in range(shares)])


def claim(n: int) -> ClaimRequest:
    return ClaimRequest("ada", n, [GREET], SEATS, 30)


async def test_memory() -> None:
    async def count(shares: int) -> int:
        calls = 0

        def heard(frame: FrameType, event: str, argument: object) -> None:
            nonlocal calls
            calls += event == "call"

        async with MemoryBackend().open() as store:
            await wait_in_shares(store, shares)
            await store.claim(claim(1))
            sys.setprofile(heard)
            try:
                runs = (await store.claim(claim(2))).runs
            finally:
                sys.setprofile(None)
            assert [run.share for run in runs] == [f"tenant {n:04}" for n in range(SEATS, 2 * SEATS)]
            return calls

    assert await count(MANY) <= NOISE * await count(FEW)


async def test_sqlite(tmp_path: Path) -> None:
    """The claim asks once for the lanes and once for each share that it needs."""

    async def count(shares: int) -> tuple[int, int]:
        file = tmp_path / f"{shares}.db"
        async with connect(f"sqlite:///{file}").open() as store:
            await wait_in_shares(store, shares)
            assert len((await store.claim(claim(1))).runs) == SEATS
            now = sqlite3.connect(file).execute("SELECT max(due_at) FROM runs").fetchone()[0]
            share = instructions(file, NEXT_SHARE, GREET, "", 0, now, "tenant 0010")
            return instructions(file, LANES, f'["{GREET}"]', "[]"), share

    (few_lanes, few_share), (many_lanes, many_share) = await count(FEW), await count(MANY)
    assert few_share > 0
    assert many_lanes <= NOISE * few_lanes
    assert many_share <= NOISE * few_share


async def test_redis() -> None:
    async def count(url: str, shares: int) -> int:
        async with at(url, f"n{shares}").open() as store:
            await wait_in_shares(store, shares)
            await store.claim(claim(1))
            before = commands(server)
            assert len((await store.claim(claim(2))).runs) == SEATS
            return commands(server) - before

    with RedisServer(valkey_of_wheel()) as server:
        assert await count(server.url, MANY) <= NOISE * await count(server.url, FEW)


def commands(server: RedisServer) -> int:
    stats = server.info("commandstats").items()
    return sum(int(text.split("calls=")[1].split(",")[0]) for name, text in stats if "info" not in name)


async def test_postgres(postgres_backend: PostgresBackend) -> None:
    """Counted in entries that are read from all indexes."""

    async def count(shares: int) -> int:
        async with postgres_backend.open() as store:
            await wait_in_shares(store, shares)
        await analyze(postgres_backend)
        before = await read_entries(postgres_backend)
        async with postgres_backend.open() as store:
            for n in range(1, 4):
                assert len((await store.claim(ClaimRequest(f"of {shares}", n, [GREET], SEATS, 30))).runs) == SEATS
        return sum((await read_entries(postgres_backend)).values()) - sum(before.values())

    few, many = await count(FEW), await count(MANY)
    assert 0 < many <= NOISE * few, (few, many)
