"""A simulation: the real engine in virtual time."""

import asyncio
import os
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from rota import Context, Limit, QueueFull, Rate, Retry, Rota, RunFailed, State
from rota.domain.event import Event
from rota.testing import Simulation, simulate
from tests.engine import process_tasks

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(*seconds: float) -> list[datetime]:
    return [START + timedelta(seconds=each) for each in seconds]


def states(simulation: Simulation) -> list[State]:
    return [run.state for run in simulation.runs]


def test_delayed_runs_start_when_they_are_due_and_not_before() -> None:
    app = Rota("memory://")

    @app.task
    async def call(name: str) -> str:
        await asyncio.sleep(90)
        return name

    async def scenario(simulation: Simulation) -> None:
        await call.using(delay=3 * 86_400).submit("late")
        run = await call.submit("soon")
        assert await run.result() == "soon"
        assert simulation.now == START + timedelta(seconds=90)

    simulation = simulate(app, START, START + timedelta(days=7), scenario=scenario)
    assert simulation.starts(call) == at(0, 3 * 86_400)
    assert [run.state for run in simulation.of("call")] == [State.SUCCEEDED, State.SUCCEEDED]
    assert [run.attempts[0].seconds for run in simulation.runs] == [90, 90], "durations are virtual too"
    assert simulation.now == START + timedelta(days=7)


def test_retries_wait_their_backoff_in_virtual_time() -> None:
    app = Rota("memory://")

    @app.task(retry=Retry(4, delay=60, jitter=0))
    def flaky() -> None:
        raise ValueError("not yet")

    async def scenario(_: Simulation) -> None:
        with pytest.raises(RunFailed, match="not yet"):
            await (await flaky.submit()).result()

    simulation = simulate(app, START, START + timedelta(days=1), scenario=scenario)
    assert simulation.starts(flaky) == at(0, 60, 180, 420, 900)
    assert states(simulation) == [State.FAILED]


def test_a_timeout_comes_in_virtual_time() -> None:
    app = Rota("memory://")

    @app.task(timeout=3600)
    async def endless() -> None:
        await asyncio.Event().wait()

    async def scenario(_: Simulation) -> None:
        await endless.submit()

    (run,) = simulate(app, START, START + timedelta(days=1), scenario=scenario).runs
    assert (run.state, run.reason) == (State.FAILED, "timed_out")
    assert run.finished_at == START.timestamp() + 3600


def test_a_rate_spaces_starts_and_wakes_nobody_in_vain() -> None:
    app = Rota("memory://")

    @app.task(rate=Rate(3, per=10))
    async def call() -> None: ...

    async def scenario(_: Simulation) -> None:
        await app.submit_many([call.bind() for _ in range(100)])

    simulation = simulate(app, START, START + timedelta(hours=1), scenario=scenario)
    starts = simulation.starts(call)
    gaps = [(late - early).total_seconds() for early, late in pairwise(starts)]
    assert len(starts) == 100
    assert all(gap == pytest.approx(10 / 3, abs=2e-5) for gap in gaps)
    assert simulation.claims < 210, "one claim for each start and one for its end, and a few"


def test_a_limit_holds_in_virtual_time() -> None:
    app = Rota("memory://")

    @app.task(limit=Limit(2))
    async def call() -> None:
        await asyncio.sleep(10)

    async def scenario(_: Simulation) -> None:
        await app.submit_many([call.bind() for _ in range(6)])

    simulation = simulate(app, START, START + timedelta(hours=1), scenario=scenario, workers=3)
    assert simulation.starts(call) == at(0, 0, 10, 10, 20, 20)


def test_thirty_idle_days_cost_next_to_nothing() -> None:
    app = Rota("memory://")

    @app.task
    async def call() -> None: ...

    async def scenario(_: Simulation) -> None:
        await call.submit()
        await (await call.using(delay=15 * 86_400).submit()).result()
        await asyncio.sleep(14 * 86_400)
        await (await call.submit()).result()

    simulation = simulate(app, START, START + timedelta(days=30), scenario=scenario, workers=2)
    assert simulation.starts(call) == at(0, 15 * 86_400, 29 * 86_400)
    assert simulation.claims < 30, "polling every five seconds would have been a million"
    assert simulation.leaps < 400, "a sweep every six hours for each worker, and little else"


def test_every_worker_that_slept_for_days_is_woken_by_work() -> None:
    app = Rota("memory://", concurrency=1)
    workers: set[str] = set()

    @app.task
    async def call(ctx: Context) -> None:
        workers.add(ctx.run.worker or "")
        await asyncio.sleep(60)

    async def scenario(_: Simulation) -> None:
        await asyncio.sleep(3 * 86_400)
        await app.submit_many([call.bind() for _ in range(3)])

    simulation = simulate(app, START, START + timedelta(days=4), scenario=scenario, workers=3)
    assert workers == {"worker-1", "worker-2", "worker-3"}
    assert simulation.starts(call) == at(*[3 * 86_400] * 3)


def test_a_run_expires_on_time_though_nobody_polls() -> None:
    app = Rota("memory://")

    @app.task
    async def call() -> None: ...

    async def scenario(_: Simulation) -> None:
        await app.pause("call")
        await call.using(expires=50_000).submit()

    (run,) = simulate(app, START, START + timedelta(days=3), scenario=scenario).runs
    assert (run.state, run.reason) == (State.CANCELLED, "expired")
    assert run.finished_at == START.timestamp() + 50_000


def test_charts_count_by_the_virtual_clock() -> None:
    app = Rota("memory://")
    counted: list[int] = []

    @app.task
    async def call() -> None: ...

    async def scenario(_: Simulation) -> None:
        for _turn in range(5):
            await call.submit()
            await asyncio.sleep(60)
        stats = (await (await app.client().store()).stats(minutes=60)).items
        counted.extend(stat.tally.succeeded for stat in stats if stat.tally.succeeded)

    simulate(app, START, START + timedelta(hours=1), scenario=scenario)
    assert counted == [1, 1, 1, 1], "a count comes with the next claim: the last one is still under way"


def test_what_is_due_at_the_end_no_longer_starts() -> None:
    app = Rota("memory://")

    @app.task
    async def call() -> None: ...

    async def scenario(_: Simulation) -> None:
        await asyncio.sleep(6e-6)  # less than a store's instant: who waits for the end from here wakes a hair early
        await call.using(at=START + timedelta(hours=1)).submit()

    simulation = simulate(app, START, START + timedelta(hours=1), scenario=scenario)
    assert states(simulation) == [State.QUEUED]


def test_what_runs_at_the_end_is_shown_running() -> None:
    app = Rota("memory://")
    told: list[str] = []
    app.on("failed", lambda event: told.append(event.task))

    @app.task(lost="fail")
    async def call() -> None:
        await asyncio.sleep(7200)

    async def scenario(_: Simulation) -> None:
        await call.submit()

    simulation = simulate(app, START, START + timedelta(hours=1), scenario=scenario)
    assert states(simulation) == [State.RUNNING]
    assert told == [], "what is only put away after the end is not told"


def test_process_tasks_are_called_in_this_very_process() -> None:
    app = Rota("memory://")
    pid = app.task(executor="process")(process_tasks.pid)

    async def scenario(_: Simulation) -> None:
        assert await (await pid.submit()).result() == os.getpid()

    assert len(simulate(app, START, START + timedelta(hours=1), scenario=scenario).starts(pid)) == 1


def test_plain_functions_are_called_on_the_loop_and_may_submit() -> None:
    app = Rota("memory://")

    @app.task
    async def last(n: int) -> int:
        return n

    @app.task
    def first(n: int) -> int:
        last.submit_sync(n + 1)
        return n

    async def scenario(_: Simulation) -> None:
        await first.submit(1)

    simulation = simulate(app, START, START + timedelta(hours=1), scenario=scenario)
    assert [(run.task, run.result) for run in simulation.runs] == [("first", b"1"), ("last", b"2")]


def test_hooks_are_called_at_their_time() -> None:
    app = Rota("memory://")
    heard: list[tuple[str, str]] = []

    @app.task(max_pending=1)
    async def call() -> None:
        raise ValueError

    def note(event: Event) -> None:
        heard.append((event.name, event.task))

    app.on("failed", note)
    app.on("refused", note)

    async def scenario(simulation: Simulation) -> None:
        await call.using(delay=3600).submit()
        with pytest.raises(QueueFull):
            await call.submit()
        assert simulation.now == START + timedelta(seconds=30), "a full queue is waited for, in virtual time"

    simulate(app, START, START + timedelta(hours=2), scenario=scenario)
    assert heard == [("refused", "call"), ("failed", "call")]


def test_instants_are_told_in_the_zone_of_the_start_across_a_clock_change() -> None:
    app = Rota("memory://")
    paris = ZoneInfo("Europe/Paris")

    @app.task
    async def call() -> None: ...

    async def scenario(_: Simulation) -> None:
        await call.using(delay=4 * 3600).submit()

    start = datetime(2026, 3, 29, 0, 0, tzinfo=paris)
    simulation = simulate(app, start, datetime(2026, 3, 30, tzinfo=paris), scenario=scenario)
    (called,) = simulation.starts(call)
    assert called.isoformat() == "2026-03-29T05:00:00+02:00"
