"""What a run of `POST /runs/batch` costs the service, beside what it costs a process that calls `submit_many`:
`python -m benchmarks --part batch [--store sqlite|redis|postgres] [--turns 40]`.

Both are the CPU time of one process, which a busy machine changes little, and both are measured in turns. The work of a
server is in neither of them.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.http import Connection, Figure, cpu_of, service, store_url
from benchmarks.http_app import app, noop
from benchmarks.report import Grid
from rota.client.client import move_to
from rota.stores import connect

BATCH = 1000
WARM_UP = 5
BAR = 0.6
"""The share of the rate of `submit_many` that the service reaches."""


def batch(words: Sequence[str]) -> Grid:
    parser = argparse.ArgumentParser(prog="python -m benchmarks --part batch")
    parser.add_argument("--store", choices=["sqlite", "redis", "postgres"], default="sqlite")
    parser.add_argument("--turns", type=int, default=40)
    given = parser.parse_args(words)
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="rota-bench-")))
        here, there = asyncio.run(_measure(store_url(given.store, folder, running), folder, given.turns))
    figures = [
        Figure("submit_many, a run", here, "µs", here),
        Figure("POST /runs/batch, a run", there, "µs", here / BAR),
        Figure("the rate of POST /runs/batch, of submit_many", here / there, "x", BAR, False),
    ]
    return Grid([f"{given.store}, CPU of one process", "rota", "bar"], [figure.cells[:3] for figure in figures])


async def _measure(url: str, folder: Path, turns: int) -> tuple[float, float]:
    """Return the microseconds that a run costs here, by submit_many, and in the service."""
    move_to(app.client(), connect(url))
    body = {"runs": [{"task": "noop", "args": {"i": n}} for n in range(BATCH)]}
    here = there = 0.0
    async with app.client():
        with service(url, folder) as (port, tokens, pid):
            line = await Connection(port, tokens[0]).open()
            for turn in range(-WARM_UP, turns):
                began = time.process_time()
                await app.submit_many([noop.bind(n) for n in range(BATCH)])
                here += (time.process_time() - began) if turn >= 0 else 0.0
                before = cpu_of(pid)
                await line.send("POST", "/api/v1/runs/batch", body)
                there += (cpu_of(pid) - before) if turn >= 0 else 0.0
            line.close()
    return 1e6 * here / (turns * BATCH), 1e6 * there / (turns * BATCH)
