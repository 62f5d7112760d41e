"""One operation of one peer, in a process of its own: `python -m benchmarks.part PEER PLACE OPERATION [JSON]`.

The last line of its output is the answer as JSON.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.figures import percentiles
from benchmarks.peer import STAMPS, Peer, open_peer
from benchmarks.stamps import Stamps, rate

CHUNK = 1000
PATIENCE = 30.0
"""Seconds after which a worker that executes nothing is taken for broken."""


async def submit(peer: Peer, stamps: Stamps, runs: int, cap: float) -> dict[str, float]:
    """One by one, each awaited before the next, for `cap` seconds at most."""
    began, done = time.perf_counter(), 0
    while done < runs and time.perf_counter() - began < cap:
        await peer.submit(done)
        done += 1
    return {"runs": done, "rate": done / (time.perf_counter() - began)}


async def submit_many(peer: Peer, stamps: Stamps, runs: int, cap: float) -> dict[str, float]:
    began, done = time.perf_counter(), 0
    while done < runs and time.perf_counter() - began < cap:
        ids = range(done, min(runs, done + CHUNK))
        await peer.submit_many(ids)
        done = ids.stop
    return {"runs": done, "rate": done / (time.perf_counter() - began)}


async def drain(peer: Peer, stamps: Stamps, runs: int) -> dict[str, float]:
    """Submit all, then start the worker in this process: for stores that live in one."""
    await submit_many(peer, stamps, runs, PATIENCE)
    await peer.start()
    await _until(lambda: 0 not in stamps.read(runs))
    return {"rate": rate(stamps.read(runs))}


async def pace(peer: Peer, stamps: Stamps, runs: int, gap: float, here: bool) -> dict[str, float]:
    """Milliseconds from submit to start with an idle worker, `here` in this process or else in another."""
    if here:
        await peer.start()
    await peer.submit(stamps.last)
    await _until(lambda: stamps.at(stamps.last) != 0)
    await asyncio.sleep(0.5)
    sent: list[int] = []
    began = time.perf_counter()
    for i in range(runs):
        await asyncio.sleep(max(0.0, began + i * gap - time.perf_counter()))
        sent.append(time.time_ns())
        await peer.submit(i)
    await _until(lambda: 0 not in stamps.read(runs))
    return percentiles([(start - asked) / 1e6 for asked, start in zip(sent, stamps.read(runs), strict=True)])


async def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > deadline:
            raise RuntimeError(f"the worker has not executed its runs within {PATIENCE:.0f} s")
        await asyncio.sleep(0.02)


OPERATIONS: dict[str, Callable[..., Awaitable[dict[str, float]]]] = {
    "submit": submit,
    "submit_many": submit_many,
    "drain": drain,
    "pace": pace,
}


async def perform(name: str, place: Path, operation: str, given: dict[str, Any]) -> dict[str, float]:
    peer = open_peer(name, place)
    try:
        return await OPERATIONS[operation](peer, Stamps(place / STAMPS), **given)
    finally:
        await peer.stop()


def main(name: str, place: str, operation: str, given: str = "{}") -> None:
    if operation == "work":
        open_peer(name, Path(place)).work()
    else:
        answer = asyncio.run(perform(name, Path(place), operation, msgspec.json.decode(given)))
        print(msgspec.json.encode(answer).decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
