"""Two workers are killed and frozen in turn: calls that must keep out of each other's way do, and keep their queue."""

import asyncio
import itertools
import signal
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from rota import Rota, Run, RunHandle, State
from rota.domain.decision import DecisionCount, Reason
from rota.store import RowQuery, RunQuery
from tests.chaos import history
from tests.faults.crowded import LIMITED, QUEUES, REPLACED, TOTAL, define
from tests.faults.test_processes import freeze
from tests.faults.test_schedulers import all_runs
from tests.processes import Process

STAMP = 0.05
"""Seconds by which the stamp of a transaction may be before its commit."""
PATIENCE = 60.0

Call = tuple[str, int]
"""A run and its fence."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("store_url", "faults"),
    [
        ("sqlite", 2),
        ("valkey-9", 2),
        ("postgres-18", 2),
        pytest.param("sqlite", 60, marks=pytest.mark.soak),
        pytest.param("valkey-9", 60, marks=pytest.mark.soak),
        pytest.param("postgres-18", 60, marks=pytest.mark.soak),
    ],
    indirect=["store_url"],
)
async def test_calls_keep_out_of_each_others_way_whoever_dies_or_freezes(
    store_url: str, faults: int, tmp_path: Path
) -> None:
    app = Rota(store_url)
    define(app)
    folder = tmp_path / "history"
    folder.mkdir()
    async with app.client():
        handles = await submit(app, faults)
        with ExitStack() as stack:
            born = {queue: queue for queue in QUEUES}
            workers = {queue: stack.enter_context(worker(store_url, queue, queue, folder)) for queue in QUEUES}
            for number, queue in zip(range(faults), itertools.cycle(QUEUES), strict=False):
                lost = await caught(app, workers[queue], born[queue], folder)
                if number % 4 in (0, 3):
                    workers[queue].signal(signal.SIGKILL)
                    born[queue] = f"{queue} {number}"
                    workers[queue] = stack.enter_context(worker(store_url, queue, born[queue], folder))
                else:
                    await until_gone(app, lost)
                    workers[queue].signal(signal.SIGCONT)
            for handle in handles:
                await handle.result(timeout=PATIENCE)
            runs = await all_runs(await app.client().store())
        for task in REPLACED:
            decisions = (await app.client().rows(DecisionCount, RowQuery(task=task))).items
            assert Reason.CANCELLED in [row.reason for row in decisions], f"no tick replaced a run of {task}"
    assert list(broken(runs, list(history.read(folder)))) == []
    assert sum(run.losses for run in runs) >= faults // 2, "they were hit in the midst of calls"


async def submit(app: Rota, faults: int) -> list[RunHandle[None]]:
    calls = [app.tasks[name].bind() for name in LIMITED for _ in range(5 * faults)]
    placed = app.tasks["placed"]
    calls += [placed.using(queue=queue).bind() for queue in QUEUES for _ in range(5 * faults)]
    return await app.submit_many(calls)


def worker(url: str, queue: str, born: str, folder: Path) -> Process:
    env = {"ROTA_URL": url, "ROTA_LEASE": "1", "ROTA_QUEUES": f"{queue},default", "SERVES": queue, "BORN": born}
    env |= {history.FOLDER: str(folder), "ROTA_KEEP_MOST": "1000000"}
    return Process("-m", "rota", "worker", "-A", "tests.faults.crowded:app", env=env)


async def caught(app: Rota, process: Process, born: str, folder: Path) -> set[Call]:
    """Stop the worker `born` while it has runs in hand, and return its calls."""
    async with asyncio.timeout(PATIENCE):
        while True:
            await asyncio.to_thread(freeze, process, app)
            begun = {
                (event["run"], event["fence"])
                for event in history.read(folder)
                if event["event"] == "begin" and event["born"] == born
            }
            if found := begun & await running(app):
                return found
            process.signal(signal.SIGCONT)
            await app.client().news(0.1)


async def running(app: Rota) -> set[Call]:
    page = await (await app.client().store()).runs(RunQuery(state=State.RUNNING, limit=1000))
    return {(run.id, run.fence) for run in page.runs}


async def until_gone(app: Rota, calls: set[Call]) -> None:
    async with asyncio.timeout(PATIENCE):
        while calls & await running(app):
            await app.client().news(0.1)


def broken(runs: Sequence[Run], events: Sequence[history.Event]) -> Iterator[str]:
    by_id = {run.id: run for run in runs}
    begins = [event for event in events if event["event"] == "begin"]
    spans = spans_of(runs, events)
    for task in REPLACED:
        if (most := most_at_once(span for name, span in spans if name == task)) > 1:
            yield f"{most} calls of {task} at once"
    if (most := most_at_once(span for name, span in spans if name in LIMITED)) > TOTAL:
        yield f"{most} calls at once that the limit counts"
    if most < TOTAL:
        yield f"never more than {most} calls that the limit counts: the test shows nothing"
    for event in begins:
        if event["task"] == "placed" and by_id[event["run"]].queue != event["serves"]:
            yield f"a worker of {event['serves']} called {event['run']}, which is in {by_id[event['run']].queue}"
    for run in runs:
        outcomes = [attempt.outcome for attempt in run.attempts if attempt.outcome in ("failed", "succeeded")]
        if run.task == "placed" and (outcomes != ["failed", "succeeded"] or run.queue not in QUEUES):
            yield f"placed {run.id} in {run.queue} ended with {outcomes}"


def spans_of(runs: Iterable[Run], events: Iterable[history.Event]) -> list[tuple[str, tuple[float, float]]]:
    """The task and the time of each call, to its last sign of life. A call that was lost may go on when its worker
    wakes, or in the child of a frozen worker: it counts until its lease was taken from it."""
    signs: dict[Call, list[float]] = defaultdict(list)
    tasks: dict[Call, str] = {}
    for event in events:
        call = event["run"], event["fence"]
        signs[call].append(event["wall"])
        tasks[call] = event["task"]
    lost = {(run.id, a.fence): a.ended_at for run in runs for a in run.attempts if a.outcome == "lost"}
    return [
        (tasks[call], (min(seen), min(max(seen), lost.get(call, max(seen)) - STAMP))) for call, seen in signs.items()
    ]


def most_at_once(spans: Iterable[tuple[float, float]]) -> int:
    changes = sorted(change for begin, end in spans for change in ((begin, 1), (max(begin, end), -1)))
    return max(itertools.accumulate(change for _, change in changes), default=0)
