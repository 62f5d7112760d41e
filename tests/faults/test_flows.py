"""A day of dependent work under kill -9: every step is recorded succeeded once, and none starts before its parents."""

import random
import signal
from datetime import date, timedelta

import pytest

from rota import FlowStatus, Rota, State
from rota.store import RunQuery
from tests.faults.racing import AFTER, define
from tests.processes import Process

LIVES = (0.0, 2.4)
"""Seconds from when a worker stands, however long that took, to its end."""


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
async def test_workers_die_and_each_day_is_done_once_and_in_order(store_url: str, kills: int) -> None:
    """Two workers at a time, each killed at some moment from its first claim to the end of its tenth step."""
    app = Rota(store_url)
    day = define(app)
    dice = random.Random(kills)
    first = date(2026, 11, 15)
    days = [first]
    async with app.client():
        await day.start(first)
        for _ in range(kills // 2):
            if (await day.status(days[-1])).done:
                days.append(days[-1] + timedelta(days=1))
                await day.start(days[-1])
            with worker(store_url, dice.uniform(*LIVES)) as one, worker(store_url, dice.uniform(*LIVES)) as two:
                for mortal in (one, two):
                    mortal.wait_for("worker .* started")
                    mortal.say("go")
                assert (one.wait(), two.wait()) == (-signal.SIGKILL, -signal.SIGKILL)
        with worker(store_url), worker(store_url):
            statuses = [await day.wait(one, timeout=60) for one in days]
        lost = [await judge(app, status) for status in statuses]
    assert len(set().union(*lost)) >= kills // 10, "they died in the midst of several steps"


async def judge(app: Rota, status: FlowStatus) -> set[str]:
    """The steps under which workers have died."""
    assert status.done
    store = await app.client().store()
    runs = (await store.runs(RunQuery(group=f"race_day@{status.period}", limit=1000))).runs
    assert sorted(run.task for run in runs) == sorted(AFTER), "one run per step, whoever died"
    for run in runs:
        assert run.state is State.SUCCEEDED
        assert [attempt.outcome for attempt in run.attempts].count("succeeded") == 1
        for parent in AFTER[run.task]:
            ended = status.steps[parent].since
            assert ended is not None
            # Not by `claimed_at`: that is when the claim began, and an end that it still saw may have come since.
            assert float(run.result or 0) >= ended, f"{run.task} before {parent}"
    return {run.task for run in runs if run.losses}


def worker(url: str, dies: float | None = None) -> Process:
    env = {"ROTA_URL": url, "ROTA_LEASE": "1"} | ({} if dies is None else {"DIES": str(dies)})
    return Process("-m", "rota", "worker", "-A", "tests.faults.racing:app", env=env)
