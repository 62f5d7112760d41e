"""`make bench ARGS=--guard`: has rota become slower? What a run costs, beside a bare loop on the same store.

Costs are CPU time of this process and of the server, taken in turns, so that neither the machine nor its mood decides.
The guard compares the ratios with those of `guard.json` and fails if a speed has fallen by more than a quarter.
`--record` writes the ratios down as the new ones.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Literal

import msgspec
from msgspec import Struct

from benchmarks.bare import TAKEN, Bare, BareMemory, BarePostgres, BareRedis, BareSqlite
from benchmarks.report import Grid
from rota import Rota
from storekit.servers import PostgresServer, RedisServer, Server, postgres_of_wheel, valkey_of_wheel

RECORD = Path(__file__).with_name("guard.json")
FALL = 0.25
"""By so much a speed may fall before the guard fails."""
CHUNK = 1000
PROC = Path("/proc")

StoreKind = Literal["memory", "sqlite", "redis", "postgres"]
STORES: tuple[StoreKind, ...] = ("memory", "sqlite", "redis", "postgres")


class Turn(Struct, frozen=True):
    """Microseconds of CPU per run, or per row of the bare loop."""

    submit: float
    drain: float


class Speed(Struct, frozen=True):
    """`share`: what the bare loop costs as a part of what rota costs. The more, the faster is rota."""

    name: str
    rota: float
    bare: float
    recorded: float | None

    @property
    def share(self) -> float:
        return self.bare / self.rota

    @property
    def fell(self) -> bool:
        return self.recorded is not None and self.share < self.recorded * (1 - FALL)


def guard(options: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks --guard", allow_abbrev=False)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--stores", default=",".join(STORES))
    parser.add_argument("--record", action="store_true", help="write the ratios into guard.json")
    chosen = parser.parse_args(options)
    kinds: list[StoreKind] = [kind for kind in STORES if kind in chosen.stores.split(",")]
    recorded = msgspec.json.decode(RECORD.read_bytes(), type=dict[str, float]) if RECORD.exists() else {}
    found = [speed for kind in kinds for speed in measured(kind, chosen.rounds, chosen.runs, recorded)]
    print(table(found).markdown())
    if chosen.record:
        shares = recorded | {speed.name: round(speed.share, 4) for speed in found}
        RECORD.write_bytes(msgspec.json.format(msgspec.json.encode(shares), indent=2) + b"\n")
        return 0
    return 1 if any(speed.fell for speed in found) else 0


def table(found: Sequence[Speed]) -> Grid:
    heads = ("measure", "bare / rota", "recorded", "rota, µs of CPU", "bare loop, µs of CPU", "")
    rows = [
        (
            each.name,
            f"{each.share:.3f}",
            "" if each.recorded is None else f"{each.recorded:.3f}",
            f"{each.rota:.1f}",
            f"{each.bare:.1f}",
            "FELL" if each.fell else "",
        )
        for each in found
    ]
    return Grid(heads, rows)


def measured(kind: StoreKind, rounds: int, runs: int, recorded: dict[str, float]) -> list[Speed]:
    ours, bare = asyncio.run(_in_turns(kind, rounds, runs))
    names = {"submit in bulk": "submit", "drain": "drain"}
    return [
        Speed(
            f"{kind}: {name}",
            median(getattr(turn, field) for turn in ours),
            median(getattr(turn, field) for turn in bare),
            recorded.get(f"{kind}: {name}"),
        )
        for name, field in names.items()
    ]


async def _in_turns(kind: StoreKind, rounds: int, runs: int) -> tuple[list[Turn], list[Turn]]:
    ours: list[Turn] = []
    bare: list[Turn] = []
    async with _stage(kind) as (url, loop, server):
        for place in range(rounds + 1):
            turns = await _rota(url, runs, server), await _bare(loop, runs, server)
            if place:  # the first turn warms up
                ours.append(turns[0])
                bare.append(turns[1])
    return ours, bare


@asynccontextmanager
async def _stage(kind: StoreKind) -> AsyncGenerator[tuple[str, Bare, Server | None]]:
    """A store for rota, and a place for the bare loop on the same server or disk."""
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
        if kind == "redis":
            with RedisServer(valkey_of_wheel()) as redis:
                yield redis.url, BareRedis(redis), redis
        elif kind == "postgres":
            with PostgresServer(postgres_of_wheel(), {"shared_buffers": "256MB"}) as postgres:
                yield postgres.url, await BarePostgres.open(postgres.url), postgres
        elif kind == "sqlite":
            yield f"sqlite:///{folder}/rota.db", BareSqlite(Path(folder) / "bare.db"), None
        else:
            yield "memory://", BareMemory(), None


async def _rota(url: str, runs: int, server: Server | None) -> Turn:
    app, left, done = Rota(url, concurrency=TAKEN), runs, asyncio.Event()

    @app.task
    async def noop(i: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    async def submit() -> None:
        for first in range(0, runs, CHUNK):
            await app.submit_many([noop.bind(i) for i in range(first, min(runs, first + CHUNK))])

    async def drain() -> None:
        await app.start()
        await done.wait()

    async with app.client():
        turn = Turn(await _cost(submit, runs, server), await _cost(drain, runs, server))
        await app.stop()
        return turn


async def _bare(loop: Bare, rows: int, server: Server | None) -> Turn:
    async def put() -> None:
        for first in range(0, rows, CHUNK):
            await loop.put(range(first, min(rows, first + CHUNK)))

    return Turn(await _cost(put, rows, server), await _cost(lambda: loop.take(rows), rows, server))


async def _cost(work: Callable[[], Awaitable[None]], count: int, server: Server | None) -> float:
    """Return what `work` takes of the CPU, here and at the server, in microseconds for each of `count`."""
    before, of_server = time.process_time(), _server_seconds(server)
    await work()
    return (time.process_time() - before + _server_seconds(server) - of_server) / count * 1e6


def _server_seconds(server: Server | None) -> float:
    """CPU seconds of a server and of its processes, to the nanosecond; of those that have ended, nothing."""
    if server is None:
        return 0.0
    pids = [server.pid, *(pid for pid in map(int, filter(str.isdigit, os.listdir(PROC))) if _parent(pid) == server.pid)]
    spent = [path.read_text() for pid in pids for path in (PROC / str(pid) / "task").glob("*/schedstat")]
    return sum(int(text.split()[0]) for text in spent) / 1e9


def _parent(pid: int) -> int | None:
    try:
        return int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None  # it has ended meanwhile
