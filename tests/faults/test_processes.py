"""Real workers on one store: killed, frozen, told to stop, blocked. Nothing is lost, nothing counts twice."""

import asyncio
import signal
import sqlite3
from collections.abc import AsyncIterator

import pytest

from rota import Rota, RunFailed, State
from rota.stores.sqlite import SqliteBackend
from rota.task import definition_of
from tests.faults import tasks
from tests.processes import Process
from tests.requirement import requirement

LEASE = 3.0

everywhere = pytest.mark.parametrize("store_url", ["sqlite", "valkey-9", "postgres-18"], indirect=True)


@pytest.fixture
async def app(store_url: str) -> AsyncIterator[Rota]:
    app = Rota(store_url)
    for task in tasks.app.tasks.values():
        own = definition_of(task)
        app.task(executor=own.executor, max_losses=own.spec.policy.max_losses)(task.fn)
    yield app
    await app.stop()


def worker(app: Rota, *options: str, hold: bool = False, lease: float = LEASE) -> Process:
    command = ["-m", "rota", "-A", "tests.faults.tasks:app", "worker", "--lease", str(lease), *options]
    return Process(*command, env={"ROTA_URL": app.settings.url, "HOLD": "1" if hold else "0"})


@everywhere
async def test_kill_9_with_ten_in_flight_loses_nothing_and_records_each_once(app: Rota) -> None:
    work = app.tasks["work"]
    handles = await app.submit_many([work.bind(i) for i in range(200)])
    with worker(app, hold=True) as doomed:
        in_flight = {int(line.split()[-1]) for line in doomed.wait_for("began", times=10)}
        doomed.signal(signal.SIGKILL)
        doomed.wait()
    with worker(app):
        results = [await handle.result(timeout=60) for handle in handles]
    assert results == list(range(200))
    for i, handle in enumerate(handles):
        run = await handle.refresh()
        outcomes = [attempt.outcome for attempt in run.attempts]
        if i in in_flight:
            assert (outcomes, run.losses, run.fence) == (["lost", "succeeded"], 1, 2)
            lost, again = run.attempts
            assert again.claimed_at >= lost.claimed_at + LEASE, "not before the lease had lapsed"
        else:
            assert (outcomes, run.losses, run.fence) == (["succeeded"], 0, 1)


def freeze(process: Process, app: Rota) -> None:
    """Not while it has SQLite's only lock: that would stop everyone until it wakes, whatever rota does."""
    for _ in range(200):
        process.signal(signal.SIGSTOP)
        if not isinstance(app.backend, SqliteBackend):
            return
        connection = sqlite3.connect(app.backend.path, timeout=0.05, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            process.signal(signal.SIGCONT)
        else:
            return
        finally:
            connection.close()
    raise AssertionError("it was never without the lock")


@everywhere
async def test_a_frozen_worker_wakes_to_find_its_completion_refused(app: Rota) -> None:
    run = await app.tasks["ask"].submit(1)
    with worker(app, hold=True) as zombie:
        zombie.wait_for("began")
        freeze(zombie, app)
        zombie.say("too late")
        with worker(app) as healthy:
            assert await run.result(timeout=60) == "done"
            healthy.wait_for("lapsed")
            zombie.signal(signal.SIGCONT)
            zombie.wait_for(r"no longer ours \(fence 1\).*refused")
    seen = await run.refresh()
    assert (seen.state, seen.fence) == (State.SUCCEEDED, 2)
    assert seen.result == b'"done"'
    assert [attempt.outcome for attempt in seen.attempts] == ["lost", "succeeded"]


@everywhere
async def test_sigterm_gives_running_work_back_and_exits_0(app: Rota) -> None:
    work = app.tasks["work"]
    handles = await app.submit_many([work.bind(i) for i in range(20)])
    with worker(app, "--grace", "0.2", hold=True) as leaving:
        leaving.wait_for("began", times=10)
        with worker(app) as staying:
            staying.wait_for("began", times=10)  # it has done what was queued and is idle now
            leaving.signal(signal.SIGTERM)
            assert leaving.wait() == 0, leaving.output
            assert sorted([await handle.result(timeout=60) for handle in handles]) == list(range(20))
    runs = [await handle.refresh() for handle in handles]
    assert sum(run.losses + run.failures for run in runs) == 0
    given_back = [run for run in runs if run.fence == 2]
    assert len(given_back) == 10
    assert all([a.outcome for a in run.attempts] == ["interrupted", "succeeded"] for run in given_back)


@requirement("0.11")
async def test_sigterm_lets_a_short_handler_finish(app: Rota) -> None:
    run = await app.tasks["ask"].submit(1)
    with worker(app, "--grace", "30", hold=True) as leaving:
        leaving.wait_for("began")
        leaving.signal(signal.SIGTERM)
        leaving.wait_for("is stopping: 1 run in hand")
        leaving.say("finished properly")
        assert leaving.wait() == 0, leaving.output
    assert await run.result(timeout=10) == "finished properly"
    assert (await run.refresh()).fence == 1


async def test_a_handler_that_blocks_the_loop_for_three_leases_keeps_its_lease(app: Rota) -> None:
    run = await app.tasks["block"].submit(3 * 1.0)
    with worker(app, lease=1.0) as blocked:
        blocked.wait_for("began")
        with worker(app, lease=1.0):  # would take the run, were it lost
            assert await run.result(timeout=60) == "done"
    seen = await run.refresh()
    assert [(a.outcome, a.fence) for a in seen.attempts] == [("succeeded", 1)]


async def test_a_paused_run_resumes_from_its_checkpoint_in_another_process(app: Rota) -> None:
    run = await app.tasks["count"].submit()
    with worker(app, hold=True) as first:
        first.wait_for("at three")
        assert await run.pause()
        async with asyncio.timeout(30):
            while (await run.refresh()).state is not State.PAUSED:
                await app.client().news()
    with worker(app):
        assert await run.resume()
        assert await run.result(timeout=60) == [3, 4]
    assert [attempt.outcome for attempt in (await run.refresh()).attempts] == ["paused", "succeeded"]


async def test_a_segfault_in_a_child_among_a_thousand_good_runs_is_its_own_trouble(app: Rota) -> None:
    handles = await app.submit_many([app.tasks["crash"].bind(n) for n in range(1001)])
    with worker(app, "--concurrency", "4") as living:
        for n, handle in enumerate(handles):
            if n != 500:
                assert await handle.result(timeout=100) == n
        with pytest.raises(RunFailed, match="SIGSEGV"):
            await handles[500].result(timeout=60)
        living.signal(signal.SIGTERM)
        assert living.wait() == 0
    bad = await handles[500].refresh()
    assert (bad.reason, bad.losses, [a.outcome for a in bad.attempts]) == ("poison", 2, ["crashed", "crashed"])
    others = [await handle.refresh() for n, handle in enumerate(handles) if n != 500]
    assert {(run.state, run.losses, run.fence) for run in others} == {(State.SUCCEEDED, 0, 1)}
