"""Queues in an app: where the queue of a run comes from, and which engine calls it."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from rota import Every, Limit, Rota
from rota.app.core import core_of
from rota.domain.run import State
from rota.errors import InvalidOptions
from rota.store import RunQuery, WorkerSeen
from rota.task import call_of
from rota.testing import drain, simulate

START = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def app() -> Rota:
    return Rota("memory://")


async def test_the_queue_of_a_run_is_its_submits_else_its_tasks_else_default(app: Rota) -> None:
    @app.task(queue="images")
    async def resize() -> None: ...

    @app.task
    async def greet() -> None: ...

    async with app.client():
        runs = [
            await resize.submit(),
            await resize.using(queue="urgent").submit(),
            await greet.submit(),
            await greet.using(queue="images", delay=5).submit(),
        ]
        found = (await app.client().runs(RunQuery(ids=[run.id for run in runs]))).runs
    assert [run.queue for run in found] == ["images", "urgent", "default", "images"]


async def test_the_queue_of_a_tick_is_its_calls_else_its_schedules_else_its_tasks(app: Rota) -> None:
    @app.task(queue="images", schedule=Every(hours=1))
    async def resize() -> None: ...

    async with app.client():
        await core_of(app).declare_schedules()
        every = Every(hours=1)
        await app.schedules.put("own", every, resize.bind())
        await app.schedules.put("told", every, resize.bind(), queue="nightly")
        await app.schedules.put("call", every, resize.using(queue="urgent").bind(), queue="nightly")
        queues = {schedule.id: schedule.queue for schedule in await app.schedules.list()}
        run = await app.schedules.run_now("told")
        assert (await run.refresh()).queue == "nightly"
    assert queues == {"resize": "images", "own": "images", "told": "nightly", "call": "urgent"}


async def test_a_retry_of_an_ended_run_keeps_its_queue(app: Rota) -> None:
    @app.task
    async def fail() -> None:
        raise ValueError("no")

    async with app.client():
        run = await fail.using(queue="images").submit()
        await drain(app)
        again = await run.retry()
        assert ((await run.refresh()).state, (await again.refresh()).queue) == (State.FAILED, "images")


async def test_an_engine_takes_only_runs_of_its_queues() -> None:
    app = Rota("memory://", queues=["images", "mail"])
    called: list[str] = []

    @app.task
    async def work(name: str) -> None:
        called.append(name)

    async with app.client():
        mine = await work.using(queue="images").submit("image")
        other = await work.submit("plain")
        await drain(app)
        assert called == ["image"]
        assert ((await mine.refresh()).state, (await other.refresh()).state) == (State.SUCCEEDED, State.QUEUED)
        (seen,) = (await app.client().rows(WorkerSeen)).items
        assert seen.queues == ("images", "mail")


async def test_an_engine_without_queues_takes_the_runs_of_all(app: Rota) -> None:
    called: list[str] = []

    @app.task(limit=Limit(1))
    async def work(name: str) -> None:
        called.append(name)

    async with app:
        runs = [await work.using(queue=queue).submit(queue) for queue in ("default", "images", "mail")]
        await asyncio.gather(*(run.result(timeout=10) for run in runs))
    assert sorted(called) == ["default", "images", "mail"]


def test_a_simulated_engine_serves_the_queues_of_its_app() -> None:
    app = Rota("memory://", queues=["images"])

    @app.task(queue="images", schedule=Every(hours=1))
    async def resize() -> None: ...

    @app.task(schedule=Every(hours=1))
    async def greet() -> None: ...

    simulation = simulate(app, START, START + timedelta(hours=4))
    assert (len(simulation.starts("resize")), len(simulation.starts("greet"))) == (3, 0)


@pytest.mark.parametrize("queue", ["", "a b", "a,b", "*", "x" * 101, "a\n", 7])
def test_a_queue_needs_a_name_that_a_command_line_can_carry(app: Rota, queue: str) -> None:
    with pytest.raises(InvalidOptions, match="task job: queue="):
        app.task(queue=queue)(job)
    task = app.task(job)
    with pytest.raises(InvalidOptions, match="queue"):
        call_of(task.using(queue=queue).bind()).to_run()


def job() -> None: ...


@pytest.mark.parametrize(
    ("text", "expected"), [("images", ("images",)), (" a, b,a ,", ("a", "b")), ("default", ("default",))]
)
def test_the_queues_of_a_process_are_a_setting(
    monkeypatch: pytest.MonkeyPatch, text: str, expected: tuple[str, ...]
) -> None:
    monkeypatch.setenv("ROTA_QUEUES", text)
    assert core_of(Rota("memory://")).tuning.queues == expected


def test_a_setting_with_a_bad_queue_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_QUEUES", "two words")
    with pytest.raises(InvalidOptions, match=r"queues=.*ROTA_QUEUES.*without spaces"):
        Rota("memory://")
