"""A lone run that finds a ready worker on PostgreSQL is leased to it by the put itself: no claim comes between."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from rota import Rota, State
from rota.domain.lifecycle import Succeeded
from rota.domain.policy import Limit
from rota.domain.run import NewRun
from rota.domain.settlement import Verdict
from rota.store import EventQuery, Handed, Hint
from rota.stores.postgres import PostgresBackend
from storekit.contract import Stage, new_run
from storekit.contract.stage import LEASE
from storekit.faults import FaultyBackend

OPEN = "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE $1"
CHANGED = "SELECT n_tup_ins, n_tup_upd FROM pg_stat_user_tables WHERE relname = 'leases' AND schemaname = $1"
STATES = "SELECT DISTINCT ON (name) name, idle, token, handed FROM worker_states ORDER BY name, version DESC"


@asynccontextmanager
async def outside(backend: PostgresBackend) -> AsyncIterator[Stage]:
    """Another process, which puts runs."""
    other = PostgresBackend.from_url(backend.address.dsn + f"&schema={backend.address.schema}")
    async with other.open() as store:
        yield Stage(other, store)


async def handed_by(hints: AsyncIterator[Hint]) -> Handed:
    async with asyncio.timeout(30):
        while True:
            if isinstance(hint := await anext(hints), Handed):
                return hint


async def states(beside: asyncpg.Connection) -> dict[str, tuple[int, bool, str | None]]:
    """Of each worker: whether it is idle, whether it is ready, and which run it was handed."""
    rows = await beside.fetch(STATES)
    return {row["name"]: (row["idle"], row["token"] is not None, row["handed"]) for row in rows}


@pytest.mark.parametrize(
    "new",
    [
        new_run(),
        new_run(key="k", args=b'{"name":"\xc3\xa4 \\" \\u0001"}', priority=-3),
        new_run(key="k", unique="queued", expires_at=4e9, queue="mail", share="acme"),
    ],
    ids=["plain", "keyed", "unique"],
)
async def test_a_lone_due_run_is_handed_over(stage: Stage, postgres_backend: PostgresBackend, new: NewRun) -> None:
    async with outside(postgres_backend) as other, stage.store.changes() as hints:
        await stage.claim("ada", ready=True)
        await other.put(new)
        handed = await handed_by(hints)
        assert handed.run == await stage.see(new)
        assert repr(handed.run) == repr(await stage.see(new)), "also the types of its values are the same"
        assert handed.run.state is State.RUNNING
        assert (await stage.claim("ada", took=new.id)).runs == []
        assert (await stage.see(new)).until == pytest.approx(await stage.now() + LEASE, abs=10)
        assert await stage.end(handed.run, Succeeded(b"1")) is Verdict.APPLIED


@pytest.mark.parametrize("case", ["two at once", "not yet due", "limited", "unknown to it", "too large"])
async def test_what_must_be_weighed_is_left_to_a_claim(
    stage: Stage, postgres_backend: PostgresBackend, beside: asyncpg.Connection, case: str
) -> None:
    await stage.declare(limit=Limit(5), task="other")
    news = {
        "two at once": [new_run(), new_run()],
        "not yet due": [new_run(delay=60)],
        "limited": [new_run("other")],
        "unknown to it": [new_run("third")],
        "too large": [new_run(args=b'"' + b"x" * 4000 + b'"')],
    }[case]
    async with outside(postgres_backend) as other, stage.store.changes():
        await stage.claim("ada", tasks=["greet", "other"], ready=True)
        await other.put(*news)
        assert [run.state for run in await stage.find(*news)] == [State.QUEUED] * len(news)
        assert (await states(beside))["ada"] == (1 if case == "unknown to it" else 2, True, None)


async def test_a_run_behind_another_due_run_is_left_to_a_claim(
    stage: Stage, postgres_backend: PostgresBackend, beside: asyncpg.Connection
) -> None:
    async with outside(postgres_backend) as other, stage.store.changes():
        await other.put(first := new_run(delay=1))
        await stage.claim("ada", ready=True)
        other.wait(2)
        stage.wait(2)
        await beside.execute("UPDATE worker_states SET wake_at = NULL")  # as if a claim had not seen that put
        await other.put(second := new_run())
        assert [run.id for run in (await stage.claim("ada", free=2)).runs] == [first.id, second.id]
        assert (await stage.see(second)).fence == 1


async def test_a_worker_with_a_second_seat_is_hinted_for_more(
    stage: Stage, postgres_backend: PostgresBackend, beside: asyncpg.Connection
) -> None:
    async with outside(postgres_backend) as other, stage.store.changes():
        await stage.claim("ada", free=2, ready=True)
        await stage.claim("bob", tasks=["other"], ready=True)
        first, second, third = new_run(), new_run(), new_run("other")
        await other.put(first)
        assert (await states(beside))["ada"] == (1, False, first.id)
        await other.put(second)
        assert (await states(beside))["ada"] == (2, False, first.id)
        await other.put(third)
        assert (await states(beside))["bob"] == (0, False, third.id), "it has one seat"
        assert [run.id for run in (await stage.claim("ada", free=2)).runs] == [first.id, second.id]


async def test_a_worker_whose_connection_is_gone_is_handed_nothing(
    stage: Stage, postgres_backend: PostgresBackend, beside: asyncpg.Connection
) -> None:
    async with outside(postgres_backend) as other, other.store.changes():
        await other.claim("ada", ready=True)
        ear = await beside.fetchval("SELECT ear FROM worker_states WHERE name = 'ada' ORDER BY version DESC LIMIT 1")
        await beside.fetchval("SELECT pg_terminate_backend($1, 30000)", ear)
        await stage.put(new := new_run())
        assert [run.id for run in (await stage.claim("bob")).runs] == [new.id], "it waits for no lease"


async def test_nothing_is_handed_over_while_the_store_is_frozen(
    stage: Stage, postgres_backend: PostgresBackend
) -> None:
    async with outside(postgres_backend) as other, stage.store.changes():
        await stage.claim("ada", ready=True)
        await other.store.freeze(True)
        await other.put(new := new_run())
        assert (await stage.see(new)).state is State.QUEUED


@pytest.mark.parametrize("said", [{}, {"unique": "queued", "key": "k"}], ids=["plain", "unique"])
async def test_events_tell_that_it_was_queued_and_started(
    stage: Stage, postgres_backend: PostgresBackend, said: dict[str, Any]
) -> None:
    async with outside(postgres_backend) as other, stage.store.changes():
        begin = await stage.store.events(EventQuery())
        await stage.claim("ada", ready=True)
        await other.put(new := new_run(**said))
        assert (await stage.claim("ada", took=new.id)).runs == []
        await stage.end(await stage.see(new), Succeeded())
        page = await stage.store.events(EventQuery(after=begin.cursor))
    assert [event.name for event in page.events if event.id == new.id] == ["queued", "started", "succeeded"]


async def changed(beside: asyncpg.Connection, backend: PostgresBackend) -> tuple[int, int]:
    """How many leases were inserted and updated. A connection reports when it ends, so their ends are waited for."""
    async with asyncio.timeout(60):
        while await beside.fetchval(OPEN, f"%{backend.address.schema}%"):
            pass
    row = await beside.fetchrow(CHANGED, backend.address.schema)
    assert row is not None
    return row["n_tup_ins"], row["n_tup_upd"]


def idle_app(backend: FaultyBackend | PostgresBackend, done: list[int]) -> Rota:
    app = Rota(backend)

    @app.task(name="note")
    async def note(number: int) -> None:
        done.append(number)

    return app


async def is_ready(beside: asyncpg.Connection) -> None:
    """Returns when a worker has said that it is ready."""
    async with asyncio.timeout(60):
        while not any(idle == 1 and ready for idle, ready, _ in (await states(beside)).values()):
            pass


async def test_a_handed_run_starts_though_no_claim_gets_through(
    postgres_backend: PostgresBackend, beside: asyncpg.Connection
) -> None:
    backend, done = FaultyBackend(postgres_backend), list[int]()
    other = PostgresBackend.from_url(postgres_backend.address.dsn + f"&schema={postgres_backend.address.schema}")
    app, sender = idle_app(backend, done), idle_app(other, [])
    async with sender.client(), app:
        await is_ready(beside)
        backend.fail("claim", "request lost", times=1_000_000)
        handle = await sender.tasks["note"].submit(7)
        await handle.result(timeout=30)
        assert done == [7]
        backend.heal()


async def test_a_message_that_no_claim_asked_for_starts_nothing(
    postgres_backend: PostgresBackend, beside: asyncpg.Connection
) -> None:
    done, heard = list[int](), list[tuple[str, str]]()
    app = idle_app(postgres_backend, done)
    async with app:
        await is_ready(beside)
        ear = await beside.fetchval(
            "SELECT ear FROM worker_states WHERE token IS NOT NULL ORDER BY version DESC LIMIT 1"
        )
        arrived = asyncio.Event()

        def hear(_connection: object, _pid: int, channel: str, payload: object) -> None:
            heard.append((channel, str(payload)))
            arrived.set()

        await beside.add_listener(f"rota.ear.{ear}", hear)
        await (await app.tasks["note"].submit(41)).result(timeout=30)
        await arrived.wait()
        await is_ready(beside)
        (channel, message), *_ = heard
        for forged in (message.replace("3431", "3939"), message, "junk", "[]", "{}", '{"worker":1}'):
            await beside.execute("SELECT pg_notify($1, $2)", channel, forged)
        await (await app.tasks["note"].submit(42)).result(timeout=30)
    assert done == [41, 42]


async def test_lost_replies_and_handed_runs_together_run_each_once(
    postgres_backend: PostgresBackend, beside: asyncpg.Connection
) -> None:
    url = postgres_backend.address.dsn + f"&schema={postgres_backend.address.schema}"
    backends = [FaultyBackend(PostgresBackend.from_url(url)) for _ in range(3)]
    done = list[int]()
    apps = [idle_app(backend, done) for backend in backends]
    sender = idle_app(PostgresBackend.from_url(url), [])
    async with sender.client(), apps[0], apps[1], apps[2]:
        for first in range(0, 60, 3):
            backends[first % 2].fail("claim", "reply lost" if first % 4 else "request lost")
            for handle in [await sender.tasks["note"].submit(first + number) for number in range(3)]:
                await handle.result(timeout=60)
    assert Counter(done) == Counter(range(60))


async def test_a_worker_claims_once_for_each_handed_run(
    postgres_backend: PostgresBackend, beside: asyncpg.Connection
) -> None:
    """That claim comes when the end of the run is recorded, so that the lease of the run is never written again."""
    backend, done = FaultyBackend(postgres_backend), list[int]()
    before = await changed(beside, postgres_backend)
    async with idle_app(backend, done) as app:
        await is_ready(beside)
        for number in range(20):
            await (await app.tasks["note"].submit(number)).result(timeout=30)
            await is_ready(beside)
        claims = backend.calls.count("claim")
    after = await changed(beside, postgres_backend)
    assert done == list(range(20))
    assert 20 <= claims <= 24, "one to become ready, and one for each run; at most some when the app starts"
    assert [now - then for now, then in zip(after, before, strict=True)] == [20, 0], "each lease was written once"
