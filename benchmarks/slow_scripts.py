"""`python -m benchmarks.slow_scripts`: the longest script of each large verb on Valkey, by its SLOWLOG.

A server serves nobody else while a script runs. A duration is that of the server's clock: on a busy machine it is an
upper bound, so the least of some rounds is told.
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any, cast

from benchmarks.report import Grid
from rota.domain.lifecycle import Succeeded
from rota.store import Command, Plan, Retention, Scope
from rota.stores.redis import RedisBackend
from storekit.contract import Stage, new_run
from storekit.servers import RedisServer, valkey_of_wheel

BOUND = 20.0
"""Milliseconds."""
Part = Callable[[Stage, int], Awaitable[None]]


async def plan(stage: Stage, size: int) -> None:
    """A plan is made, and made anew with half of its runs."""
    runs = [new_run("plan", key=f"k{n}", unique=cast("Any", "active")) for n in range(size)]
    await stage.store.put(runs, Plan("plans", frozenset(), "replanned"))
    await stage.store.put(runs[: size // 2], Plan("plans", frozenset(), "replanned"))


async def flow(stage: Stage, size: int) -> None:
    """All steps of a flow are put as one, each behind the one before."""
    names = [f"step-{n}" for n in range(size)]
    runs = [new_run("flow", id=name, needs=names[at - 1 : at] if at else ()) for at, name in enumerate(names)]
    await stage.store.put(runs)


async def clear(stage: Stage, size: int) -> None:
    for _ in range(0, size, 500):
        await stage.put(*(new_run("clear") for _ in range(500)))
    while (await stage.store.control(Command.DROP, ["clear"], of=Scope.TASKS)).items[0]:
        pass


async def sweep(stage: Stage, size: int) -> None:
    for _ in range(0, size, 500):
        await stage.put(*(new_run("sweep") for _ in range(500)))
    while (await stage.store.control(Command.DROP, ["sweep"], of=Scope.TASKS)).items[0]:
        pass
    stage.wait(100_000)
    while (await stage.store.sweep(Retention(succeeded=1, failed=1))).more:
        pass


async def release(stage: Stage, size: int) -> None:
    """A run ends for which others wait."""
    run = await stage.running()
    for _ in range(0, size, 250):
        await stage.put(*(new_run("second", needs=(run.id,)) for _ in range(250)))
    await stage.end(run, Succeeded())
    while (await stage.store.sweep(Retention())).more:
        pass


PARTS: dict[str, tuple[Part, int]] = {
    "a plan of 10,000": (plan, 10_000),
    "a flow of 1,000 steps": (flow, 1000),
    "clear 100,000": (clear, 100_000),
    "sweep 20,000 ended runs": (sweep, 20_000),
    "an end that 20,000 wait for": (release, 20_000),
}


async def longest(server: RedisServer, part: Part, size: int) -> tuple[float, int]:
    """The milliseconds of the longest script, and how many took longer than BOUND."""
    server.send("FLUSHALL")
    server.send("SLOWLOG", "RESET")
    backend = RedisBackend.from_url(f"{server.url}{'&' if '?' in server.url else '?'}namespace=slow")
    async with backend.open() as store:
        await part(Stage(backend, store), size)
    entries = cast("list[list[Any]]", server.send("SLOWLOG", "GET", "-1"))
    times = [entry[2] / 1000 for entry in entries if str(entry[3][0]).upper() in ("FCALL", "EVALSHA", "EVAL")]
    return max(times, default=0.0), sum(time > BOUND for time in times)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slow_scripts", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", default="", help="a part of a name")
    chosen = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    with RedisServer(
        valkey_of_wheel(), {"appendonly": "no", "slowlog-log-slower-than": "1000", "slowlog-max-len": "10000"}
    ) as server:
        for name, (part, size) in PARTS.items():
            if chosen.only in name:
                found = [asyncio.run(longest(server, part, size)) for _ in range(chosen.rounds)]
                time, over = min(found)
                rows.append((name, f"{time:.1f}", str(over), "met" if time <= BOUND else "missed"))
                print(rows[-1], file=sys.stderr, flush=True)
    print(Grid(("verb", "longest script, ms", f"over {BOUND:g} ms", ""), rows).markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
