"""One chaos run: start everybody, cause trouble, heal, wait until all work is done, and check what happened."""

import asyncio
import os
import re
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rota import Every, Rota
from rota.domain.decision import DecisionCount
from rota.domain.run import Run
from rota.store import RowQuery, RunQuery
from tests.chaos import history, tasks
from tests.chaos.checker import Evidence, check
from tests.chaos.crew import Crew, left_behind
from tests.chaos.places import StoreName, place_of
from tests.chaos.troubles import Troubles

WORKERS, SUBMITTERS = 4, 2
SCHEDULES = 3
DRAIN = 180.0
"""Seconds after the last fault within which all work must be done."""
PAGE = 1000


@dataclass(frozen=True)
class Outcome:
    figures: dict[str, str]
    problems: list[str]


def play(store: StoreName, seconds: float, seed: int, folder: Path) -> Outcome:
    (folder / "history").mkdir(exist_ok=True)
    os.environ[history.FOLDER] = str(folder / "history")
    with place_of(store, folder) as place:
        app = Rota(place.direct_url)
        asyncio.run(put_schedules(app))
        with closing(Crew(place, folder, WORKERS, SUBMITTERS, seed)) as crew:
            troubles = Troubles(place, crew, seed)
            try:
                troubles.cause(seconds)
            finally:
                troubles.heal()
            codes = [(member.name, member.end()) for member in crew.submitters]
            healed = time.monotonic()
            left = asyncio.run(drain(app))
            drained = time.monotonic() - healed
            codes += [(member.name, member.end()) for member in crew.workers]
            logs = "".join(member.log for member in crew.everybody)
        runs, decisions = asyncio.run(read_all(app))
    orphans = left_behind(folder)
    evidence = Evidence(list(history.read(folder / "history")), runs, decisions)
    problems = [*troubles.problems, *check(evidence)]
    problems += [f"{name} ended with {code} after SIGTERM" for name, code in codes if code != 0]
    problems += [f"{count} runs of {task} are unfinished {DRAIN:g} s after the last fault" for task, count in left]
    problems += [f"process {pid} outlives the worker that started it" for pid in orphans]
    return Outcome(figures(evidence, troubles, logs, drained), problems)


async def put_schedules(app: Rota) -> None:
    """Schedules that fire every second, each tick once, whatever happens."""
    tick = app.task(name="tick", max_losses=tasks.LOSSES)(tasks.tick.fn)
    async with app.client():
        for n in range(SCHEDULES):
            await app.schedules.put(
                f"tick-{n}", Every(seconds=1), tick.bind(f"tick-{n}"), overlap="allow", catch_up="all"
            )
        paced = app.task(name="paced", retry=tasks.RETRY, max_losses=tasks.LOSSES)(tasks.paced.fn)
        await app.schedules.put("paced", Every(seconds=1), paced.bind(), overlap="queue", catch_up="latest")


async def drain(app: Rota) -> list[tuple[str, int]]:
    """Wait until nothing is unfinished; what is left of which task after `DRAIN` seconds."""
    deadline = time.monotonic() + DRAIN
    async with app.client() as client:
        for n in range(SCHEDULES):
            await app.schedules.pause(f"tick-{n}")
        await app.schedules.pause("paced")
        while True:
            depths = await app.depths()
            left = [(task, total) for task, depth in depths.items() if (total := depth.queued + depth.running)]
            if not left or time.monotonic() > deadline:
                return left
            await client.news()


async def read_all(app: Rota) -> tuple[list[Run], list[DecisionCount]]:
    async with app.client() as client:
        store = await client.store()
        runs: list[Run] = []
        page = await store.runs(RunQuery(limit=PAGE))
        runs += page.runs
        while page.cursor is not None and page.runs:
            page = await store.runs(RunQuery(limit=PAGE, cursor=page.cursor))
            runs += page.runs
        decisions = (await store.rows(DecisionCount, RowQuery())).items
    return runs, decisions


def figures(evidence: Evidence, troubles: Troubles, logs: str, drained: float) -> dict[str, str]:
    """What a reader wants to know of this run."""
    events = evidence.events
    attempts = [attempt for run in evidence.runs for attempt in run.attempts]
    shown: dict[str, int] = {
        "submits acknowledged": evidence.count("acknowledged") + evidence.count("chain"),
        "submits given up (the store was away)": evidence.count("given up"),
        "runs recorded": len(evidence.runs),
        "calls begun": evidence.count("begin"),
        "calls lost and made again": sum(attempt.outcome == "lost" for attempt in attempts),
        "endings refused (a fence was too old)": len(re.findall("no longer ours", logs)),
        "endings that had to be sent again": len(re.findall("cannot record", logs)),
        **{f"fault: {kind.replace('_', ' ')}": count for kind, count in sorted(troubles.counts.items())},
    }
    longest = {"longest pause between two calls (s)": f"{longest_pause(events):.1f}"}
    return {name: f"{count:,}" for name, count in shown.items()} | longest | {"drained in (s)": f"{drained:.1f}"}


def longest_pause(events: Sequence[history.Event]) -> float:
    begins = [event["mono"] for event in events if event["event"] == "begin"]
    return max((b - a for a, b in pairwise(begins)), default=0.0)
