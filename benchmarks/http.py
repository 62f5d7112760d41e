"""What the service costs: `python -m benchmarks --part http [--store sqlite|redis|postgres] [--kept 1000000]`.

The service is `rota serve --role web` in a process of its own; callers send raw HTTP/1.1 over kept connections, so that
no client library is measured. Each figure stands beside its bar.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from benchmarks.http_app import app, many, noop
from benchmarks.report import Grid
from rota import PullWorker
from rota.client.client import move_to
from rota.pull.values import PullOutcome
from rota.stores import connect
from rota.web.tokens import fingerprint, new_token
from storekit.servers import PostgresServer, RedisServer, postgres_of_machine, redis_of_machine
from storekit.servers.binaries import valkey_of_wheel

CONNECTIONS = 8
ROUND = 3.0
"""Seconds of each rate."""
STREAMS, PER_TOKEN = 1000, 16
PULL_BATCH, PULL_RUNS = 50, 6000
TASKS = 500


class Figure(Struct, frozen=True):
    name: str
    value: float
    unit: str
    bar: float
    most: bool = True
    """Whether the bar is the most that the value may be; else the least."""
    cpu: float | None = None
    """Milliseconds of the service's own work for one request, or for one run of a batch: what a busy machine does not
    change much."""

    @property
    def cells(self) -> list[str]:
        met = self.value <= self.bar if self.most else self.value >= self.bar
        bar = f"at {'most' if self.most else 'least'} {self.bar:,.4g}: {'met' if met else 'missed'}"
        cpu = "" if self.cpu is None else f"{self.cpu:.3g} ms"
        return [self.name, f"{self.value:,.4g} {self.unit}".strip(), bar, cpu]


class Connection:
    """One kept connection to the service."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._head = f"Host: localhost\r\nAuthorization: Bearer {token}\r\n"

    async def open(self) -> "Connection":
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 22)
        return self

    async def send(self, method: str, path: str, body: object = None) -> bytes:
        text = b"" if body is None else json.dumps(body).encode()
        kind = f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n" if body is not None else ""
        self._writer.write(f"{method} {path} HTTP/1.1\r\n{self._head}{kind}\r\n".encode() + text)
        head = await self._reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        answer = await self._reader.readexactly(size)
        assert head[9:10] == b"2", answer[:500]
        return answer

    async def follow(self, path: str) -> asyncio.StreamReader:
        """Begin to read a stream."""
        self._writer.write(f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        assert head[9:12] == b"200", head
        return self._reader

    def close(self) -> None:
        self._writer.close()


def http(words: Sequence[str]) -> Grid:
    parser = argparse.ArgumentParser(prog="python -m benchmarks --part http")
    parser.add_argument("--store", choices=["sqlite", "redis", "postgres"], default="sqlite")
    parser.add_argument("--kept", type=int, default=1_000_000, help="runs that the first page is one of")
    given = parser.parse_args(words)
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="rota-bench-")))
        figures = asyncio.run(_measure(store_url(given.store, folder, running), folder, given.kept))
    return Grid(
        [f"{given.store}, over HTTP", "rota", "bar", "CPU of the service"], [figure.cells for figure in figures]
    )


def store_url(store: str, folder: Path, running: ExitStack) -> str:
    if store == "sqlite":
        return f"sqlite:///{folder / 'rota.db'}"
    if store == "redis":
        return running.enter_context(RedisServer(redis_of_machine() or valkey_of_wheel())).url
    return running.enter_context(PostgresServer(postgres_of_machine()[0])).url


@contextmanager
def service(url: str, folder: Path, tasks: int = 0) -> Iterator[tuple[int, list[str], int]]:
    """Serve, with enough tokens for all streams. Yield the port, the tokens and the process id."""
    tokens = [new_token() for _ in range(STREAMS // PER_TOKEN + 2)]
    file = folder / "tokens.toml"
    file.write_text(
        "".join(f'[t{n}]\nsha256 = "{fingerprint(token)}"\nrole = "admin"\n' for n, token in enumerate(tokens))
    )
    env = {**os.environ, "ROTA_URL": url, "ROTA_TOKENS": str(file), "BENCH_TASKS": str(tasks)}
    command = [sys.executable, "-m", "rota", "-A", "benchmarks.http_app:app", "serve", "--role", "web", "--port", "0"]
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        port = next(int(line.strip().rpartition(":")[2]) for line in process.stderr if " at http://" in line)
        threading.Thread(target=process.stderr.read, daemon=True).start()  # a full pipe would stop the service
        yield port, tokens, process.pid
    finally:
        process.terminate()
        process.wait()


async def _measure(url: str, folder: Path, kept: int) -> list[Figure]:
    move_to(app.client(), connect(url))
    figures: list[Figure] = []
    async with app.client():
        one = await _rate(1, lambda n: noop.submit(n))
        began = time.perf_counter()
        for first in range(0, 20_000, 1000):
            await app.submit_many([noop.bind(n) for n in range(first, first + 1000)])
        bulk = 20_000 / (time.perf_counter() - began)
        with service(url, folder, TASKS) as (port, tokens, pid):
            figures.append(await _metrics(port, tokens[0], pid))
            figures += await _requests(port, tokens[0], one, bulk, pid)
            figures.append(await _pull(port, tokens[0], pid))
            figures.append(await _metrics(port, tokens[0], pid))
            figures.append(await _event(port, tokens[0]))
            figures.append(await _streams(port, tokens, pid))
            figures += await _pages(port, tokens[0], kept, pid)
    return figures


async def _rate(callers: int, act: Callable[[int], Awaitable[object]]) -> float:
    """Calls per second of so many callers, each one after the other."""
    until, done = time.perf_counter() + ROUND, 0

    async def go_on() -> None:
        nonlocal done
        while time.perf_counter() < until:
            done += 1
            await act(done)

    await asyncio.gather(*[go_on() for _ in range(callers)])
    return done / ROUND


async def _requests(port: int, token: str, one: float, bulk: float, pid: int) -> list[Figure]:
    lines: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        lines.put_nowait(await Connection(port, token).open())
    taken: list[float] = []

    async def sent(method: str, path: str, body: object = None) -> bytes:
        line = await lines.get()
        began = time.perf_counter()
        try:
            return await line.send(method, path, body)
        finally:
            taken.append((time.perf_counter() - began) * 1000)
            lines.put_nowait(line)

    used = [cpu_of(pid)]
    posts = await _rate(CONNECTIONS, lambda n: sent("POST", "/api/v1/runs", {"task": "noop", "args": {"i": n}}))
    used.append(cpu_of(pid))
    batch = {"runs": [{"task": "noop", "args": {"i": n}} for n in range(1000)]}
    batches = 1000 * await _rate(2, lambda _: sent("POST", "/api/v1/runs/batch", batch))
    used.append(cpu_of(pid))
    id = json.loads(await sent("POST", "/api/v1/runs", {"task": "noop", "args": {"i": 0}}))["run"]
    taken.clear()
    gets = await _rate(4, lambda _: sent("GET", f"/api/v1/runs/{id}"))
    used.append(cpu_of(pid))
    rates = (posts, batches, gets)
    post, many_, get = [1000 * (b - a) / (n * ROUND) for (a, b), n in zip(pairwise(used), rates, strict=True)]
    return [
        Figure(f"POST /runs, of the store's one by one ({one:,.0f}/s)", posts / one, "x", 0.7, False, post),
        Figure(f"POST /runs/batch, of submit_many ({bulk:,.0f}/s)", batches / bulk, "x", 0.6, False, many_),
        Figure("GET /runs/{id}, 4 connections", gets, "/s", 2000, False, get),
        Figure("GET /runs/{id}, 4 connections, p99", share_of(taken, 0.99), "ms", 10),
    ]


def share_of(values: list[float], share: float) -> float:
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(share * len(ranked)))]


async def _pull(port: int, token: str, pid: int) -> Figure:
    """One worker over HTTP, which claims, and settles at once, in batches."""
    done = 0
    async with PullWorker(f"http://127.0.0.1:{port}", ["noop"], token=token) as worker:
        began, before = time.perf_counter(), cpu_of(pid)
        while done < PULL_RUNS:
            runs = await worker.claim(PULL_BATCH, wait=0)
            assert runs
            await worker.settle(*[PullOutcome(run=run.id, fence=run.fence, outcome="succeeded") for run in runs])
            done += len(runs)
        rate, cpu = done / (time.perf_counter() - began), 1000 * (cpu_of(pid) - before) / done
    return Figure(f"a pull worker, batches of {PULL_BATCH}", rate, "runs/s", 1500, False, cpu)


async def _metrics(port: int, token: str, pid: int) -> Figure:
    """Each task has a run, so that each has its series."""
    await app.submit_many([task.bind() for task in many])
    line = await Connection(port, token).open()
    taken: list[float] = []
    before, text = cpu_of(pid), b""
    for _ in range(20):
        began = time.perf_counter()
        text = await line.send("GET", "/metrics")
        taken.append((time.perf_counter() - began) * 1000)
    line.close()
    queued = sum(depth.queued for depth in (await app.depths()).values())
    name = f"GET /metrics with {TASKS} tasks and {queued:,} queued runs ({len(text) / 1e6:.2g} MB), p95"
    return Figure(name, share_of(taken, 0.95), "ms", 100, cpu=1000 * (cpu_of(pid) - before) / 20)


async def _event(port: int, token: str) -> Figure:
    """From a submit in this process to the message that a stream of the service brings."""
    line = await Connection(port, token).open()
    reader = await line.follow("/api/v1/events?topics=runs")
    await reader.readuntil(b"event: hello")
    taken: list[float] = []
    for n in range(40):
        await asyncio.sleep(0.3 + n % 7 * 0.05)
        began = time.perf_counter()
        run = await noop.submit(n)
        await reader.readuntil(run.id.encode())
        taken.append((time.perf_counter() - began) * 1000)
    line.close()
    return Figure("from a submit in another process to the client of a stream, p95", share_of(taken, 0.95), "ms", 250)


async def _streams(port: int, tokens: list[str], pid: int) -> Figure:
    lines: list[Connection] = []
    readers: list[asyncio.Task[None]] = []

    async def drink(reader: asyncio.StreamReader) -> None:
        while await reader.read(1 << 16):
            pass

    for n in range(STREAMS):
        line = await Connection(port, tokens[1 + n // PER_TOKEN]).open()
        readers.append(asyncio.create_task(drink(await line.follow("/api/v1/events?topics=runs"))))
        lines.append(line)
    await asyncio.sleep(2)
    before, began = cpu_of(pid), time.perf_counter()
    for n in range(10):
        await noop.submit(n)
        await asyncio.sleep(1)
    share = 100 * (cpu_of(pid) - before) / (time.perf_counter() - began)
    for line in lines:
        line.close()
    await asyncio.gather(*readers, return_exceptions=True)
    return Figure(f"{STREAMS:,} streams with one event a second, of a core", share, "%", 50)


def cpu_of(pid: int) -> float:
    """Seconds that the threads of a process have worked. The clock of /proc/PID/stat has ticks of 10 ms."""
    worked = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):  # it has just ended
            worked += int((thread / "schedstat").read_text().split()[0])
    return worked / 1e9


async def _pages(port: int, token: str, kept: int, pid: int) -> list[Figure]:
    for first in range(0, kept, 1000):
        await app.submit_many([noop.bind(n) for n in range(first, first + 1000)])
    line = await Connection(port, token).open()
    figures: list[Figure] = []
    for name, query in (("the first page", ""), ("of a task and state", "?task=noop&state=queued")):
        taken: list[float] = []
        before = cpu_of(pid)
        for _ in range(40):
            began = time.perf_counter()
            await line.send("GET", f"/api/v1/runs{query}")
            taken.append((time.perf_counter() - began) * 1000)
        cpu = 1000 * (cpu_of(pid) - before) / 40
        figures.append(Figure(f"GET /runs with {kept:,} kept: {name}, p95", share_of(taken, 0.95), "ms", 50, cpu=cpu))
    line.close()
    return figures
