"""Connections that the server ends: verbs are sent again, and no success is recorded as anything else."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from rota import Rota, StoreCorrupt, StoreError, StoreUnavailable, Unstorable
from rota.domain.lifecycle import Succeeded, settlement_of
from rota.domain.run import State
from rota.store import ClaimRequest, RunQuery
from rota.stores.postgres import PostgresBackend
from rota.stores.postgres.driver import CALL_PATIENCE, Fault, explain, fault_of
from storekit.contract import new_run
from storekit.proxy import FaultProxy
from storekit.servers import PostgresServer, postgres_of_wheel

CUTS = 40
BETWEEN = 5
"""Calls of the handler between two cuts."""
END_ONE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
ORDER BY random() LIMIT 2
"""
END_ALL = END_ONE.replace("LIMIT 2", "")


@pytest.fixture(scope="module")
def server(postgres_templates: Path) -> Iterator[PostgresServer]:
    """A server of these tests alone: its connections are ended."""
    programs = postgres_of_wheel()
    with PostgresServer(programs, template=postgres_templates / f"postgres-{programs.version}") as server:
        yield server


@pytest.fixture
async def killer(server: PostgresServer) -> AsyncIterator[asyncpg.Connection]:
    """A connection that ends others; it is closed whatever becomes of the test."""
    connection = await asyncpg.connect(server.url)
    yield connection
    await connection.close()


INSIDE = "PL/pgSQL function settle(text) line 7 at PERFORM"
"""Where an error was raised, as the server says of one inside a function."""


def sent(sqlstate: str, message: str = "said the server", where: str = "") -> asyncpg.PostgresError:
    """An error as asyncpg makes it of what the server sent."""
    error = asyncpg.PostgresError.new({"S": "ERROR", "C": sqlstate, "M": message} | ({"W": where} if where else {}))
    assert isinstance(error, asyncpg.PostgresError)
    return error


@pytest.mark.parametrize(
    ("error", "fault", "explained", "passing"),
    [
        (sent("22021"), Fault.BAD_VALUE, Unstorable, None),  # a NUL, or no UTF-8
        (sent("22P05"), Fault.BAD_VALUE, Unstorable, None),
        (sent("22003"), Fault.BAD_VALUE, Unstorable, None),  # a number out of range
        (sent("54000"), Fault.BAD_VALUE, Unstorable, None),  # too large for an index
        (sent("22021", where="unnamed portal parameter $8"), Fault.BAD_VALUE, Unstorable, None),
        (sent("22P02", where=INSIDE), Fault.BAD_ROW, StoreCorrupt, None),  # perhaps the JSON of another row
        (sent("22023", where=INSIDE), Fault.BAD_ROW, StoreCorrupt, None),
        (sent("54000", where=INSIDE), Fault.BAD_ROW, StoreCorrupt, None),
        (asyncpg.DataError("invalid input for query argument $1"), Fault.BAD_VALUE, Unstorable, None),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "a surrogate"), Fault.BAD_VALUE, Unstorable, None),
        (sent("40001"), Fault.ROLLED_BACK, StoreUnavailable, True),
        (sent("40P01"), Fault.ROLLED_BACK, StoreUnavailable, True),
        (sent("42883"), Fault.ROLLED_BACK, StoreCorrupt, None),
        (sent("42P01"), Fault.REFUSED, StoreCorrupt, None),
        (sent("42501"), Fault.REFUSED, StoreUnavailable, False),
        (sent("28P01"), Fault.REFUSED, StoreUnavailable, False),
        (sent("53100"), Fault.REFUSED, StoreUnavailable, False),
        (sent("53300"), Fault.AWAY, StoreUnavailable, True),  # too many connections
        (sent("57P01"), Fault.AWAY, StoreUnavailable, True),  # ended by an administrator
        (sent("57P03"), Fault.AWAY, StoreUnavailable, True),  # still starting
        (sent("08006"), Fault.AWAY, StoreUnavailable, True),
        (sent("25006"), Fault.AWAY, StoreUnavailable, True),  # a standby
        (sent("0A000", "cached plan must not change result type"), Fault.AWAY, StoreUnavailable, True),
        (sent("P0001"), Fault.AWAY, StoreUnavailable, True),
        (
            asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"),
            Fault.AWAY,
            StoreUnavailable,
            True,
        ),
        (asyncpg.InterfaceError("connection is closed"), Fault.AWAY, StoreUnavailable, True),
        (ConnectionResetError(), Fault.AWAY, StoreUnavailable, True),
        (asyncio.IncompleteReadError(b"", 1), Fault.AWAY, StoreUnavailable, True),
        (TimeoutError(), Fault.AWAY, StoreUnavailable, True),
        (AttributeError("'NoneType' object has no attribute 'decode'"), Fault.AWAY, StoreUnavailable, True),
    ],
    ids=lambda value: getattr(value, "sqlstate", None) or type(value).__name__,
)
def test_only_a_proven_bad_value_is_called_one(
    error: Exception, fault: Fault, explained: type[StoreError], passing: bool | None
) -> None:
    said = explain(error, "postgresql://host/db")
    assert fault_of(error) is fault
    assert type(said) is explained
    assert getattr(said, "passing", None) is passing


@pytest.mark.timeout(120)
async def test_ended_connections_under_load_cost_no_run_its_success(
    server: PostgresServer, killer: asyncpg.Connection
) -> None:
    app = Rota(server.url, concurrency=20)
    calls = 0
    called = asyncio.Condition()
    acknowledged: list[str] = []
    stopping = False

    @app.task
    async def double(n: int) -> int:
        nonlocal calls
        async with called:
            calls += 1
            called.notify_all()
        return 2 * n

    async def submit(first: int) -> None:
        n = first
        while not stopping:
            acknowledged.append((await double.submit(n)).id)
            n += 1

    async with app:
        async with asyncio.TaskGroup() as group:
            for place in range(3):
                group.create_task(submit(place * 1_000_000))
            ended = 0
            while ended < CUTS:
                async with called:
                    so_far = calls
                    await called.wait_for(lambda so_far=so_far: calls >= so_far + BETWEEN)  # type: ignore[misc]
                ended += len(await killer.fetch(END_ONE))  # there may be none just now: all are being opened again
            stopping = True
        for id in acknowledged:
            assert (await app.client().ended(id, timeout=60)).state is State.SUCCEEDED
        runs = (await (await app.client().store()).runs(RunQuery(limit=1_000_000))).runs
    assert {run.id for run in runs} >= set(acknowledged)
    assert {(run.state, run.fence) for run in runs} == {(State.SUCCEEDED, 1)}
    assert calls == len(runs)


async def test_idle_connections_that_were_ended_are_not_used_again(
    server: PostgresServer, killer: asyncpg.Connection
) -> None:
    """All the connections of the pool are ended at once: a verb may meet one of them, and none a second time."""
    async with PostgresBackend.from_url(server.url).open() as store:
        for _ in range(10):
            news = [new_run() for _ in range(8)]
            await asyncio.gather(*(store.put([new]) for new in news))
            assert await killer.fetch(END_ALL)
            claim = await store.claim(ClaimRequest("ada", 1, ["greet"], 100, 30))
            assert sorted(run.id for run in claim.runs) == sorted(new.id for new in news)
            assert await killer.fetch(END_ALL)
            await store.settle([settlement_of(run, Succeeded()) for run in claim.runs])
            await killer.execute("DELETE FROM rota.workers; DELETE FROM rota.worker_states")


async def test_a_value_that_cannot_be_stored_fails_its_own_batch_only(server: PostgresServer) -> None:
    async with PostgresBackend.from_url(server.url).open() as store:
        good, bad = new_run(), new_run(key="a\x00b")
        first, *answers = await asyncio.gather(
            *(store.put([new]) for new in (new_run(), good, bad, new_run())), return_exceptions=True
        )
        assert isinstance(answers[1], Unstorable)
        assert not any(isinstance(answer, BaseException) for answer in (first, answers[0], answers[2]))


async def test_a_verb_and_its_resends_share_one_patience(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that does not answer, and then cuts the connection: the resend has only what is left of the time."""
    monkeypatch.setattr("rota.stores.postgres.pool.CALL_PATIENCE", 0.5)
    listen = server.folder / ".s.PGSQL.6001"
    async with (
        FaultProxy(server.address, listen) as proxy,
        PostgresBackend.from_url(server.url_at(proxy.address)).open() as store,
    ):
        await store.put([new_run()])
        proxy.black_hole()
        began = asyncio.get_running_loop().time()
        with pytest.raises(StoreUnavailable):
            await store.put([new_run()])
        assert asyncio.get_running_loop().time() - began < CALL_PATIENCE, "not the patience of a single send"
        proxy.heal()


async def test_the_wait_for_a_free_line_is_part_of_the_patience_of_a_verb(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The only line is held by a verb that the server does not answer: another verb does not wait for that one's end,
    and is not sent after its own deadline."""
    listen = server.folder / ".s.PGSQL.6002"
    async with (
        FaultProxy(server.address, listen) as proxy,
        PostgresBackend.from_url(server.url_at(proxy.address) + "&max_connections=1").open() as store,
    ):
        await store.put([new_run()])
        proxy.black_hole()
        holds = asyncio.create_task(store.runs(RunQuery(ids=[])))
        await asyncio.sleep(0)  # it has begun, with the patience of a verb
        monkeypatch.setattr("rota.stores.postgres.pool.CALL_PATIENCE", 0.5)
        accepted = proxy.accepted
        with pytest.raises(StoreUnavailable, match="has not answered"):
            await store.put([new_run()])
        assert not holds.done()
        assert proxy.accepted == accepted, "nothing was sent, on any connection"
        holds.cancel()
        await asyncio.wait((holds,))
        proxy.heal()
