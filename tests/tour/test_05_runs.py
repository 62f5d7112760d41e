"""The tour, part 5: find runs, change one that waits, and act on all that match."""

from datetime import timedelta

import pytest

from rota import Count, InvalidArguments, Operated, Rota, RunFailed


@pytest.fixture
def app() -> Rota:
    app = Rota("memory://")

    @app.task(key="{path}")
    async def resize(path: str, width: int = 800) -> str:
        if width < 0:
            raise ValueError(f"no width {width}")
        return f"{path} at {width}"

    return app


async def test_a_waiting_run_gets_another_time_and_other_arguments(app: Rota) -> None:
    run = await app.tasks["resize"].using(delay=3600).bind("a.png").submit()
    found = await app.run(run.id)
    assert (found.task, found.args) == ("resize", {"path": "a.png"})
    assert "due" in str(await found.why())
    async with app:
        with pytest.raises(InvalidArguments, match="Expected `int`"):
            await found.update(args={"width": "wide"})
        assert await found.update(args={"width": 640}, priority=5)
        assert await found.reschedule(delay=timedelta(0))
        assert await run.result(timeout=10) == "a.png at 640"
        assert not await found.reschedule(delay=60), "it has ended"


async def test_runs_are_found_by_what_one_knows_of_them(app: Rota) -> None:
    for path in ("a.png", "b.png", "b.png"):
        await app.submit("resize", path)
    assert [run.key async for run in app.runs(task="resize")] == ["b.png", "b.png", "a.png"]
    assert [run.key async for run in app.runs(q="A.PNG")] == ["a.png"]
    assert await app.runs(key="b.png", state="queued").count() == Count(2)


async def test_all_that_match_are_retried_by_one_durable_run(app: Rota) -> None:
    async with app:
        for width in (-1, -2, 3):
            run = await app.submit("resize", "a.png", width=width)
            if width < 0:
                with pytest.raises(RunFailed):
                    await run.result(timeout=10)
        operation = await app.runs(task="resize", error="ValueError").retry()
        assert await operation.result(timeout=10) == Operated(done=2)
        assert {run.origin.kind for run in [found.seen async for found in app.runs(origin="retry")]} == {"retry"}
