"""A lone submit waits for nobody: what it takes, beside one bare durable transaction of SQLite itself."""

import asyncio
import sqlite3
import tempfile
import time
from pathlib import Path

from benchmarks.figures import Cost, percentiles
from benchmarks.settings import Settings
from rota import Rota

PAUSE = 0.001
WARM_UP = 10_000
"""Runs, and rows of the bare table, written before any that count. They grow both write-ahead logs to their full size:
an fsync of a file that grows costs more."""


def lone_submit(settings: Settings) -> list[Cost]:
    ours, bare = [], []
    for _ in range(settings.rounds):
        with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
            mine, its = asyncio.run(_alternate(Path(folder), settings.lone))
        ours.append(percentiles(mine))
        bare.append(percentiles(its))
    return [
        Cost(f"a lone submit, beside a bare transaction, {p}", "ms", [x[p] for x in ours], [x[p] for x in bare])
        for p in ("p50", "p99")
    ]


async def _alternate(folder: Path, times: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each submit and of each transaction, taken in turns."""
    app = Rota(f"sqlite:///{folder / 'rota.db'}")

    @app.task
    async def noop(i: int) -> None: ...

    bare = BareSqlite(folder / "bare.db")
    for _ in range(0, WARM_UP, 1000):
        await app.submit_many([noop.bind(i) for i in range(1000)])
        bare.insert(*("x" * 500 for _ in range(1000)))
    ours: list[float] = []
    its: list[float] = []
    for i in range(times):
        await asyncio.sleep(PAUSE)
        began = time.perf_counter()
        await noop.submit(i)
        ours.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(PAUSE)
        began = time.perf_counter()
        bare.insert(str(i))
        its.append((time.perf_counter() - began) * 1000)
    await app.stop()
    return ours, its


class BareSqlite:
    """One table in a file with the settings rota uses: WAL, and an fsync per commit."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("CREATE TABLE bare (seq INTEGER PRIMARY KEY, body TEXT)")

    def insert(self, *bodies: str) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        for body in bodies:
            self._connection.execute("INSERT INTO bare (body) VALUES (?)", (body,))
        self._connection.execute("COMMIT")
