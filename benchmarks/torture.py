"""A store under a transaction that stays open: from submit to start, window by window.

`python -m benchmarks --part torture [--store postgres] [--seconds 1800] [--rate 800] [--workers 1] [--schedules 0]`.
PostgreSQL: while one idle transaction has written a row and four REPEATABLE READ readers have read the store, VACUUM
may remove no dead row. SQLite: while one reader keeps its transaction open, no checkpoint may begin the log anew.
The last column is the CPU of the sender and of the workers for each run (Linux): other work on the machine does not
change it much, so it shows what grows.
"""

import argparse
import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import asyncpg
import uvloop

from benchmarks.figures import percentiles
from benchmarks.report import Grid
from benchmarks.stamps import Stamps
from rota import Limit, Rota, Task
from storekit.servers import PostgresServer, postgres_of_machine

WINDOW = 20.0
SEATS = 50
BATCH = 8
OPTIONS = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "256MB", "max_wal_size": "4GB"}
DEAD = (
    "SELECT relname, n_dead_tup FROM pg_stat_user_tables WHERE schemaname = 'rota' AND n_dead_tup > 1000"
    " ORDER BY n_dead_tup DESC"
)


def options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks --part torture", description=__doc__)
    parser.add_argument("--store", choices=["postgres", "sqlite"], default="postgres")
    parser.add_argument("--calm", type=float, default=40, help="seconds before the transactions open")
    parser.add_argument("--seconds", type=float, default=1800, help="seconds for which they stay open")
    parser.add_argument("--after", type=float, default=60, help="seconds after they have ended")
    parser.add_argument("--rate", type=int, default=800, help="runs a second")
    parser.add_argument("--workers", type=int, default=1, help="worker processes")
    parser.add_argument("--readers", type=int, default=4, help="REPEATABLE READ transactions that read the store")
    parser.add_argument("--schedules", type=int, default=0, help="schedules that fire every minute besides")
    parser.add_argument("--limit", type=int, default=0, help="of the task; 0: it has none")
    parser.add_argument("--submit", action="store_true", help="one of the transactions has submitted a run")
    return parser.parse_args(words)


def torture(words: Sequence[str]) -> Grid:
    given = options(words)
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="rota-bench-")))
        if given.store == "sqlite":
            file = folder / "rota.db"
            return _measure(f"sqlite:///{file}", folder, given, _hold_file(file, given))
        server = running.enter_context(PostgresServer(postgres_of_machine()[0], OPTIONS, tcp=True))
        return _measure(server.url, folder, given, _hold(server.url, given))


def _measure(url: str, folder: Path, given: argparse.Namespace, hold: Coroutine[None, None, None]) -> Grid:
    """Send runs and work on them while `hold` opens and ends its transactions."""
    total = given.calm + given.seconds + given.after
    sent, started = (folder / name for name in ("sent", "started"))
    for path in (sent, started):
        Stamps.create(path, int(given.rate * total) + 1)
    asyncio.run(_prepare(url, given.limit))
    with ExitStack() as running:
        work = ("work", url, str(started), str(given.limit), str(given.schedules))
        pids = [running.enter_context(_process(*work)) for _ in range(given.workers)]
        time.sleep(3)
        with _process("send", url, str(sent), str(given.limit), str(given.rate), str(total)) as sender:
            cpu = asyncio.run(_watched(hold, [*pids, sender]))
        return _windows(Stamps(sent), Stamps(started), cpu, given)


async def _watched(hold: Coroutine[None, None, None], pids: Sequence[int]) -> list[float]:
    """Return the seconds of CPU that the processes have taken, at the beginning of each window and at the end."""
    holding = asyncio.create_task(hold)
    taken: list[float] = []
    while not holding.done():
        taken.append(sum(map(_cpu_seconds, pids)))
        await asyncio.wait((holding,), timeout=WINDOW)
    await holding
    return [*taken, sum(map(_cpu_seconds, pids))]


def _cpu_seconds(pid: int) -> float:
    """Return the seconds of CPU of a process; 0 on a system that does not say so in /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _prepare(url: str, limit: int) -> None:
    async with _app(url, limit)[0].client():
        pass


async def _hold_file(file: Path, given: argparse.Namespace) -> None:
    """Keep a read transaction of SQLite open after the calm, and say how long the log was."""
    log = file.with_name(file.name + "-wal")
    await asyncio.sleep(given.calm)
    reader = sqlite3.connect(file, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM runs").fetchone()
    print(f"the log at first: {log.stat().st_size:,} bytes", file=sys.stderr, flush=True)
    await asyncio.sleep(given.seconds)
    print(f"the log at the end: {log.stat().st_size:,} bytes", file=sys.stderr, flush=True)
    reader.execute("COMMIT")
    reader.close()
    await asyncio.sleep(given.after)
    print(f"the log afterwards: {log.stat().st_size:,} bytes", file=sys.stderr, flush=True)


async def _hold(url: str, given: argparse.Namespace) -> None:
    """Open the transactions after the calm, and end them in time."""
    began = time.time()
    await asyncio.sleep(given.calm)
    held = [await asyncpg.connect(url) for _ in range(given.readers + 1)]
    for place, connection in enumerate(held):
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        if place == 0:
            await connection.execute("CREATE TABLE kept_open (x int); INSERT INTO kept_open VALUES (1)")
            if given.submit:
                await _app(url, given.limit)[1].using(connection=connection).submit(0)
        else:
            await connection.fetch("SELECT count(*) FROM rota.queue")
    await asyncio.sleep(began + given.calm + given.seconds - time.time())
    looker = await asyncpg.connect(url)
    dead = ", ".join(f"{count:,} in {name}" for name, count in await looker.fetch(DEAD))
    print(f"dead rows at the end: {dead or 'none'}", file=sys.stderr, flush=True)
    await looker.close()
    for connection in held:
        await connection.execute("COMMIT")
        await connection.close()
    await asyncio.sleep(given.after)


def _windows(sent: Stamps, started: Stamps, cpu: Sequence[float], given: argparse.Namespace) -> Grid:
    total = given.calm + given.seconds + given.after
    asked = sent.read(int(given.rate * total))
    got = started.read(len(asked))
    first = asked[0]
    rows: list[tuple[str, ...]] = []
    for place, begin in enumerate(range(0, int(total), int(WINDOW))):
        here = [
            (one, other)
            for one, other in zip(asked, got, strict=True)
            if one and begin <= (one - first) / 1e9 < begin + WINDOW
        ]
        late = [(other - one) / 1e6 for one, other in here if other]
        if late:
            shown = percentiles(late)
            state = (
                "clean" if begin + WINDOW <= given.calm else "open" if begin < given.calm + given.seconds else "after"
            )
            figures = (f"{shown['p50']:.1f}", f"{shown['p99']:.1f}", f"{100 * len(late) / len(here):.1f} %")
            took = cpu[place + 1] - cpu[place] if place + 1 < len(cpu) else 0.0
            rows.append((f"{begin} s, {state}", *figures, f"{took / len(late) * 1e6:.0f}" if took else ""))
    return Grid(("window", "p50, ms", "p99, ms", "started", "CPU, µs a run"), rows)


@contextmanager
def _process(*words: str) -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.torture", *words])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def _app(url: str, limit: int, stamps: Stamps | None = None) -> tuple[Rota, Task[[int], [int], object, None]]:
    app = Rota(url, concurrency=SEATS)

    async def noop(i: int) -> None:
        if stamps is not None:
            stamps.mark(i)

    return app, app.task(limit=Limit(limit) if limit else None)(noop)


async def _work(url: str, path: str, limit: str, schedules: str) -> None:
    app, _ = _app(url, int(limit), Stamps(Path(path)))

    @app.task
    async def tick(k: int) -> None: ...

    async with app:
        if int(schedules):
            await app.schedules.put_many([(f"s{k}", "* * * * *", tick.bind(k)) for k in range(int(schedules))])
        await asyncio.Event().wait()


async def _send(url: str, path: str, limit: str, rate: str, seconds: str) -> None:
    """An open-loop stream: what is sent does not wait for what was sent before."""
    app, noop = _app(url, int(limit))
    stamps = Stamps(Path(path))
    async with app.client(), asyncio.TaskGroup() as group:
        began = time.perf_counter()
        for first in range(0, int(int(rate) * float(seconds)), BATCH):
            await asyncio.sleep(max(0.0, began + first / int(rate) - time.perf_counter()))
            calls = [noop.bind(i) for i in range(first, first + BATCH)]
            for i in range(first, first + BATCH):
                stamps.mark(i)
            group.create_task(app.submit_many(calls))


def main(role: str, *words: str) -> None:
    if role == "work":
        uvloop.run(_work(*words))
    else:
        uvloop.run(_send(*words))


if __name__ == "__main__":
    main(*sys.argv[1:])
