"""Clocks: a worker whose host has the wrong time says so, and people read it."""

import time

import pytest

from rota import Rota
from rota.app.core import core_of
from rota.doctor.store_checks import store_checks
from rota.domain.tuning import Tuning
from rota.engine.reports import Reports
from rota.engine.seats import Seats
from rota.engine.tallies import Tallies
from rota.engine.world import World
from rota.store import WorkerSeen
from rota.views.workers import worker_views


@pytest.mark.parametrize(
    ("asked", "answered", "ahead"),
    [(100.0, 100.4, 0.0), (98.5, 98.6, 0.0), (195.0, 195.2, 95.0), (10.0, 12.0, -88.0), (90.0, 110.0, 0.0)],
)
def test_the_wrong_part_of_a_clock_is_what_the_way_to_the_store_does_not_explain(
    asked: float, answered: float, ahead: float
) -> None:
    times = iter([asked, answered, answered])
    ticks = iter([0.0, 0.0, 10.0])
    world = World(wall=lambda: next(times), monotonic=lambda: next(ticks))
    reports = Reports(Seats("w", 1), Tallies(), Tuning(), world)
    reports.next()
    reports.sent(100.0)
    report = reports.next()
    assert report is not None
    assert report.ahead == ahead


async def test_a_host_with_the_wrong_time_is_named_by_workers_why_and_doctor() -> None:
    app = Rota("memory://")

    @app.task
    async def add(a: int) -> int:
        return a

    world = World(wall=lambda: time.time() + 95)
    engine = core_of(app).build_engine(world=world)
    await engine.start()
    try:
        client = app.client()
        heard = await client.news(0)
        while not (seen := (await client.rows(WorkerSeen)).items) or not seen[0].report.ahead:
            await add.submit(1)
            heard = await client.news(1, heard)
        (view,) = await worker_views(client)
        assert view.ahead == pytest.approx(95, abs=0.2)
        words = [fact.text for fact in (await app.why("add")).facts if fact.about == "clock"]
        assert words == [f"the clock of {view.host} is 95 s ahead of the store's: set it (NTP)"]
        (check,) = [each for each in await store_checks(app.backend) if each.name == "clocks"]
        assert "ahead" in check.detail
    finally:
        await engine.stop(0)
