"""drain: everything that is due runs here and now, and nothing else."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rota import InvalidOptions, Retry, Rota, Snooze, State
from rota.app.core import core_of
from rota.client.drain import drained
from rota.errors import DrainTimeout
from rota.testing import StoreClock, drain


@pytest.fixture(params=["memory", "sqlite"])
def app(request: pytest.FixtureRequest, tmp_path: Path) -> Rota:
    return Rota("memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'rota.db'}")


async def test_what_is_due_runs_with_what_comes_of_it_and_what_is_due_later_stays(app: Rota) -> None:
    done: list[int] = []

    @app.task
    async def count(n: int) -> None:
        done.append(n)
        if n < 3:
            await count.submit(n + 1)
        await count.using(delay=3600).submit(100)

    await count.submit(1)
    await drain(app)
    assert done == [1, 2, 3]
    assert (await app.depths())["count"].queued == 3


async def test_a_retry_runs_when_the_clock_has_moved(app: Rota) -> None:
    calls = 0

    @app.task(retry=Retry(2, backoff="fixed", delay=600, jitter=0))
    def flaky() -> str:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise ValueError("not yet")
        return "at last"

    clock = StoreClock(app.backend)
    run = await flaky.submit()
    for expected in (1, 2, 3):
        await drain(app)
        await drain(app)
        assert calls == expected, "not before its time"
        clock.move(minutes=10)
    assert (await run.refresh()).state is State.SUCCEEDED


async def test_what_a_running_engine_has_in_hand_is_waited_for() -> None:
    app = Rota("memory://")
    begun, release = asyncio.Event(), asyncio.Event()

    @app.task
    async def slow() -> None:
        begun.set()
        await release.wait()

    async with app:
        run = await slow.submit()
        await begun.wait()
        store = await app.client().store()
        other = core_of(app).build_engine()
        await other.start()
        assert await drained(store, other, ["slow"]), "the other engine has nothing to do"
        assert not await drained(store, other, ["slow"], everywhere=True)
        await other.stop(0)
        release.set()
        await drain(app)
        assert (await run.refresh()).state is State.SUCCEEDED


async def test_who_never_comes_to_rest_is_named() -> None:
    app = Rota("memory://")

    @app.task
    async def stuck() -> None:
        await asyncio.Event().wait()

    @app.task
    async def again() -> None:
        raise Snooze(0)

    run = await stuck.submit()
    with pytest.raises(DrainTimeout, match=f"not at rest after 0.1 s: stuck {run.id} still runs"):
        await drain(app, timeout=0.1)
    assert (await run.refresh()).state is State.QUEUED, "it was given back"
    await app.pause("stuck")
    await again.submit()
    with pytest.raises(DrainTimeout, match="again"):
        await drain(app, timeout=0.1)


async def test_paused_tasks_and_tasks_of_others_do_not_count() -> None:
    app = Rota("memory://")

    @app.task
    async def held() -> None: ...

    await app.pause("held")
    await held.submit()
    await app.submit("elsewhere", n=1)
    await drain(app, timeout=5)
    assert (await app.depths())["held"].queued == 1


async def test_the_clock_moves_on_and_never_back() -> None:
    clock = StoreClock(Rota("memory://").backend)
    later = datetime.now(UTC) + timedelta(days=2)
    assert abs(clock.move_to(later) - later) < timedelta(seconds=5)
    assert clock.move(days=1) > later + timedelta(hours=23)
    with pytest.raises(InvalidOptions, match="never goes back"):
        clock.move_to(later)
    with pytest.raises(InvalidOptions, match="never goes back"):
        clock.move(seconds=-1)
    with pytest.raises(InvalidOptions, match="no time zone"):
        clock.move_to(datetime(2100, 1, 1))
