"""The tour, part 2: retries, timeouts, delays, priorities, cancelling."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from rota import Context, Failure, Retry, Rota, RunCancelled, RunFailed, State
from rota.testing import drain, simulate


async def test_a_failed_call_is_tried_again_as_often_as_retry_says() -> None:
    app = Rota("memory://")

    @app.task(retry=Retry(2, delay=0))
    async def flaky(ctx: Context) -> int:
        if ctx.attempt < 3:
            raise ConnectionError("not yet")
        return ctx.attempt

    async with app:
        run = await flaky.submit()
        assert await run.result(timeout=10) == 3
        seen = await run.refresh()
    assert seen.failures == 2
    assert [attempt.outcome for attempt in seen.attempts] == ["failed", "failed", "succeeded"]


async def test_some_exceptions_can_have_rules_of_their_own() -> None:
    app = Rota("memory://")

    @app.task(retry=Retry(5, delay=0, rules={ValueError: Retry(0)}))
    async def strict(text: str) -> int:
        return int(text)

    async with app:
        run = await strict.submit("seven")
        with pytest.raises(RunFailed):
            await run.result(timeout=10)
        assert (await run.refresh()).failures == 1


def test_retries_may_go_on_without_end_by_a_factor_or_by_a_function() -> None:
    app, start = Rota("memory://"), datetime(2026, 5, 4, tzinfo=UTC)

    def after(failures: int, failure: Failure) -> float | None:
        return None if failures > 2 else 100.0 * failures

    async def fail() -> None:
        raise ConnectionError("no")

    app.task(name="endless", retry=Retry(None, backoff="fixed", delay=3600, jitter=0))(fail)
    app.task(name="slower", retry=Retry(3, delay=10, factor=3, jitter=0))(fail)
    app.task(name="judged", retry=Retry(None, after=after))(fail)

    async def scenario(simulation: object) -> None:
        for name in ("endless", "slower", "judged"):
            await app.submit(name)

    day = simulate(app, start, start + timedelta(hours=10, minutes=30), scenario=scenario)

    def at(name: str) -> list[float]:
        return [(moment - start).total_seconds() // 1 for moment in day.starts(name)]

    assert at("endless") == [hour * 3600 for hour in range(11)]
    assert at("slower") == [0, 10, 40, 130]
    assert at("judged") == [0, 100, 300]


def test_a_handler_may_ask_for_more_time() -> None:
    app, start = Rota("memory://"), datetime(2026, 5, 4, tzinfo=UTC)

    @app.task(timeout=10)
    async def export(rows: int) -> str:
        Context.current().extend(rows)
        await asyncio.sleep(rows)
        return "done"

    async def scenario(simulation: object) -> None:
        assert await (await export.submit(3600)).result() == "done"

    simulate(app, start, start + timedelta(hours=2), scenario=scenario)


async def test_a_timeout_is_enforced() -> None:
    app = Rota("memory://")

    @app.task(timeout=0.01)
    async def endless() -> None:
        await asyncio.Event().wait()

    async with app:
        run = await endless.submit()
        with pytest.raises(RunFailed, match="took longer than"):
            await run.result(timeout=10)


async def test_one_submit_can_have_a_retry_and_a_timeout_of_its_own() -> None:
    app = Rota("memory://")

    @app.task(retry=Retry(5, delay=0), timeout=60)
    async def endless() -> None:
        await asyncio.Event().wait()

    async with app:
        run = await endless.using(timeout=0.01, retry=Retry(1, delay=0), lost="fail").submit()
        with pytest.raises(RunFailed, match=r"took longer than 0\.01 s"):
            await run.result(timeout=10)
        seen = await run.refresh()
    assert [attempt.outcome for attempt in seen.attempts] == ["timed_out", "timed_out"]
    assert seen.policy.lost == "fail"


async def test_a_run_can_wait_for_its_time() -> None:
    app = Rota("memory://")

    @app.task
    async def later() -> None: ...

    run = await later.using(delay=60).submit()
    seen = await run.refresh()
    assert seen.due_at == pytest.approx(seen.created_at + 60)

    tomorrow = datetime.now(UTC) + timedelta(days=1)
    run = await later.using(at=tomorrow).submit()
    assert (await run.refresh()).due_at == pytest.approx(tomorrow.timestamp(), abs=1e-4)


async def test_higher_priority_goes_first() -> None:
    app = Rota("memory://", concurrency=1)
    order: list[str] = []

    @app.task
    async def note(name: str) -> None:
        order.append(name)

    await note.using(priority=-5).submit("last")
    await note.submit("middle")
    await note.using(priority=5).submit("first")
    handles = [await note.using(priority=-100).submit("end")]
    async with app:
        await handles[0].result(timeout=10)
    assert order == ["first", "middle", "last", "end"]


async def test_a_queued_run_is_cancelled_at_once() -> None:
    app = Rota("memory://")

    @app.task
    async def never() -> None: ...

    run = await never.using(delay=60).submit()
    assert await run.cancel(note="changed my mind")
    with pytest.raises(RunCancelled):
        await run.result(timeout=10)
    assert not await run.cancel(), "final is final"


async def test_a_running_handler_is_cancelled_through_its_worker() -> None:
    app = Rota("memory://")
    started, cleaned = asyncio.Event(), asyncio.Event()

    @app.task
    async def endless() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    async with app:
        run = await endless.submit()
        await started.wait()
        await run.cancel()
        with pytest.raises(RunCancelled):
            await run.result(timeout=10)
    assert cleaned.is_set()


async def test_retrying_an_ended_run_makes_a_new_one_once() -> None:
    app = Rota("memory://")
    works = False

    @app.task
    async def fragile() -> str:
        if not works:
            raise OSError("broken")
        return "mended"

    async with app:
        run = await fragile.submit()
        with pytest.raises(RunFailed):
            await run.result(timeout=10)
        works = True
        again = await run.retry()
        assert await again.result(timeout=10) == "mended"
        assert (await run.retry()).id == again.id
        assert (await run.refresh()).state is State.FAILED, "final is final"
        assert (await again.refresh()).origin.of == run.id


async def test_a_queue_says_which_workers_take_a_run() -> None:
    app = Rota("memory://", queues=["images"])

    @app.task(queue="images")
    async def resize(path: str) -> str:
        return f"small {path}"

    async with app:
        elsewhere = await resize.using(queue="gpu").submit("b.png")
        assert await (await resize.submit("a.png")).result(timeout=10) == "small a.png"
        assert (await elsewhere.refresh()).state is State.QUEUED
        assert "no live worker serves queue gpu" in str(await app.why(elsewhere.id))


async def test_shares_take_turns() -> None:
    app = Rota("memory://", concurrency=1)
    called: list[str] = []

    @app.task(share="{tenant}")
    async def export(tenant: str) -> None:
        called.append(tenant)

    async with app.client():
        await app.submit_many([export.bind("big") for _ in range(100)])
        await export.submit("small")
        await drain(app)
    assert called[:3] == ["big", "small", "big"], "small waits for one run, not for a hundred"


async def test_many_runs_go_in_one_step() -> None:
    app = Rota("memory://")

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    async with app:
        handles = await app.submit_many([double.bind(n) for n in range(5)])
        assert [await handle.result(timeout=10) for handle in handles] == [0, 2, 4, 6, 8]


async def test_events_tell_what_happens_in_every_process() -> None:
    app = Rota("memory://")

    @app.task
    async def resize(path: str) -> str:
        return f"small {path}"

    async with app.client():
        stream = await app.events(task="resize", of="runs").start()
        async with app:
            run = await resize.submit("a.png")
            await run.result(timeout=10)
        seen = [await anext(stream) for _ in range(3)]
        assert [(event.name, event.id) for event in seen] == [
            ("queued", run.id),
            ("started", run.id),
            ("succeeded", run.id),
        ]
        again = app.events(cursor=seen[0].cursor)
        assert (await anext(again)).name == "started", "a cursor says where to go on"
