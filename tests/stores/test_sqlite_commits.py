"""Who commits: the event loop a few puts that are brief, the writer thread everything else."""

import asyncio
import math
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from rota.domain import codec
from rota.domain.guards import Guards
from rota.domain.policy import Policy
from rota.domain.run import NewRun, Origin
from rota.errors import Unstorable
from rota.store import Reply, RunQuery, Store
from rota.stores.sqlite import SqliteBackend, threads

HERE, THREAD = "event loop", "thread"


class Watched(SqliteBackend):
    """A backend that notes which thread each commit is made on: a transaction begins with a look at the clock."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.committers: list[str] = []
        self._loop_thread = threading.get_ident()

    def _clock(self) -> float:
        self.committers.append(HERE if threading.get_ident() == self._loop_thread else THREAD)
        return super()._clock()


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    monkeypatch.setattr(threads, "BRIEF", math.inf)  # how fast this machine's disk is must not matter
    return Watched(tmp_path / "rota.db")


def new_run(id: str, payload: str = "", guards: Guards | None = None) -> NewRun:
    body = codec.encode(f'{{"x":"{payload}"}}'.encode(), Origin(), Policy())
    return NewRun(id=id, task="t", body=body, guards=guards or Guards())


async def ids(store: Store) -> list[str]:
    return sorted(run.id for run in (await store.runs(RunQuery(limit=1000))).runs)


async def test_a_lone_put_is_committed_by_the_event_loop(backend: Watched) -> None:
    async with backend.open() as store:
        for id in "abc":
            await store.put([new_run(id)])
        assert backend.committers == [HERE] * 3
        assert await ids(store) == ["a", "b", "c"]


async def test_a_few_puts_that_come_together_share_one_commit_of_the_event_loop(backend: Watched) -> None:
    async with backend.open() as store:
        names = [str(i) for i in range(threads.FEW)]
        replies = await asyncio.gather(*(store.put([new_run(name)]) for name in names))
        assert backend.committers == [HERE]
        assert [reply.items[0].run for reply in replies] == names
        assert await ids(store) == sorted(names)


async def test_one_put_that_fails_does_not_harm_those_that_came_with_it(backend: Watched) -> None:
    async with backend.open() as store:
        puts = [store.put([new_run(id)]) for id in ("a", "\ud800", "b")]
        found = await asyncio.gather(*puts, return_exceptions=True)
        assert [type(answer) for answer in found] == [Reply, Unstorable, Reply]
        assert await ids(store) == ["a", "b"]


async def test_many_puts_that_come_together_share_one_commit_of_the_thread(backend: Watched) -> None:
    async with backend.open() as store:
        await asyncio.gather(*(store.put([new_run(str(i))]) for i in range(50)))
        assert THREAD in backend.committers
        assert HERE not in backend.committers
        assert len(backend.committers) < 50
        assert len(await ids(store)) == 50


@pytest.mark.parametrize(
    "runs",
    [
        [new_run("a"), new_run("b")],
        [new_run("a", "x" * 20_000)],
        [new_run("a", guards=Guards(max_pending=5))],
    ],
    ids=["many", "long", "counting"],
)
async def test_a_put_that_may_take_longer_is_left_to_the_thread(backend: Watched, runs: list[NewRun]) -> None:
    async with backend.open() as store:
        await store.put(runs)
        assert backend.committers == [THREAD]


async def test_on_a_slow_disk_the_thread_commits(backend: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "BRIEF", 0.0)
    async with backend.open() as store:
        await store.put([new_run("a")])
        assert backend.committers == [THREAD]


async def test_the_thread_gets_its_turn_to_move_the_log_into_the_file(backend: Watched) -> None:
    async with backend.open() as store:
        for i in range(2 * threads.IN_A_ROW + 2):
            await store.put([new_run(str(i))])
        assert backend.committers == ([HERE] * threads.IN_A_ROW + [THREAD]) * 2


async def test_the_log_does_not_grow_with_lone_puts(backend: Watched, tmp_path: Path) -> None:
    """An open log has about 1,000 pages before it is moved into the file, and then begins anew."""
    async with backend.open() as store:
        for i in range(1000):
            await store.put([new_run(str(i))])
        assert (tmp_path / "rota.db-wal").stat().st_size < 4096 * 2000


async def test_a_put_that_finds_the_file_locked_does_not_block_the_event_loop(backend: Watched) -> None:
    async with backend.open() as store:
        with closing(sqlite3.connect(backend.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            put = asyncio.create_task(store.put([new_run("a")]))
            for _ in range(5):
                await asyncio.sleep(0)
            assert not put.done()
            other.execute("COMMIT")
        await put
        assert backend.committers[0] == THREAD
        assert await ids(store) == ["a"]


async def test_a_put_that_fails_on_the_event_loop_says_so_and_the_next_one_succeeds(backend: Watched) -> None:
    async with backend.open() as store:
        with pytest.raises(ValueError, match="surrogates"):
            await store.put([new_run("\ud800")])
        await store.put([new_run("b")])
        assert await ids(store) == ["b"]


async def test_a_put_under_way_is_done_before_the_store_is_closed(backend: Watched) -> None:
    async with backend.open() as store:
        put = asyncio.create_task(store.put([new_run("a")]))
        await asyncio.sleep(0)
    assert (await put).items[0].run == "a"
    async with backend.open() as store:
        assert await ids(store) == ["a"]


async def test_a_process_whose_clock_is_ahead_writes_every_time_that_it_has_seen(tmp_path: Path) -> None:
    """Times that the clock of the machine has reached are written now and then; other processes read the same clock."""
    ahead, other = SqliteBackend(tmp_path / "rota.db"), SqliteBackend(tmp_path / "rota.db")
    ahead.skew = 10.0
    async with ahead.open() as one, other.open() as two:
        for i in range(5):
            seen = (await one.put([new_run(f"a{i}")])).now
            assert (await two.put([new_run(f"b{i}")])).now >= seen
