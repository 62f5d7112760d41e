"""A fan-out with its gather, beside as many plain runs: `submit_many` and drain."""

import asyncio
import sys
import time

from benchmarks.figures import Cost
from benchmarks.peer_rota import SEATS
from benchmarks.settings import Settings
from benchmarks.turns import fresh_url
from rota import Results, Rota

FANNED = 10_000


def fan_out(settings: Settings, server: str | None = None, children: int = FANNED) -> list[Cost]:
    plain: list[float] = []
    fanned: list[float] = []
    for turn in range(settings.rounds):
        for with_gather in (True, False) if turn % 2 else (False, True):
            with fresh_url(server) as url:
                (fanned if with_gather else plain).append(asyncio.run(_seconds(url, children, with_gather)))
    return [Cost(f"a fan-out of {children:,} with its gather, beside as many plain runs", "s", fanned, plain, goal=2.0)]


async def _seconds(url: str, children: int, with_gather: bool) -> float:
    """Seconds from the submit until all have ended."""
    app = Rota(url, concurrency=SEATS)
    left, all_called = children, asyncio.Event()

    @app.task
    async def double(n: int) -> int:
        nonlocal left
        left -= 1
        if not left:
            all_called.set()
        return 2 * n

    @app.task
    async def gather(results: Results[int]) -> int:
        return sum([result async for result in results])

    async with app:
        began = time.perf_counter()
        if with_gather:
            handle = await (double.map(range(children)) >> gather).submit()
            assert await handle.result() == children * (children - 1)
        else:
            for first in range(0, children, 1000):
                await app.submit_many([double.bind(n) for n in range(first, first + 1000)])
            await all_called.wait()
            while any(depth.queued or depth.running for depth in (await app.client().depths()).items):
                await app.client().news(0.05)
        return time.perf_counter() - began


if __name__ == "__main__":
    for cost in fan_out(Settings(rounds=1), sys.argv[1] if len(sys.argv) > 1 else None):
        print(cost.name, cost.cost, cost.measure, f"{cost.ratio.middle:.2f}x")
