"""What no code knows is said: at the start of a worker, at a submit of a wrong name, and not at every tick."""

import asyncio
import logging

import pytest

from rota import Every, Rota
from rota.app.core import core_of
from rota.client.fleet import is_alive
from rota.store import ClaimRequest, Report, WorkerSeen
from rota.stores.memory import MemoryBackend
from rota.task import definition_of
from rota.testing import drain
from storekit.contract import new_run


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """All warnings, but for those of the watchdog: on a busy machine, the loop may turn late."""
    told = [record for record in caplog.records if record.levelno >= logging.WARNING and record.module != "watchdog"]
    return [record.getMessage() for record in told]


async def test_a_start_tells_of_queued_runs_whose_task_nobody_knows(caplog: pytest.LogCaptureFixture) -> None:
    backend = MemoryBackend()
    app = Rota(backend)

    @app.task(aliases=["former"])
    async def new(name: str) -> None: ...

    store = await app.client().store()
    await store.put([new_run("old"), new_run("former"), new_run("elsewhere")])
    await store.claim(ClaimRequest("bob", 1, ["elsewhere"], 0, 30))
    async with app:
        pass
    (told,) = warnings(caplog)
    assert told.startswith("1 queued run of old: no live worker knows that task; if it was renamed")
    assert "aliases=['old']" in told


async def test_a_start_tells_of_schedules_that_left_the_code(caplog: pytest.LogCaptureFixture) -> None:
    backend = MemoryBackend()
    before, after, other = Rota(backend, name="shop"), Rota(backend, name="shop"), Rota(backend, name="other")
    before.task(name="beat", schedule=Every(3600))(lambda: None)
    other.task(name="theirs", schedule=Every(3600))(lambda: None)
    after.task(name="tick", schedule=Every(3600))(lambda: None)
    for app in (before, other):
        await core_of(app).declare_schedules()
    async with after:
        pass
    (told,) = warnings(caplog)
    assert "no longer in the code of this app, and still firing: schedule beat; `rota sync --prune`" in told


async def test_a_schedule_that_left_the_code_is_told_of_once_and_not_at_every_tick(
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend = MemoryBackend()
    before, after = Rota(backend, name="shop"), Rota(backend, name="shop")
    before.task(name="beat", schedule=Every(60))(lambda: None)
    await core_of(before).declare_schedules()
    await (await before.client().store()).put([new_run("beat", key="schedule:beat", unique="active")])
    async with asyncio.timeout(20), after:
        for n in range(1, 4):
            backend.skew += 60
            while len((await after.schedules.get("beat")).recent) < n:
                await after.client().news(0.05)
    told = [line for line in warnings(caplog) if "skipped its tick" in line]
    assert len(told) == 1, told
    assert told[0].endswith("it is no longer in the code of its app, `rota sync --prune` deletes it")


async def test_a_mistyped_name_is_taken_with_a_warning_that_names_the_likely_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = Rota("memory://")
    ran: list[int] = []

    @app.task
    async def job(n: int) -> None:
        ran.append(n)

    for _ in range(3):
        assert await app.submit("jbo", n=1)
    assert warnings(caplog) == [
        "submitted jbo, which neither this app nor any worker has defined: the run waits until one does; "
        "did you mean job?"
    ]
    await app.submit("job", n=2)
    await drain(app)
    assert ran == [2]


async def test_who_defines_nothing_on_an_empty_store_is_not_warned(caplog: pytest.LogCaptureFixture) -> None:
    client = Rota("memory://")
    await client.submit("anything", n=1)
    assert warnings(caplog) == []
    something = Rota("memory://").task(name="something")(lambda: None)
    await (await client.client().store()).declare([definition_of(something).spec])
    await client.submit("somethin", n=1)
    assert warnings(caplog)[0].endswith("did you mean something?")


def test_a_worker_is_alive_for_its_own_lease() -> None:
    def worker(lease: float) -> WorkerSeen:
        return WorkerSeen("w", ("job",), 1000.0, False, Report(lease=lease))

    assert [is_alive(worker(2.0), 1000.0 + silence) for silence in (1.9, 2.1, 14)] == [True, False, False]
    assert [is_alive(worker(0.1), 1000.0 + silence) for silence in (1.9, 2.1)] == [True, False]
    assert [is_alive(worker(86_400.0), 1000.0 + silence) for silence in (29, 31)] == [True, False]
    assert [is_alive(worker(0.0), 1000.0 + silence) for silence in (29, 31)] == [True, False], "an older version"


async def test_a_worker_says_how_long_its_leases_are() -> None:
    app = Rota("memory://", lease=2)
    app.task(name="job")(lambda: None)
    async with asyncio.timeout(10), app:
        while not (rows := (await (await app.client().store()).rows(WorkerSeen)).items):
            await app.client().news(0.05)
        assert rows[0].report.lease == 2.0


async def test_the_same_code_has_a_namespace_in_memory_too() -> None:
    app = Rota("memory://", namespace="bindu")
    app.task(name="job")(lambda: None)
    await app.submit("job")
    assert (await app.depths())["job"].queued == 1
    assert (await Rota("memory://", namespace="other").depths()) == {}
