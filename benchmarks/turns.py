"""Two stores that differ in one thing, measured in turns: whatever slows the machine down meets both."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Protocol

from rota import Rota
from rota.store import Store

BATCH = 100
TURNS = 30
WARM_UP = 40
"""Turns before those that count. They grow the write-ahead log to its full size, in both stores: an fsync of a file
that grows costs more, which would be held against the store that is smaller."""
LEASE = 3600.0


class Taker(Protocol):
    async def turn(self) -> None: ...


@asynccontextmanager
async def fresh_store() -> AsyncIterator[tuple[Rota, Store]]:
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
        app = Rota(f"sqlite:///{Path(folder) / 'rota.db'}")
        async with app.backend.open() as store:
            yield app, store


async def take_turns(one: Taker, other: Taker) -> None:
    for n in range(WARM_UP + TURNS):
        for taker in (one, other) if n % 2 else (other, one):
            await taker.turn()


def middle_of(times: list[float]) -> float:
    """The median of one sample per turn, of the turns that count."""
    return median(times[WARM_UP:])
