"""The server is restarted, or forgets its scripts, while a worker process works: work goes on by itself, once each."""

import asyncio
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle

import pytest

from rota import Rota, RunHandle, State
from rota.store import RunQuery
from storekit.servers import PostgresServer, RedisServer, postgres_of_wheel, valkey_of_wheel
from tests.faults.conftest import in_place
from tests.faults.tasks import work
from tests.processes import Process

BATCH = 1000
LEASE = 60.0
"""No lease lapses here: what runs a second time was not lost, but doubled."""

PATIENCE = 60.0
"""Seconds between one result and the next: what does not come by then is lost; all of them take as long as they do."""


class Load:
    """One worker process, and submits that go on whatever the server does."""

    def __init__(self, url: str) -> None:
        self.app = Rota(url)
        self.work = self.app.task()(work.fn)
        self.handles: list[RunHandle[int]] = []

    @contextmanager
    def worker(self) -> Iterator[Process]:
        command = ["-m", "rota", "-A", "tests.faults.tasks:app", "worker", "--lease", str(LEASE)]
        with Process(*command, env={"ROTA_URL": self.app.settings.url, "ROTA_KEEP_MOST": "1000000"}) as worker:
            yield worker

    async def submit(self) -> None:
        first = len(self.handles)
        self.handles += await self.app.submit_many([self.work.bind(i) for i in range(first, first + BATCH)])

    async def end(self, worker: Process) -> None:
        """All that was acknowledged is done, recorded once and executed once; the worker still obeys."""
        assert [await handle.result(PATIENCE) for handle in self.handles] == list(range(len(self.handles)))
        found = await (await self.app.client().store()).runs(RunQuery(limit=1_000_000))
        assert sorted(run.id for run in found.runs) == sorted(handle.id for handle in self.handles)
        assert {run.state for run in found.runs} == {State.SUCCEEDED}
        assert Counter(tuple(a.outcome for a in run.attempts) for run in found.runs) == {
            ("succeeded",): len(self.handles)
        }
        assert {run.fence for run in found.runs} == {1}
        assert not any((await self.app.depths()).values())
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.output
        began = Counter(line for line in worker.lines if line.startswith("began"))
        assert (len(began), set(began.values())) == (len(self.handles), {1})


@pytest.mark.parametrize("store", ["valkey", "postgres"])
@pytest.mark.parametrize("restarts", [2, pytest.param(30, marks=pytest.mark.soak)])
async def test_a_server_restarted_under_load_costs_time_and_nothing_else(
    store: str, restarts: int, namespace: str
) -> None:
    if store == "valkey":
        server: RedisServer | PostgresServer = RedisServer(valkey_of_wheel(), {"appendfsync": "always"})
    else:
        server = PostgresServer(postgres_of_wheel(), {"fsync": "on"})
    ends = [server.stop_at_once] if isinstance(server, PostgresServer) else [server.stop, server.kill]
    with server:
        load = Load(in_place(server.url, namespace))
        async with load.app.client():
            with load.worker() as worker:
                await load.submit()
                for number, end in zip(range(1, restarts + 1), cycle(ends), strict=False):
                    await asyncio.to_thread(worker.wait_for, "began", number * BATCH // 2)  # it is in the middle of it
                    await asyncio.to_thread(end)
                    submitted = asyncio.create_task(load.submit())  # to a server that is away
                    await asyncio.to_thread(server.start)
                    await submitted
                await load.end(worker)


@pytest.mark.parametrize("flushes", [10, pytest.param(100, marks=pytest.mark.soak)])
async def test_scripts_flushed_again_and_again_under_load_are_sent_again(flushes: int, namespace: str) -> None:
    with RedisServer(valkey_of_wheel()) as server:
        load = Load(in_place(server.url, namespace))
        async with load.app.client():
            with load.worker() as worker:
                for _ in range(flushes):
                    submitted = asyncio.create_task(load.submit())
                    await asyncio.to_thread(server.send, "SCRIPT", "FLUSH")
                    await submitted
                await load.end(worker)
