"""A flow of many steps, ten side by side, beside as many plain runs of which each submits the next when it ends: the
server's work per step, and the time from step to step."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.figures import Cost, percentiles
from benchmarks.peer_rota import SEATS
from benchmarks.settings import Settings
from benchmarks.turns import fresh_url
from rota import Flow, Period, Rota
from storekit.servers import Server

WIDE = 10
PERIOD = "2026-11-15"
TICK = os.sysconf("SC_CLK_TCK")


class Clocked:
    """An app whose task notes when it was called, and when it returned."""

    def __init__(self, url: str) -> None:
        self.app = Rota(url, concurrency=SEATS)
        self.began: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        self.all = asyncio.Event()
        self.wanted = 0

        async def step(name: str) -> None:
            self.began[name] = time.perf_counter()
            self.ended[name] = time.perf_counter()
            if len(self.ended) == self.wanted:
                self.all.set()

        async def relay(n: int) -> None:
            await step(f"r{n}")
            if n + WIDE < self.wanted:
                await self.relay.submit(n + WIDE)

        self.step, self.relay = self.app.task(step), self.app.task(relay)

    async def done(self, number: int) -> None:
        self.began.clear()
        self.ended.clear()
        self.all.clear()
        self.wanted = number

    async def settled(self) -> None:
        """All have been called, and their endings are recorded."""
        await self.all.wait()
        heard = 0
        while await self.app.depths():
            heard = await self.app.client().news(0.1, heard)

    def flow(self, steps: int) -> Flow:
        """Ten chains side by side, of a hundred steps each."""
        flow = self.app.flow("wide", once=Period.day())
        for n in range(steps):
            after = [f"s{n - WIDE}"] if n >= WIDE else []
            flow.step(self.step, name=f"s{n}", after=after, args={"name": f"s{n}"})
        return flow


def flows(settings: Settings, server: Server) -> list[Cost]:
    found: dict[str, list[float]] = {"plain": [], "flow": [], "start": [], "step": []}
    for _ in range(settings.rounds):
        with fresh_url(server.url) as url:
            for name, figure in asyncio.run(_round(url, settings, server.pid)).items():
                found[name].append(figure)
    return [
        Cost(
            "the server's work for a step, beside that for a plain run", "µs", found["flow"], found["plain"], goal=1.5
        ),
        Cost("from step to step p50, beside from submit to start", "ms", found["step"], found["start"], goal=2.0),
    ]


async def _round(url: str, settings: Settings, pid: int) -> dict[str, float]:
    here, number = Clocked(url), settings.steps
    flow = here.flow(number)
    async with here.app:
        start = await _starts(here, settings)
        await here.done(number)
        before = _seconds(pid)
        await here.app.submit_many([here.relay.bind(n) for n in range(WIDE)])
        await here.settled()
        plain = _seconds(pid) - before
        await here.done(number)
        before = _seconds(pid)
        await flow.start(PERIOD)
        await here.settled()
        flowed = _seconds(pid) - before
        hops = [here.began[f"s{n}"] - here.ended[f"s{n - WIDE}"] for n in range(WIDE, number)]
    step = percentiles([hop * 1000 for hop in hops])["p50"]
    return {"plain": plain / number * 1e6, "flow": flowed / number * 1e6, "start": start, "step": step}


async def _starts(here: Clocked, settings: Settings) -> float:
    """Milliseconds from a submit to its start, with an idle worker."""
    sent: dict[str, float] = {}
    await here.done(settings.paced)
    for n in range(settings.paced):
        await asyncio.sleep(settings.gap)
        sent[f"l{n}"] = time.perf_counter()
        await here.step.submit(name=f"l{n}")
    await here.settled()
    return percentiles([(here.began[name] - at) * 1000 for name, at in sent.items()])["p50"]


def _seconds(pid: int) -> float:
    """Of processor time that a server and all its processes have used, those that ended among them."""
    return sum(_used(one) for one in (pid, *_children(pid))) / TICK


def _children(pid: int) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(folder.name))
        if fields and int(fields[1]) == pid:
            yield int(folder.name)


def _used(pid: int) -> int:
    """User and system time, its own and of its ended children."""
    fields = _stat(pid)
    return sum(int(field) for field in fields[11:15]) if fields else 0


def _stat(pid: int) -> list[Any]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
