"""What lists cost while a store keeps many runs: `python -m benchmarks --part kept [--store sqlite] [--kept 1000000]`.

The requests go into the service within this process, without a socket. A figure is the CPU time of this process and of
the server of the store for one request, because a busy machine changes that little.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from benchmarks.http import Figure, cpu_of, share_of
from benchmarks.report import Grid
from benchmarks.servers import POSTGRES
from rota import Rota
from rota.domain.failure import Failure
from rota.domain.lifecycle import Cancelled, Failed, Outcome, Succeeded, settlement_of
from rota.domain.run import NewRun, Run
from rota.store import ClaimRequest, Store
from rota.task import call_of
from rota.web import Principal, asgi
from rota.web.rights import ROLES
from storekit.servers import PostgresServer, RedisServer, Server, postgres_of_machine, redis_of_machine
from storekit.servers.binaries import valkey_of_wheel
from storekit.servers.guard import children

BATCH, TURNS, LEASE = 1000, 60, 3600.0
TASKS, KEYS, QUEUED = 20, 10_000, 10_000
PAGE, FACETS = 50, 100
"""Milliseconds that a page, and the counts beside it, may take."""
PAGES = {
    "the first page": "",
    "of a state": "?state=failed",
    "of a task": "?task=task07",
    "of a task and a state": "?task=task07&state=failed",
    "of a key": "?key=user42",
    "by end": "?order=finished",
    "queued, by due time": "?state=queued&order=due",
    "of an error that is rare": "?error=Rare",
    "of a schedule that made none": "?schedule=none",
    "of a worker that is not there": "?worker=nobody",
    "with a text that is not there": "?q=nowhere",
}
COUNTS = {"by state": "?group_by=state", "by task": "?group_by=task", "of a task": "?task=task07"}


def kept(words: Sequence[str]) -> Grid:
    parser = argparse.ArgumentParser(prog="python -m benchmarks --part kept")
    parser.add_argument("--store", choices=["memory", "sqlite", "redis", "postgres"], default="sqlite")
    parser.add_argument("--kept", type=int, default=1_000_000)
    given = parser.parse_args(words)
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="rota-bench-")))
        server = _server(given.store, running)
        url = server.url if server else "memory://" if given.store == "memory" else f"sqlite:///{folder / 'rota.db'}"
        figures = asyncio.run(_measure(url, server, given.kept))
    heads = [f"{given.store}, {given.kept:,} runs kept, CPU p95 of a request", "rota", "bar"]
    return Grid(heads, [figure.cells[:3] for figure in figures])


def _server(store: str, running: ExitStack) -> Server | None:
    if store == "redis":
        return running.enter_context(RedisServer(redis_of_machine() or valkey_of_wheel()))
    return running.enter_context(PostgresServer(postgres_of_machine()[0], POSTGRES)) if store == "postgres" else None


async def _measure(url: str, server: Server | None, kept: int) -> list[Figure]:
    app = Rota(url)
    async with app.client() as client:
        await _fill(app, await client.store(), kept)
        service = asgi(app, lambda _: Principal("bench", ROLES["admin"]), hosts=[])
        figures = []
        for name, query in PAGES.items():
            figures.append(Figure(name, await _cpu(service, f"/api/v1/runs{query}", server), "ms", PAGE))
        for name, query in COUNTS.items():
            used = await _cpu(service, f"/api/v1/runs/count{query}", server)
            figures.append(Figure(f"count {name}", used, "ms", FACETS))
    return figures


async def _fill(app: Rota, store: Store, kept: int) -> None:
    """Put runs of some tasks and many keys, in no order, and end all but the last of them, some by failing."""

    async def work(i: int) -> int:
        return i

    tasks = [app.task(name=f"task{n:02}", key="user{i}")(work) for n in range(TASKS)]
    names, chance, began = [task.name for task in tasks], random.Random(7), time.monotonic()
    for first in range(0, kept, BATCH):
        await store.put([_run(tasks, chance) for _ in range(BATCH)])
        if first < kept - QUEUED:
            claim = await store.claim(ClaimRequest("bench", first + 1, names, BATCH, LEASE, offers=False))
            await store.settle([settlement_of(run, _outcome(run, chance), 0.01) for run in claim.runs])
        if first % 100_000 == 0:
            print(f"  {first:,} runs, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def _run(tasks: Sequence[Any], chance: random.Random) -> NewRun:
    return call_of(chance.choice(tasks).bind(chance.randrange(KEYS))).to_run()


def _outcome(run: Run, chance: random.Random) -> Outcome:
    drawn = chance.random()
    if drawn < 0.02:
        return Failed(Failure("Rare" if drawn < 0.00001 else "ValueError", f"bad {run.key}", 'File "work.py", line 1'))
    return Cancelled() if drawn < 0.03 else Succeeded(b'{"ok":true}')


async def _cpu(service: ASGIApp, path: str, server: Server | None) -> float:
    """Milliseconds of this process and of the server's processes: 95 % of the requests take no more."""
    taken: list[float] = []
    for _ in range(TURNS + 3):
        pids = _pids(server)
        began, before = time.process_time(), _used(pids)
        await _get(service, path)
        taken.append((time.process_time() - began + _used(pids) - before) * 1000)
    return share_of(taken[3:], 0.95)


def _pids(server: Server | None) -> list[int]:
    return [] if server is None else [server.pid, *children(server.pid)]


def _used(pids: Iterable[int]) -> float:
    return sum(cpu_of(pid) for pid in pids)


async def _get(service: ASGIApp, path: str) -> Any:
    place, _, query = path.partition("?")
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": place,
        "raw_path": place.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    parts: list[bytes] = []
    status = 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)
        parts.append(message.get("body", b""))

    await service(scope, receive, send)
    assert status == 200, parts
    return json.loads(b"".join(parts))
