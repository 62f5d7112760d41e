"""A fan-out whose workers are killed or frozen: each child is recorded once, and the gather once with all results."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rota import Rota, State
from tests.faults import tasks
from tests.processes import Process

MANY = 1000
soak = pytest.mark.soak


@pytest.fixture
async def app(store_url: str) -> AsyncIterator[Rota]:
    app = Rota(store_url)
    for task in (tasks.spread, tasks.part, tasks.whole):
        app.task(name=task.name)(task.fn)
    yield app
    await app.stop()


def worker(app: Rota, *only: str) -> Process:
    command = ["-m", "rota", "-A", "tests.faults.tasks:app", "worker", "--lease", "3"]
    return Process(*command, *(("--tasks", ",".join(only)) if only else ()), env={"ROTA_URL": app.settings.url})


async def seen(app: Rota, state: str | None = None) -> int:
    runs = app.runs(task="part") if state is None else app.runs(task="part", state=state)
    return (await runs.count(at_most=MANY)).count


async def wait_for(app: Rota, number: int, state: str | None = None) -> None:
    async with asyncio.timeout(300):
        while await seen(app, state) < number:
            await app.client().news(0.05)


async def check(app: Rota, fan: str) -> None:
    children = [run async for run in app.runs(task="part")]
    assert sorted(run.id for run in children) == sorted(f"{fan}.{index}" for index in range(MANY))
    assert {run.state for run in children} == {State.SUCCEEDED}
    gathers = [run async for run in app.runs(task="whole")]
    assert [run.id for run in gathers] == [f"{fan}.all"]


def strike(process: Process, trouble: signal.Signals) -> None:
    """Send `trouble`. A process that is frozen while it writes to a SQLite file has the only lock of the file, so that
    nobody can write: it goes on and is frozen a moment later."""
    process.signal(trouble)
    while trouble is signal.SIGSTOP and writes_to_sqlite(process.pid):
        process.signal(signal.SIGCONT)
        process.signal(trouble)


def writes_to_sqlite(pid: int) -> bool:
    """Whether the process has the write lock of a file in WAL mode (byte 120), once all its threads stand still."""
    while {state_of(thread) for thread in Path(f"/proc/{pid}/task").iterdir()} != {"T"}:
        os.sched_yield()
    locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return any(lock[3:5] == ["WRITE", str(pid)] and lock[6:] == ["120", "120"] for lock in locks)


def state_of(thread: Path) -> str:
    return (thread / "stat").read_text().rpartition(")")[2].split()[0]


async def play(app: Rota, trouble: signal.Signals) -> None:
    """The worker of the mapper meets `trouble` as soon as it has put children, and so does a worker of these."""
    chain = app.tasks["spread"].bind(MANY) >> app.tasks["part"].each() >> app.tasks["whole"]
    handle = await chain.submit()
    fan = handle.steps["spread"].id
    with worker(app, "spread") as mapper, worker(app, "part") as doomed:
        await wait_for(app, 1)
        strike(mapper, trouble)
        await wait_for(app, 1, "succeeded")
        strike(doomed, trouble)
        with worker(app, "part"):
            await wait_for(app, min(MANY, await seen(app)), "succeeded")  # the last, perhaps, before the mapper
            with worker(app):
                assert await handle.result(timeout=110) == [MANY, sum(range(MANY)), MANY, MANY, 0]
                if trouble is signal.SIGSTOP:  # the frozen workers wake and say what they did long ago
                    mapper.signal(signal.SIGCONT)
                    doomed.signal(signal.SIGCONT)
                    await app.client().news(0.5)
                await check(app, fan)


@pytest.mark.parametrize(
    ("store_url", "trouble"),
    [
        ("postgres-18", signal.SIGKILL),
        pytest.param("sqlite", signal.SIGKILL, marks=soak),
        pytest.param("sqlite", signal.SIGSTOP, marks=soak),
        pytest.param("valkey-9", signal.SIGSTOP, marks=soak),
    ],
    indirect=["store_url"],
)
async def test_each_child_is_recorded_once_and_the_gather_gets_all(app: Rota, trouble: signal.Signals) -> None:
    await play(app, trouble)


@soak
@pytest.mark.parametrize("turn", range(50))
@pytest.mark.parametrize("store_url", ["sqlite", "valkey-9", "postgres-18"], indirect=True)
async def test_fifty_times(app: Rota, turn: int) -> None:
    """Every other time the workers are frozen."""
    await play(app, signal.SIGSTOP if turn % 2 == 0 else signal.SIGKILL)
