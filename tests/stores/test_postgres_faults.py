"""PostgreSQL goes away, loses replies, meets deadlocks: work goes on, nothing is lost, nothing is recorded twice."""

import asyncio
import logging
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

import asyncpg
import pytest
from msgspec.structs import replace

from rota.client.retries import patiently
from rota.domain.decision import Decision, Reason
from rota.domain.lifecycle import Succeeded, settlement_of
from rota.domain.run import Run, State
from rota.domain.settlement import Verdict
from rota.errors import InvalidOptions, SchemaTooNew, StoreCorrupt, StoreUnavailable
from rota.store import ClaimRequest, Hint, Retention, RunQuery, Store
from rota.stores import connect
from rota.stores.postgres import PostgresBackend
from rota.stores.postgres.columns import as_payload
from rota.stores.postgres.driver import Connection, connect_plainly
from rota.stores.postgres.pool import Pool
from storekit.contract import Stage, new_run
from storekit.proxy import FaultProxy
from storekit.servers import PgBouncer, PostgresServer, postgres_kinds, postgres_of_wheel
from tests.postgres_schemas import NEWEST, Schemas
from tests.server_fixtures import Servers

SEEMING = "seeming"
DOCS = Path(__file__).parents[2] / "docs" / "postgresql.md"


@pytest.fixture
def server(postgres_templates: Path) -> Iterator[PostgresServer]:
    """A server of one's own, to be stopped and started."""
    programs = postgres_of_wheel()
    template = postgres_templates / f"postgres-{programs.version}"
    with PostgresServer(programs, {"deadlock_timeout": "2s"}, template=template) as server:
        yield server


async def waiters(connection: asyncpg.Connection) -> None:
    """Until some connection waits for a lock."""
    while not await connection.fetchval("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
        pass


class Load:
    """Some who put and some who work, until told to stop; what was acknowledged is remembered."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.put: list[str] = []
        self.applied: list[str] = []
        self.stopping = False
        self._progress = asyncio.Condition()

    async def settled(self, count: int) -> None:
        """Until so many more are."""
        before = len(self.applied)
        async with self._progress:
            await self._progress.wait_for(lambda: len(self.applied) >= before + count)

    async def submit(self) -> None:
        while not self.stopping:
            runs = [new_run() for _ in range(5)]
            await patiently(lambda runs=runs: self.store.put(runs))  # type: ignore[misc]
            self.put += [run.id for run in runs]

    async def work(self, name: str, submitters: list[asyncio.Task[None]]) -> None:
        """Until nothing more comes and nothing is left."""
        n, last = 0, False
        while not last:
            n, last = n + 1, all(submitter.done() for submitter in submitters)
            claim = await patiently(lambda n=n: self.store.claim(ClaimRequest(name, n, ["greet"], 20, 30.0)))  # type: ignore[misc]
            await self.settle(claim.runs)
            last = last and not claim.runs

    async def settle(self, runs: list[Run]) -> None:
        said = [settlement_of(run, Succeeded()) for run in runs]
        reply = await patiently(lambda: self.store.settle(said))
        assert Verdict.STALE not in reply.items
        self.applied += [run.id for run in runs]
        async with self._progress:
            self._progress.notify_all()


async def test_a_server_that_crashes_under_load_costs_nothing_but_the_time(server: PostgresServer) -> None:
    backend = PostgresBackend.from_url(server.url)
    async with backend.open() as store:
        load = Load(store)
        async with asyncio.TaskGroup() as group:
            submitters = [group.create_task(load.submit()) for _ in range(2)]
            for worker in ("ada", "bob"):
                group.create_task(load.work(worker, submitters))
            for _ in range(2):
                await load.settled(200)
                await asyncio.to_thread(server.stop_at_once)
                await asyncio.to_thread(server.start)
            load.stopping = True
        runs = (await store.runs(RunQuery(limit=1_000_000))).runs
        assert {run.id for run in runs} >= set(load.put)
        assert {run.state for run in runs} == {State.SUCCEEDED}
        assert sorted(load.applied) == sorted(run.id for run in runs)
        assert {(run.fence, len(run.attempts)) for run in runs} == {(1, 1)}


@pytest.fixture
async def proxied(
    postgres: PostgresServer, postgres_backend: PostgresBackend
) -> AsyncIterator[tuple[FaultProxy, Stage]]:
    listen = postgres.folder / f".s.PGSQL.{6000 + id(postgres_backend) % 1000}"
    async with FaultProxy(postgres.address, listen) as proxy:
        url = f"{postgres.url_at(proxy.address)}&schema={postgres_backend.address.schema}"
        backend = PostgresBackend.from_url(url)
        async with backend.open() as store:
            yield proxy, Stage(backend, store)


async def test_a_verb_that_the_server_rolls_back_for_a_deadlock_is_sent_again(server: PostgresServer) -> None:
    backend = PostgresBackend.from_url(server.url)
    connection = await asyncpg.connect(server.url)
    lock = "SELECT FROM rota.leases WHERE id = $1 FOR UPDATE"
    async with backend.open() as store:
        stage = Stage(backend, store)
        await stage.put(new_run(id="a"), new_run(id="b"))
        runs = (await stage.claim(free=2)).runs
        await connection.execute("SET deadlock_timeout = '1h'")  # settle waits first, looks first, and gives way
        async with connection.transaction():
            await connection.execute(lock, "b")
            settle = asyncio.create_task(store.settle([settlement_of(run, Succeeded()) for run in runs]))
            await waiters(connection)
            await connection.execute(lock, "a")  # settle has this one and waits for the other: a ring
        assert (await settle).items == [Verdict.APPLIED] * 2
    await connection.close()


async def test_submits_of_the_same_keys_meet_in_no_ring(server: PostgresServer) -> None:
    """Single submits share a round trip, in whatever order they come: two processes would lock each other out."""
    dice, keys = Random(1), [f"k{n}" for n in range(10)]

    async def submit(store: Store) -> None:
        for _ in range(30):
            await asyncio.gather(
                *(store.put([new_run(key=key, unique="queued", delay=60)]) for key in dice.sample(keys, len(keys)))
            )

    here, there = PostgresBackend.from_url(server.url), PostgresBackend.from_url(server.url)
    async with here.open() as near, there.open() as far:
        await asyncio.gather(submit(near), submit(far))
    connection = await asyncpg.connect(server.url)
    await connection.execute("SELECT pg_stat_clear_snapshot()")
    assert await connection.fetchval("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == 0
    await connection.close()


async def test_the_isolation_that_a_database_prefers_does_not_matter(server: PostgresServer) -> None:
    connection = await asyncpg.connect(server.url)
    await connection.execute("ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'")
    await connection.close()
    backend = PostgresBackend.from_url(server.url)
    async with backend.open() as store:
        same = new_run(key="k", unique="active")
        replies = await asyncio.gather(*(store.put([same]) for _ in range(20)))
        assert {reply.items[0] for reply in replies} == {Decision(same.id, Reason.ACCEPTED)}
        claims = await asyncio.gather(*(store.claim(ClaimRequest(f"w{i}", 1, ["greet"], 1, 30)) for i in range(8)))
        assert [run.id for claim in claims for run in claim.runs] == [same.id]


async def test_a_line_to_a_server_that_takes_no_writes_is_not_kept(server: PostgresServer) -> None:
    connection = await asyncpg.connect(server.url)
    backend = PostgresBackend.from_url(server.url)
    async with backend.open() as first:
        await first.put([new_run()])
    await connection.execute("ALTER DATABASE postgres SET default_transaction_read_only = on")
    async with backend.open() as store:
        with pytest.raises(StoreUnavailable):
            await store.put([new_run()])
        await connection.execute("SET default_transaction_read_only = off")
        await connection.execute("ALTER DATABASE postgres SET default_transaction_read_only = off")
        await store.put([new_run()])
    await connection.close()


async def test_hints_come_back_with_the_server_and_the_first_one_says_that_some_were_missed(
    server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "rota")
    here, there = PostgresBackend.from_url(server.url), PostgresBackend.from_url(server.url)
    async with here.open() as near, there.open() as far, near.changes() as hints:
        await asyncio.to_thread(server.stop_at_once)
        await asyncio.to_thread(server.start)
        assert await anext(hints) == Hint(resync=True)
        await patiently(lambda: near.claim(ClaimRequest("ada", 1, ["greet"], 1, 30)))
        await patiently(lambda: far.put([new_run()]))
        while "ada" not in (await anext(hints)).workers:
            pass


async def test_a_hint_finds_its_way_to_another_process(postgres_backend: PostgresBackend) -> None:
    """As two processes have them: nothing is shared but the server."""
    there = PostgresBackend(postgres_backend.address)
    async with postgres_backend.open() as near, there.open() as far:
        await near.claim(ClaimRequest("ada", 1, ["greet"], 1, 30))
        async with near.changes() as hints:
            run = new_run()
            await far.put([run])
            assert await anext(hints) == Hint(workers=frozenset({"ada"}))
            await Stage(there, far).cancel(run)
            assert await anext(hints) == Hint(runs=frozenset({run.id}))


async def test_a_worker_that_went_idle_beside_a_put_is_called_a_moment_later(
    postgres: PostgresServer, postgres_backend: PostgresBackend
) -> None:
    """Neither saw the other: the put had looked for idle workers already, and was not yet committed."""
    connection = await asyncpg.connect(postgres.url)
    run = new_run()
    async with postgres_backend.open() as store:
        async with connection.transaction():
            await connection.execute(f"SELECT {postgres_backend.schema}.submit($1)", as_payload([run]))
            changes = store.changes()
            hints = await changes.__aenter__()
            assert (await store.claim(ClaimRequest("ada", 1, ["greet"], 1, 30))).runs == []
        assert await anext(hints) == Hint(workers=frozenset({"ada"}))
        await changes.__aexit__(None, None, None)
    await connection.close()


class TestBehindAPooler:
    """PgBouncer in transaction mode, where this machine has it, and always what a client can see of it: no prepared
    statements, and no channel for hints."""

    @pytest.fixture(params=[SEEMING, *(kind for kind in postgres_kinds() if kind == "pgbouncer")])
    def pooler(self, request: pytest.FixtureRequest) -> str:
        kind: str = request.param
        return kind

    @pytest.fixture
    def pooled(self, pooler: str, schemas: Schemas, monkeypatch: pytest.MonkeyPatch) -> PostgresBackend:
        if pooler != SEEMING:
            return schemas.backend(pooler)
        postgres_backend = schemas.backend(NEWEST)

        async def opened(pool: Pool) -> Connection:
            pool.pooled = True
            return await connect_plainly(pool.login)

        monkeypatch.setattr(Pool, "open", opened)
        return postgres_backend

    async def test_the_verbs_work_without_prepared_statements(self, pooled: PostgresBackend) -> None:
        async with pooled.open() as store:
            stage = Stage(pooled, store)
            ended = await stage.ended()
            assert (ended.state, ended.result) == (State.SUCCEEDED, b'"hello Ada"')
            pool = [store.put([new_run()]) for _ in range(10)]
            assert all(reply.items[0] for reply in await asyncio.gather(*pool))
            assert len((await stage.claim(free=20)).runs) == 10

    async def test_one_process_after_the_other_finds_out_about_it(self, pooled: PostgresBackend, pooler: str) -> None:
        """Each names its prepared statements from one on: the pooler must not keep any of them."""
        if pooler == SEEMING:
            return  # what it seems is known beforehand
        opens = (
            "import asyncio, sys\nfrom rota.stores import connect\n"
            "async def main():\n    async with connect(sys.argv[1]).open() as store: await store.depths()\n"
            "asyncio.run(main())"
        )
        url = f"{pooled.address.dsn}{'&' if '?' in pooled.address.dsn else '?'}schema={pooled.schema.strip(chr(34))}"
        for _ in range(3):
            command = [sys.executable, "-c", opens, url]
            done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr

    async def test_hints_are_looked_for(self, pooled: PostgresBackend) -> None:
        there = PostgresBackend(pooled.address)
        async with pooled.open() as near, there.open() as far, near.changes() as hints:
            assert pooled.poll < there.poll
            await near.claim(ClaimRequest("ada", 1, ["greet"], 1, 30))
            await far.put([new_run()])
            while "ada" not in (await anext(hints)).workers:
                pass

    async def test_with_a_direct_listen_url_hints_arrive_as_without_a_pooler(
        self, pooled: PostgresBackend, pooler: str, servers: Servers
    ) -> None:
        direct = servers.get(NEWEST).url if pooler == SEEMING else servers.get_as(pooler, PgBouncer).postgres.url
        here = PostgresBackend(replace(pooled.address, listen_dsn=direct))
        there = PostgresBackend(pooled.address)
        async with here.open() as near, there.open() as far, near.changes() as hints:
            assert here.proven
            await near.claim(ClaimRequest("ada", 1, ["greet"], 1, 30))
            await far.put([new_run()])
            assert await anext(hints) == Hint(workers=frozenset({"ada"})), "not a look around, which says resync"

    async def test_a_crowd_shares_few_server_connections(self, pooled: PostgresBackend) -> None:
        """Each transaction may meet another server connection: nothing may be left behind on one."""
        backends = [PostgresBackend(pooled.address) for _ in range(4)]
        async with AsyncExitStack() as opened:
            stores = [await opened.enter_async_context(backend.open()) for backend in backends]
            news = [[new_run(id=f"{place}-{number}") for number in range(50)] for place in range(len(stores))]
            puts = [store.put([new]) for store, batch in zip(stores, news, strict=True) for new in batch]
            assert all(reply.items[0] for reply in await asyncio.gather(*puts))
            claims = [
                store.claim(ClaimRequest(f"w{place}", 1, ["greet"], 50, 30)) for place, store in enumerate(stores)
            ]
            runs = [run for claim in await asyncio.gather(*claims) for run in claim.runs]
            runs += (await stores[0].claim(ClaimRequest("last", 1, ["greet"], 200, 30))).runs
            assert sorted(run.id for run in runs) == sorted(new.id for batch in news for new in batch)
            ends = [stores[place % 4].settle([settlement_of(run, Succeeded())]) for place, run in enumerate(runs)]
            assert {reply.items[0] for reply in await asyncio.gather(*ends)} == {Verdict.APPLIED}


class TestOpening:
    async def test_a_server_that_is_not_there_is_said_so(self, server: PostgresServer) -> None:
        url = server.url
        server.stop()
        with pytest.raises(StoreUnavailable, match="is the server running"):
            async with PostgresBackend.from_url(url).open():
                pass

    async def test_passwords_are_not_shown(self, server: PostgresServer) -> None:
        url = server.url.replace("rota@", "nobody:s3cret@")
        with pytest.raises(StoreUnavailable) as raised:
            async with PostgresBackend.from_url(url).open():
                pass
        assert "s3cret" not in str(raised.value)
        assert "nobody:***@" in str(raised.value)
        assert not raised.value.passing

    async def test_a_schema_of_another_program_is_left_alone(self, server: PostgresServer) -> None:
        connection = await asyncpg.connect(server.url)
        await connection.execute("CREATE SCHEMA theirs; CREATE TABLE theirs.queue (id text)")
        await connection.close()
        with pytest.raises(StoreCorrupt, match="some other program"):
            async with PostgresBackend.from_url(f"{server.url}&schema=theirs").open():
                pass

    async def test_a_schema_of_a_newer_rota_is_refused(self, server: PostgresServer) -> None:
        backend = PostgresBackend.from_url(server.url)
        before, after = await backend.migrate()
        assert (before, after) == (0, after)
        assert await backend.migrate() == (after, after)
        connection = await asyncpg.connect(server.url)
        await connection.execute("INSERT INTO rota.migrations VALUES (99)")
        await connection.close()
        with pytest.raises(SchemaTooNew, match="99"):
            async with backend.open():
                pass

    async def test_the_documented_grants_are_enough(self, server: PostgresServer) -> None:
        await PostgresBackend.from_url(server.url).migrate()
        (grants,) = re.findall(r"^GRANT .*?(?=```)", DOCS.read_text(), re.DOTALL | re.MULTILINE)
        connection = await asyncpg.connect(server.url)
        await connection.execute(f"CREATE ROLE worker LOGIN; {grants}")
        await connection.close()
        backend = PostgresBackend.from_url(server.url.replace("rota@", "worker@"))
        async with backend.open() as store, store.changes():
            stage = Stage(backend, store)
            assert (await stage.ended(new_run(key="k", unique="done"))).state is State.SUCCEEDED
            await store.sweep(Retention())

    async def test_many_open_a_new_database_at_once(self, server: PostgresServer) -> None:
        async def use(place: int) -> bool:
            async with PostgresBackend.from_url(server.url).open() as store:
                return bool((await store.put([new_run(id=f"r{place}")])).items[0])

        assert all(await asyncio.gather(*(use(place) for place in range(8))))

    @pytest.mark.parametrize("option", ["max_connections=0", "max_connections=x", "schema=pg_mine", "schema="])
    def test_bad_options_are_refused(self, option: str) -> None:
        with pytest.raises(InvalidOptions):
            connect(f"postgres://localhost/db?{option}")

    def test_without_its_driver_it_says_what_to_install(self) -> None:
        script = "import sys; sys.modules['asyncpg'] = None; from rota.stores import connect; connect('postgres://h/d')"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert 'MissingExtra: postgres:// needs a driver: pip install "rota[postgres]"' in done.stderr
