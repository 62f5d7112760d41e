"""Handles change queued runs: due time, priority, expiry, arguments; and delete ended ones."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rota import InvalidArguments, InvalidOptions, Rota, RunNotFound, State
from rota.client.edits import merged
from rota.testing import StoreClock


@pytest.fixture
def app() -> Rota:
    app = Rota("memory://")

    @app.task
    async def resize(path: str, width: int = 800, tags: dict[str, str] | None = None) -> str:
        return f"{path} {width} {tags}"

    @app.task(unique="queued")
    async def once(path: str) -> str:
        return path

    return app


async def test_a_run_is_moved_to_an_instant_or_by_a_delay(app: Rota) -> None:
    run = await app.submit("resize", "a.png")
    soon = datetime.now(UTC) + timedelta(hours=2)
    assert await run.reschedule(at=soon, note="later") is True
    assert (await run.refresh()).due_at == pytest.approx(soon.timestamp())
    now = await app.client().now()
    assert await run.reschedule(delay=timedelta(minutes=1)) is True
    assert (await run.refresh()).due_at == pytest.approx(now + 60, abs=5)
    async with app:
        assert await run.reschedule(delay=0) is True
        assert await run.result(timeout=10) == "a.png 800 None"
    assert await run.reschedule(delay=0) is False


async def test_arguments_are_patched(app: Rota) -> None:
    run = await app.submit("resize", "a.png", tags={"a": "1", "b": "2"})
    assert await run.update(args={"width": 640, "tags": {"a": None, "c": "3"}}, priority=7, expires=600) is True
    seen = await run.refresh()
    assert (seen.priority, seen.expires_at is not None) == (7, True)
    assert await run.update(args={"width": None}) is True
    async with app:
        assert await run.result(timeout=10) == "a.png 800 {'b': '2', 'c': '3'}"
    assert await run.update(priority=1) is False


async def test_patches_of_two_at_once_are_both_kept(app: Rota) -> None:
    run = await app.submit("resize", "a.png")
    await asyncio.gather(run.update(args={"path": "b.png"}), run.update(args={"width": 1}))
    async with app:
        assert await run.result(timeout=10) == "b.png 1 None"


async def test_changes_that_no_run_can_have_are_refused(app: Rota) -> None:
    run = await app.submit("resize", "a.png")
    now = datetime.now(UTC)
    with pytest.raises(InvalidOptions, match="give one"):
        await run.reschedule(at=now, delay=5)
    with pytest.raises(InvalidOptions, match="nothing to change"):
        await run.reschedule()
    with pytest.raises(InvalidOptions, match="time zone"):
        await run.reschedule(at=datetime(2026, 1, 1))
    with pytest.raises(InvalidOptions, match="priority=500"):
        await run.update(priority=500)
    with pytest.raises(InvalidOptions, match="more than the"):
        await run.update(args={"path": "x" * 300_000})
    with pytest.raises(InvalidArguments, match="argument 'path' cannot be stored as JSON"):
        await run.update(args={"path": object()})
    with pytest.raises(InvalidOptions, match="unique by its arguments"):
        await (await app.submit("once", "a.png")).update(args={"path": "b.png"})
    with pytest.raises(RunNotFound):
        await app.handle("0" * 26).reschedule(delay=1)


async def test_an_argument_that_the_published_task_does_not_take_is_refused(app: Rota) -> None:
    @app.task
    async def anything(**more: int) -> int:
        return len(more)

    async with app:  # publishes the tasks
        pass
    elsewhere = Rota(app.backend)
    run = await app.submit("resize", "a.png")
    for each in (run, elsewhere.handle(run.id)):
        with pytest.raises(InvalidArguments, match="args: resize has no parameter 'wdth'; did you mean width"):
            await each.update(args={"wdth": 640})
        with pytest.raises(InvalidArguments, match="no parameter"):
            await each.update(args={"wdth": None})
        assert await each.update(args={"width": 640}) is True
    assert (await (await app.run(run.id)).update(args={"width": None})) is True
    assert await (await anything.submit(a=1)).update(args={"b": 2}) is True


async def test_a_change_is_checked_as_a_submit_is_where_the_code_of_the_task_is(app: Rota) -> None:
    run = await app.submit("resize", "a.png")
    wrong: dict[str, object] = {"width": "wide"}
    with pytest.raises(InvalidArguments, match=r"args: resize: Expected `int`, got `str` - at `\$.width`"):
        await run.update(args=wrong)
    with pytest.raises(InvalidArguments, match="missing required field `path`"):
        await run.update(args={"path": None})
    with pytest.raises(InvalidArguments, match="NaN"):
        await run.update(args={"tags": {"a": float("nan")}})
    assert (await app.run(run.id)).args == {"path": "a.png"}
    assert await run.update(args={"path": Path("b.png")}) is True
    assert await Rota(app.backend).handle(run.id).update(args=wrong) is True  # nobody has published the task


async def test_the_arguments_of_a_step_are_checked_without_those_that_come_later(app: Rota) -> None:
    @app.task
    async def store(path: str, copies: int = 1) -> str:
        return f"{path} {copies}"

    chain = await (app.tasks["resize"].bind("a.png") >> app.tasks["store"]).submit()
    last = chain.steps["store"]
    with pytest.raises(InvalidArguments, match="Expected `int`"):
        await last.update(args={"copies": "two"})
    assert await last.update(args={"copies": 3}) is True
    async with app:
        assert await last.result(timeout=10) == "a.png 800 None 3"


async def test_arguments_of_any_name_are_changed_and_taken_away(app: Rota) -> None:
    @app.task
    async def anything(first: str, *paths: str, **more: int) -> str:
        return f"{first} {paths} {more}"

    async with app:  # publishes the tasks
        pass
    elsewhere = Rota(app.backend)
    here, there = await anything.submit("x", "y", a=1, b=2), await elsewhere.submit("anything", first="x", a=1, b=2)
    with pytest.raises(InvalidArguments, match="Expected `int`"):
        await here.update(args={"c": "three"})
    for run in (here, there, elsewhere.handle(here.id)):
        assert await run.update(args={"a": None, "c": 3}) is True
    async with app:
        assert await here.result(timeout=10) == "x ('y',) {'b': 2, 'c': 3}"
        assert await there.result(timeout=10) == "x () {'b': 2, 'c': 3}"


async def test_an_ended_run_is_deleted_after_a_minute(app: Rota) -> None:
    clock = StoreClock(app.backend)
    async with app:
        run = await app.submit("resize", "a.png")
        await run.result(timeout=10)
        assert await run.delete() is False
        clock.move(seconds=61)
        assert await run.delete("of no use") is True
        with pytest.raises(RunNotFound):
            await run.refresh()


def test_the_same_from_synchronous_code(app: Rota) -> None:
    run = app.tasks["resize"].submit_sync("a.png")
    assert run.reschedule_sync(delay=60)
    assert run.update_sync(priority=3)
    assert run.refresh_sync().state is State.QUEUED
    assert not run.delete_sync()


def test_a_merge_patch_is_that_of_the_standard() -> None:
    cases = [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ]
    for known, patch, expected in cases:
        assert merged(known, patch) == expected
