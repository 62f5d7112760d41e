"""Two stores that differ in one thing, measured in turns: whatever slows the machine down meets both."""

import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
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


@contextmanager
def fresh_url(server: str | None = None) -> Iterator[str]:
    """A store with nothing in it: a namespace of its own on that server, or else a file."""
    if server is not None:
        option = "schema" if server.startswith("postgres") else "namespace"
        yield f"{server}{'&' if '?' in server else '?'}{option}=b{uuid.uuid4().hex[:8]}"
        return
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
        yield f"sqlite:///{Path(folder) / 'rota.db'}"


@asynccontextmanager
async def fresh_store(server: str | None = None) -> AsyncIterator[tuple[Rota, Store]]:
    with fresh_url(server) as url:
        app = Rota(url)
        async with app.backend.open() as store:
            yield app, store


async def take_turns(one: Taker, other: Taker) -> None:
    for n in range(WARM_UP + TURNS):
        for taker in (one, other) if n % 2 else (other, one):
            await taker.turn()


def middle_of(times: list[float]) -> float:
    """The median of one sample per turn, of the turns that count."""
    return median(times[WARM_UP:])
