"""Rows of the fifth source document: operations on a queue."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from rota import Context, QueueFull, Rota, RunCancelled, State, StoreUnavailable
from rota.store import ClaimRequest, Depth
from rota.stores.memory import MemoryBackend
from rota.stores.postgres import PostgresBackend
from storekit.contract import new_run
from storekit.faults import FaultyBackend
from storekit.servers import RedisServer
from tests.requirement import requirement


@requirement("4.1")
async def test_4_1_submit_does_not_block_and_the_answer_is_had_later_by_id() -> None:
    backend = MemoryBackend()
    sender, worker = Rota(backend), Rota(backend)

    @worker.task
    async def answer(question: str) -> str:
        return question.upper()

    id = (await sender.submit("answer", question="why")).id
    async with worker:
        assert await sender.handle(id).result(timeout=10) == "WHY"


@requirement("4.2")
async def test_4_2_run_cancel_pause_resume() -> None:
    app = Rota("memory://")
    started = asyncio.Event()

    @app.task
    async def agent(ctx: Context) -> str:
        saved: dict[str, int] | None = ctx.saved
        if saved is None:
            ctx.checkpoint({"step": 1})
            started.set()
            await asyncio.Event().wait()
            return "never"
        return f"resumed at step {saved['step']}"

    @app.task
    async def endless() -> None:
        started.set()
        await asyncio.Event().wait()

    async with app:
        run = await agent.submit()
        await started.wait()
        assert await run.pause()
        async with asyncio.timeout(10):
            while (await run.refresh()).state is not State.PAUSED:
                await app.client().news()
        assert await run.resume()
        assert await run.result(timeout=10) == "resumed at step 1"
        started.clear()
        doomed = await endless.submit()
        await started.wait()
        assert await doomed.cancel()
        with pytest.raises(RunCancelled):
            await doomed.result(timeout=10)


@pytest.fixture(params=["memory", "sqlite", "redis", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path, namespace: str) -> str:
    """A store of each kind, as the environment names it."""
    match request.param:
        case "memory":
            return "memory://"
        case "sqlite":
            return f"sqlite:///{tmp_path / 'rota.db'}"
        case "redis":
            server: RedisServer = request.getfixturevalue("valkey")
            return f"{server.url}&namespace={namespace}"
        case _:
            backend: PostgresBackend = request.getfixturevalue("postgres_backend")
            dsn = backend.address.dsn
            return f"{dsn}{'&' if '?' in dsn else '?'}schema={backend.address.schema}"


@requirement("4.3")
async def test_4_3_the_same_code_on_every_store_chosen_by_the_environment(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTA_URL", url)
    app = Rota()

    @app.task
    async def work() -> str:
        return "done"

    async with app:
        assert await (await work.submit()).result(timeout=10) == "done"


@requirement("4.4")
async def test_4_4_a_bounded_queue_of_100_lets_the_sender_wait() -> None:
    app = Rota("memory://")

    @app.task(max_pending=100)
    async def work(n: int) -> int:
        return n

    await app.submit_many([work.bind(n) for n in range(100)])
    with pytest.raises(QueueFull):
        await work.using(wait=False).submit(100)
    sender = asyncio.create_task(work.submit(100))
    async with app:
        assert await (await sender).result(timeout=10) == 100


@requirement("4.5")
@pytest.mark.parametrize("url", ["redis://127.0.0.1:1", "postgresql://127.0.0.1:1/none"])
async def test_4_5_an_unreachable_server_fails_loudly_at_start(url: str) -> None:
    app = Rota(url)
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1"):
        await app.start()
    assert not app.status().running


@requirement("4.5")
@pytest.mark.parametrize(("url", "driver"), [("redis://a", "redis"), ("postgresql://a/b", "asyncpg")])
def test_4_5_a_missing_driver_names_the_install_command(url: str, driver: str) -> None:
    """In a process of its own, for which the package is not there."""
    code = f"import sys; sys.modules[{driver!r}] = None; from rota import Rota; Rota({url!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    extra = "redis" if driver == "redis" else "postgres"
    assert f'MissingExtra: {url.split(":")[0]}:// needs a driver: pip install "rota[{extra}]"' in done.stderr


@requirement("4.6")
async def test_4_6_a_lost_reply_never_makes_a_second_run() -> None:
    """The client sends the same id again: the store answers the same."""
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)
    calls = 0

    @app.task
    async def work() -> None:
        nonlocal calls
        calls += 1

    backend.fail("put", "reply lost", times=2)
    async with app:
        await (await work.submit()).result(timeout=10)
    assert calls == 1


@requirement("4.8")
async def test_4_8_health_queue_length_clear() -> None:
    app = Rota("memory://")

    @app.task
    async def work() -> None: ...

    await app.submit_many([work.bind() for _ in range(3)])
    assert await app.health()
    assert (await app.depths())["work"].queued == 3
    assert await app.clear("work") == 3


@requirement("4.12")
async def test_4_12_the_queue_length_of_a_known_task_is_0_when_nothing_waits() -> None:
    backend = MemoryBackend()
    app, elsewhere = Rota(backend), Rota(backend)

    @app.task
    async def run_task() -> None: ...

    assert (await app.depths())["run_task"] == Depth("run_task", 0, 0), "known by its code"
    async with app:
        await (await run_task.submit()).result(timeout=10)
    assert (await elsewhere.depths())["run_task"].queued == 0, "known by what a worker published"
    assert not any((await elsewhere.depths()).values())
    await (await elsewhere.client().store()).put([new_run("nobodys")])
    assert {name: depth.queued for name, depth in (await elsewhere.depths()).items()} == {"nobodys": 1, "run_task": 0}


@requirement("4.9")
async def test_4_9_a_context_manager_whose_close_is_idempotent() -> None:
    async with Rota("memory://") as app:
        assert app.status().running
    await app.stop()
    await app.stop()
    assert not app.status().running


@requirement("4.10")
def test_4_10_the_url_is_built_from_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Host, port, password and db by the environment, and a name that keeps apps on one server apart."""
    for name, value in {"HOST": "cache", "PORT": "6380", "PASSWORD": "s3cret/", "DB": "2"}.items():
        monkeypatch.setenv(f"ROTA_REDIS_{name}", value)
    app = Rota(namespace="bindu")
    assert app.settings.store_url == "redis://:s3cret%2F@cache:6380/2?namespace=bindu"
    assert "s3cret" not in app.backend.url


# -- beyond --------------------------------------------------------------------------------------------------------


@requirement("4.a")
async def test_beyond_a_cancel_does_not_wait_behind_the_run_that_it_is_about() -> None:
    """There, the operations of one queue were taken one after the other. Here the only seat is taken by the run."""
    app = Rota("memory://", concurrency=1)
    started = asyncio.Event()

    @app.task
    async def endless() -> None:
        started.set()
        await asyncio.Event().wait()

    async with app:
        run = await endless.submit()
        await started.wait()
        await run.cancel()
        with pytest.raises(RunCancelled):
            await run.result(timeout=10)


@requirement("4.b")
async def test_beyond_a_crash_in_the_middle_loses_no_operation() -> None:
    backend = MemoryBackend()
    app = Rota(backend)

    @app.task
    async def operate() -> str:
        return "done"

    run = await operate.submit()
    async with backend.open() as store:
        assert (await store.claim(ClaimRequest("crashed", 1, ["operate"], 1, 30))).runs
    backend.skew += 31
    async with app:
        assert await run.result(timeout=10) == "done"


@requirement("4.c")
async def test_beyond_bad_json_is_set_aside_and_the_loop_goes_on() -> None:
    """Arguments that do not fit are tried by other versions for a while, then the run has failed; others go on."""
    app = Rota("memory://")

    @app.task
    async def typed(n: int) -> int:
        return n

    elsewhere = Rota(app.backend)
    bad = await elsewhere.submit("typed", n="no number")
    good = await typed.submit(7)
    async with app:
        assert await good.result(timeout=10) == 7
        async with asyncio.timeout(10):
            while not (seen := await bad.refresh()).attempts:
                await app.client().news()
    assert seen.attempts[0].outcome == "unbindable"
