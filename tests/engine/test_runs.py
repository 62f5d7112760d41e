"""app.runs: read the runs that a filter finds, count them, and act on all of them by a durable operation."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from rota import InvalidOptions, Rota, RunNotFound, State, UnknownTask
from rota.client.operations import OPERATION, Operated, Operation, Reached, perform
from rota.store import Count
from rota.testing import Simulation, StoreClock, simulate


@pytest.fixture
def app() -> Rota:
    app = Rota("memory://")

    @app.task(key="{path}")
    async def resize(path: str, width: int = 800) -> int:
        if width < 0:
            raise ValueError(f"no width {width}")
        return width

    @app.task
    async def mail(to: str) -> datetime:
        return datetime(2026, 11, 15, tzinfo=UTC)

    return app


async def test_runs_are_found_by_any_condition(app: Rota) -> None:
    for number in range(5):
        await app.submit("resize", f"{number}.png")
    run = await app.submit("mail", "Ada")
    found = [run.args async for run in app.runs(task="resize")]
    assert found == [{"path": f"{number}.png"} for number in (4, 3, 2, 1, 0)]
    assert [run.key async for run in app.runs(key="3.png", task=["resize", "mail"])] == ["3.png"]
    assert [run.id async for run in app.runs(q="ada")] == [run.id]
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    assert [run.id async for run in app.runs(since=tomorrow)] == []
    assert [run.id async for run in app.runs(until=tomorrow, task="mail", state="queued")] == [run.id]
    assert await app.runs(task="resize").count() == Count(5)
    assert await app.runs().count(at_most=4) == Count(4, more=True)


async def test_a_run_is_read_by_its_id_with_the_type_of_its_result(app: Rota) -> None:
    submitted = await app.submit("mail", "Ada")
    run = await app.run(submitted.id)
    assert (run.task, run.state, run.key, run.error, run.args) == ("mail", State.QUEUED, None, None, {"to": "Ada"})
    assert (await run.why()).kind == "run of mail"
    assert "no worker" in str(await run.why())
    async with app:
        assert await run.result(timeout=10) == datetime(2026, 11, 15, tzinfo=UTC)
    with pytest.raises(RunNotFound):
        await app.run("0" * 26)


async def test_a_bound_call_submits_itself(app: Rota) -> None:
    run = await app.tasks["resize"].using(priority=3).bind("a.png", width=640).submit()
    seen = await run.refresh()
    assert (seen.priority, seen.key) == (3, "a.png")


async def test_what_other_processes_published_is_read(app: Rota) -> None:
    with pytest.raises(UnknownTask, match="run `rota sync`"):
        await app.published("resize")
    async with app:
        spec = await app.published("resize")
        with pytest.raises(UnknownTask, match="did you mean resize"):
            await app.published("resiez")
    assert (spec.name, spec.parameters, spec.key) == ("resize", ("path", "width"), "{path}")


async def test_all_that_match_are_cancelled_and_others_stay(app: Rota) -> None:
    for number in range(1200):
        await app.tasks["resize"].using(delay=600).submit(f"{number % 7}.png")
    await app.submit("mail", "Ada")
    operation = await app.runs(task="resize", key="3.png").cancel("of no use")
    StoreClock(app.backend).move(seconds=1)
    await app.tasks["resize"].using(delay=600).submit("3.png")
    async with app:
        assert await operation.result(timeout=20) == Operated(171, 0)
        seen = await operation.refresh()
    assert seen.progress is not None
    assert (seen.task, seen.progress.share) == (OPERATION, 1.0)
    cancelled = [run.seen async for run in app.runs(state="cancelled")]
    assert {(run.key, run.note) for run in cancelled} == {("3.png", "of no use")}
    assert len(cancelled) == 171


async def test_failed_runs_are_retried_once_each(app: Rota) -> None:
    async with app:
        runs = [await app.submit("resize", "a.png", width=-number) for number in (1, 2, 3)]
        await app.submit("resize", "b.png")
        for run in runs:
            with pytest.raises(Exception, match="no width"):
                await run.result(timeout=10)
        for _ in range(2):
            assert await (await app.runs(state="failed", error="ValueError", origin="submit").retry()).result(10) == (
                Operated(3, 0)
            )
        assert await app.runs(origin="retry").count() == Count(3)


async def test_runs_are_paused_resumed_moved_and_deleted(app: Rota) -> None:
    clock = StoreClock(app.backend)
    runs = [await app.tasks["resize"].using(delay=600).submit(f"{number}.png") for number in range(3)]
    async with app:
        assert await (await app.runs(task="resize").pause()).result(10) == Operated(3, 0)
        assert await (await app.runs(task="resize").reschedule(delay=0)).result(10) == Operated(0, 3, {"paused": 3})
        assert await (await app.runs(task="resize").resume()).result(10) == Operated(3, 0)
        assert await (await app.runs(task="resize").reschedule(delay=0)).result(10) == Operated(3, 0)
        for run in runs:
            await run.result(timeout=10)
        clock.move(seconds=61)
        assert await (await app.runs(ids=[run.id for run in runs[:2]]).delete()).result(10) == Operated(2, 0)
        assert [run.id async for run in app.runs(task="resize")] == [runs[2].id]


async def test_nobody_changes_all_runs_of_a_store_by_mistake(app: Rota) -> None:
    with pytest.raises(InvalidOptions, match="which runs"):
        await app.runs().cancel()
    with pytest.raises(InvalidOptions, match="which runs"):
        await app.runs(order="finished", by="due").delete()
    with pytest.raises(InvalidOptions, match="state='bad'"):
        app.runs(state="bad")
    with pytest.raises(InvalidOptions, match="q has 201"):
        app.runs(q="x" * 201)
    with pytest.raises(InvalidOptions, match="time zone"):
        app.runs(since=datetime(2026, 1, 1))


async def test_an_operation_leaves_itself_alone(app: Rota) -> None:
    async with app:
        operation = await app.runs(state=["queued", "running"]).cancel()
        assert await operation.result(timeout=10) == Operated(0, 0)


async def test_an_operation_goes_on_from_its_last_page(app: Rota) -> None:
    for number in range(1300):
        await app.submit("resize", f"{number}.png")
    operation, client = Operation(action="pause", filter={"task": "resize"}), app.client()
    pages: list[Reached] = []

    def stop_at_the_second(reached: Reached) -> None:
        pages.append(reached)
        if len(pages) == 2:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await perform(client, operation, "one", None, stop_at_the_second)
    assert pages[-1].operated == Operated(1000, 0)
    again = await perform(client, operation, "one", pages[0])
    assert again == Operated(800, 500, {"paused": 500}), "the second page was done before"
    assert await app.runs(state="paused").count() == Count(1300)


def test_an_operation_runs_in_a_simulation(app: Rota) -> None:
    async def scenario(simulation: Simulation) -> None:
        await app.submit_many([app.tasks["mail"].using(delay=1e6).bind(f"{number}") for number in range(1100)])
        operation = await app.runs(task="mail").cancel()
        assert await operation.result() == Operated(1100, 0)

    start = datetime(2026, 11, 15, tzinfo=UTC)
    simulate(app, start, start + timedelta(hours=1), scenario=scenario)
