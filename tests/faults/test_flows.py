"""A day of dependent work under kill -9: every step is recorded succeeded once, and none starts before its parents."""

import random
import signal
from contextlib import ExitStack

import pytest

from rota import FlowStatus, Rota, State
from rota.store import RunQuery
from tests.faults.racing import AFTER, WORK, define
from tests.processes import Process

PERIOD = "2026-11-15"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("store_url", "kills"),
    [
        ("sqlite", 4),
        ("valkey-9", 4),
        ("postgres-18", 4),
        pytest.param("sqlite", 50, marks=pytest.mark.soak),
        pytest.param("valkey-9", 50, marks=pytest.mark.soak),
        pytest.param("postgres-18", 50, marks=pytest.mark.soak),
    ],
    indirect=["store_url"],
)
async def test_workers_die_and_the_day_is_done_once_and_in_order(store_url: str, kills: int) -> None:
    app = Rota(store_url)
    day = define(app)
    dice = random.Random(kills)
    async with app.client():
        await day.start(PERIOD)
        for _ in range(kills // 2):
            with worker(store_url, dice.uniform(0, WORK)) as one, worker(store_url, dice.uniform(0, WORK)) as two:
                assert (one.wait(), two.wait()) == (-signal.SIGKILL, -signal.SIGKILL)
        assert not (await day.status(PERIOD)).done, "they all died before the day was over"
        with ExitStack() as workers:
            for _ in range(2):
                workers.enter_context(worker(store_url))
            status = await day.status(PERIOD)
            while not status.done:
                await app.client().news(0.5)
                status = await day.status(PERIOD)
        await judge(app, status)


async def judge(app: Rota, status: FlowStatus) -> None:
    store = await app.client().store()
    runs = (await store.runs(RunQuery(group=f"race_day@{PERIOD}", limit=1000))).runs
    assert sorted(run.task for run in runs) == sorted(AFTER), "one run per step, whoever died"
    for run in runs:
        assert run.state is State.SUCCEEDED
        assert [attempt.outcome for attempt in run.attempts].count("succeeded") == 1
        for parent in AFTER[run.task]:
            ended = status.steps[parent].since
            assert ended is not None
            assert all(attempt.claimed_at >= ended for attempt in run.attempts), f"{run.task} before {parent}"


def worker(url: str, dies: float | None = None) -> Process:
    env = {"ROTA_URL": url, "ROTA_LEASE": "1"} | ({} if dies is None else {"DIES": str(dies)})
    return Process("-m", "rota", "worker", "-A", "tests.faults.racing:app", env=env)
