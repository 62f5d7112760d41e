"""What idle workers cost a server, as the server itself counts it: MONITOR tells every command that a client sent."""

import asyncio
import re
import uuid
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from rota import Rota, Task
from rota.app.core import core_of
from rota.store import WorkerSeen
from rota.stores.redis import backend, subscriber
from rota.stores.redis.library import library
from storekit.servers import RedisServer, valkey_of_wheel
from tests.stores.redis_stages import at

FASTER = 50
"""The paces of an idle worker, so many times as fast as they are."""
CLAIM = library().functions["claim"]


class Monitor:
    """What clients send, in the order in which the server does it."""

    def __init__(self, server: RedisServer, lines: asyncio.StreamReader) -> None:
        self._server = server
        self._lines = lines

    async def next(self) -> tuple[float, str]:
        """The server's time and the words of the next command; what scripts call is not counted."""
        while True:
            line = (await self._lines.readuntil(b"\r\n")).decode(errors="replace")
            told = re.match(r"\+([\d.]+) \[\d+ (.*?)\] (.*)", line)
            assert told, line
            if told[2] != "lua":
                return float(told[1]), told[3].lower()

    async def until_now(self) -> list[str]:
        """What was sent before this call, and not yet told."""
        token, seen = uuid.uuid4().hex, list[str]()
        await asyncio.to_thread(self._server.send, "ECHO", token)
        while token not in (words := (await self.next())[1]):
            seen.append(words)
        return seen


@asynccontextmanager
async def monitored(server: RedisServer) -> AsyncGenerator[Monitor]:
    address, most = server.address, 2**24
    if isinstance(address, Path):
        lines, out = await asyncio.open_unix_connection(address, limit=most)
    else:
        lines, out = await asyncio.open_connection(*address, limit=most)
    try:
        out.write(b"MONITOR\r\n")
        assert await lines.readuntil(b"\r\n") == b"+OK\r\n"
        yield Monitor(server, lines)
    finally:
        out.close()
        await out.wait_closed()


async def test_an_idle_worker_sends_less_than_a_command_in_three_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "POLL", backend.POLL / FASTER)
    monkeypatch.setattr(subscriber, "SILENCE", subscriber.SILENCE / FASTER)
    with RedisServer(valkey_of_wheel()) as server:
        app = Rota(at(server.url, "n"))
        usual = core_of(app).tuning
        core_of(app).tuning = replace(usual, lease=usual.lease / FASTER, sweep=usual.sweep / FASTER)

        @app.task
        async def greet() -> None: ...

        async with app, monitored(server) as monitor:
            await (await greet.submit()).result(timeout=10)
            await monitor.until_now()
            seen = [await monitor.next() for _ in range(25)]
        first, last = seen[0][0], seen[-1][0]
        kinds = {words.split()[0] for _, words in seen}
        assert '"fcall"' in kinds, "it looks from time to time"
        assert (len(seen) - 1) / (last - first) <= 0.3 * FASTER


@pytest.mark.parametrize("workers", [10, pytest.param(100, marks=pytest.mark.soak)])
async def test_a_submit_wakes_few_of_many_idle_workers(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "POLL", 3600.0)  # nobody looks by itself, however long the test takes
    submits = 100
    with RedisServer(valkey_of_wheel()) as server:
        apps = [Rota(at(server.url, "n")) for _ in range(workers)]

        def greeting(app: Rota) -> Task[[], [], object, str]:
            @app.task(name="greet")
            async def greet() -> str:
                return "hello"

            return greet

        greet, *_ = [greeting(app) for app in apps]
        async with AsyncExitStack() as running, monitored(server) as monitor:
            for app in apps:
                await running.enter_async_context(app)
            client = apps[0].client()
            while sum(seen.idle for seen in (await client.rows(WorkerSeen)).items) < workers:
                await client.news(0.05)  # until each has made its first claim
            await monitor.until_now()
            handles = [await greet.submit() for _ in range(submits)]
            for handle in handles:
                assert await handle.result(timeout=20) == "hello"
            seen = await monitor.until_now()
    claims = [words for words in seen if CLAIM in words]
    assert submits / 10 <= len(claims) <= 3 * submits
