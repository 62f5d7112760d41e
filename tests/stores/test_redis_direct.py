"""Direct puts: synchronous code puts a run on a connection of its own thread."""

import asyncio
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

import pytest

from rota import Event, Refused, Rota
from rota.domain.decision import Decision, Reason
from rota.domain.run import NewRun
from rota.stores.redis import RedisBackend, direct
from storekit.contract import new_run
from storekit.proxy import FaultProxy
from storekit.servers import RedisServer, redis_of_wheel, valkey_of_wheel
from tests.server_fixtures import Servers
from tests.stores.redis_stages import at, staged
from tests.stores.test_redis_traffic import calls


def put(backend: RedisBackend, run: NewRun) -> Decision:
    """Put `run` directly; it must come to a decision."""
    decision = backend.put_directly(run)
    assert decision is not None
    return decision


def connections(server: RedisServer) -> int:
    """How many connections the server has ever had."""
    return int(server.info("stats")["total_connections_received"])


async def test_a_direct_put_has_the_answer_of_any_other_put(valkey: RedisServer, namespace: str) -> None:
    backend = at(valkey.url, namespace)
    assert backend.put_directly(new_run()) is None, "no store is open"
    async with staged(backend) as stage:
        first = new_run(key="k", unique="active", join="refuse")
        assert put(backend, first) == put(backend, first) == Decision(first.id, Reason.ACCEPTED)
        other = new_run(key="k", unique="active", join="refuse")
        assert put(backend, other) == await stage.admit(other) == Decision(first.id, Reason.ALREADY_QUEUED)
        assert (await stage.see(first)).id == first.id
        assert await stage.find(other) == []
        before = backend.latest
        put(backend, long := new_run(args=b'{"name":"' + b"x" * 5000 + b'"}'))
        assert (await stage.see(long)).body == long.body
        assert backend.latest > before
    assert backend.put_directly(new_run()) is None, "it is closed again"


@pytest.mark.parametrize("kind", ["sentinel", "cluster"])
async def test_servers_that_have_to_be_found_are_left_to_the_open_store(
    servers: Servers, kind: str, namespace: str
) -> None:
    backend = at(servers.get(kind).url, namespace)
    async with backend.open():
        assert backend.put_directly(new_run()) is None


async def test_older_servers_and_forgotten_functions_and_scripts_are_no_hindrance() -> None:
    for program in (redis_of_wheel(), valkey_of_wheel()):
        with RedisServer(program) as server:
            async with staged(at(server.url, "n")) as stage:
                assert isinstance(stage.backend, RedisBackend)
                for command in ("SCRIPT", "FUNCTION") if program.major >= 7 else ("SCRIPT",):
                    put(stage.backend, first := new_run())
                    server.send(command, "FLUSH")
                    put(stage.backend, second := new_run())
                    assert len(await stage.find(first, second)) == 2


async def test_nobody_knows_what_became_of_a_put_whose_reply_is_lost(valkey: RedisServer, namespace: str) -> None:
    async with FaultProxy(valkey.address) as proxy:
        backend = at(valkey.url_at(proxy.address), namespace)
        async with staged(backend) as stage:
            await asyncio.to_thread(put, backend, new_run())
            proxy.fail_next("cut after", match=b"FCALL")
            lost = new_run()
            assert await asyncio.to_thread(backend.put_directly, lost) is None
            assert (await stage.admit(lost)).run == lost.id, "the same put by the open store"
            assert len(await stage.find(lost)) == 1
            assert await asyncio.to_thread(put, backend, new_run()), "and on a new connection"


class Interrupted(Exception):
    pass


@contextmanager
def interrupted_after(seconds: float) -> Generator[None]:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


async def test_a_put_that_a_signal_interrupts_leaves_its_reply_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "PATIENCE", 60.0)
    with RedisServer(valkey_of_wheel()) as server:
        backend = at(server.url, "n")
        async with staged(backend) as stage:
            held = new_run(key="k", unique="active", join="refuse")
            put(backend, held)
            server.send("CLIENT", "PAUSE", "60000", "WRITE")
            with pytest.raises(Interrupted), interrupted_after(0.05):
                backend.put_directly(new_run(key="k", unique="active", join="refuse"))
            server.send("CLIENT", "UNPAUSE")
            plain = new_run()
            assert put(backend, plain) == Decision(plain.id, Reason.ACCEPTED)
            assert len(await stage.find(plain)) == 1


async def test_threads_put_at_the_same_time_and_one_thread_keeps_its_connection() -> None:
    with RedisServer(valkey_of_wheel()) as server:
        backend = at(server.url, "n")
        async with staged(backend) as stage:
            news = [new_run() for _ in range(40)]
            start = threading.Barrier(4)

            def submit(part: list[NewRun]) -> None:
                start.wait()
                for new in part:
                    put(backend, new)

            await asyncio.gather(*(asyncio.to_thread(submit, news[at::4]) for at in range(4)))
            assert len(await stage.find(*news)) == 40
            known = connections(server)
            for _ in range(10):
                put(backend, new_run())
            async with backend.open():
                known += 1
            put(backend, new_run())
            assert connections(server) <= known + 1, "the store that was opened beside has two at most"


async def test_submit_sync_puts_directly_and_tells_hooks_of_refusals(valkey: RedisServer, namespace: str) -> None:
    app = Rota(f"{valkey.url}{'&' if '?' in valkey.url else '?'}namespace={namespace}")
    seen, told = list[str](), asyncio.Event()

    @app.task(unique="active", join="refuse")
    def greet(name: str) -> None: ...

    @app.before_submit
    def note(submission: object) -> dict[str, str]:
        seen.append(threading.current_thread().name)
        return {"by": "ada"}

    def refused(event: Event) -> None:
        loop.call_soon_threadsafe(told.set)

    app.on("refused", refused)

    def submit() -> str:
        greet.submit_sync("Ada")  # the first call opens the store, on the loop of the portal
        before = calls(valkey, "fcall")
        handle = greet.submit_sync("Bob")
        assert calls(valkey, "fcall") == before + 1
        with pytest.raises(Refused, match="already"):
            greet.submit_sync("Bob")
        return handle.id

    loop = asyncio.get_running_loop()
    id = await asyncio.to_thread(submit)
    await asyncio.wait_for(told.wait(), 10)
    async with app.client():
        assert (await app.run(id)).id == id
    assert seen[1] != "rota-portal", "hooks run where the submit was called"
    await asyncio.to_thread(app.stop_sync)
