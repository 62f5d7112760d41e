"""What a scrape shows after days of work: ticks, successes, late steps and open breakers, by the virtual clock."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from prometheus_client import CollectorRegistry

from rota import Breaker, Every, Period, Rota
from rota.testing import Simulation, simulate
from rota.web.metrics import registry
from tests.requirement import requirement

START = datetime(2026, 11, 16, tzinfo=UTC)
HOUR = 3600.0


def scraped(app: Rota, hours: float, begin: Callable[[], Awaitable[object]] | None = None) -> CollectorRegistry:
    """Return what a scrape shows after so many hours. What a worker counts comes with its next claim: here, when the
    next thing is due."""
    found: list[CollectorRegistry] = []

    async def scenario(_: Simulation) -> None:
        if begin is not None:
            await begin()
        await asyncio.sleep(hours * HOUR)
        found.append(await registry(app.client()))

    simulate(app, START, START + timedelta(hours=hours + 1), scenario=scenario)
    return found[0]


@requirement("1.7")
def test_ticks_and_their_lateness_are_counted_by_schedule() -> None:
    app = Rota("memory://")

    @app.task(schedule=Every(hours=1))
    async def report() -> None: ...

    metrics = scraped(app, 5.5)
    labels = {"schedule": "report"}
    assert metrics.get_sample_value("rota_ticks_total", {**labels, "reason": "accepted"}) == 4
    assert metrics.get_sample_value("rota_tick_lateness_seconds_count", labels) == 4
    assert metrics.get_sample_value("rota_submitted_total", {"task": "report"}) == 5


def test_a_schedule_that_succeeds_is_not_expected_to_have_succeeded_later() -> None:
    app = Rota("memory://")

    @app.task(schedule=Every(hours=1))
    async def good() -> None: ...

    @app.task(schedule=Every(hours=1))
    async def bad() -> None:
        raise ValueError("no")

    metrics = scraped(app, 5.5)

    def times(schedule: str) -> list[float | None]:
        names = ("last_success", "expected_success")
        return [
            metrics.get_sample_value(f"rota_schedule_{name}_timestamp_seconds", {"schedule": schedule})
            for name in names
        ]

    assert times("good") == [START.timestamp() + 4 * HOUR, START.timestamp() + 3 * HOUR]
    assert times("bad") == [0, START.timestamp() + 3 * HOUR]


def test_a_tick_whose_period_is_done_needs_no_success() -> None:
    app = Rota("memory://")

    @app.task(schedule=Every(hours=1), once=Period.day(tz="UTC"))
    async def daily() -> None: ...

    metrics = scraped(app, 8.5)
    labels = {"schedule": "daily"}
    assert metrics.get_sample_value("rota_ticks_total", {**labels, "reason": "already_done"}) == 7
    assert metrics.get_sample_value("rota_schedule_last_success_timestamp_seconds", labels) is not None
    assert metrics.get_sample_value("rota_schedule_expected_success_timestamp_seconds", labels) is None


def test_a_young_schedule_is_not_judged() -> None:
    app = Rota("memory://")

    @app.task(schedule=Every(hours=1))
    async def bad() -> None:
        raise ValueError("no")

    metrics = scraped(app, 2.5)
    assert metrics.get_sample_value("rota_schedule_last_success_timestamp_seconds", {"schedule": "bad"}) is None


def test_a_step_is_late_until_it_is_done() -> None:
    app = Rota("memory://")
    slow = 8 * HOUR

    @app.task
    async def load() -> None:
        await asyncio.sleep(slow)

    @app.task
    async def quick() -> None: ...

    daily = app.flow("daily", once=Period.day(tz="UTC"))
    daily.step(load, expect="06:00")
    daily.step(quick, expect="06:00")

    def late(hours: float, step: str) -> float | None:
        metrics = scraped(app, hours, daily.start)
        return metrics.get_sample_value("rota_flow_step_late", {"flow": "daily", "step": step})

    assert [late(5, "load"), late(7, "load"), late(9, "load")] == [0, 1, 0]
    assert late(7, "quick") == 0


def test_a_breaker_is_open_until_it_lets_runs_in_again() -> None:
    app = Rota("memory://")

    calls: list[int] = []

    @app.task(schedule=Every(hours=1), breaker=Breaker(2, cool_down=10 * HOUR))
    async def charge() -> None:
        calls.append(1)
        if len(calls) <= 2:
            raise ValueError("no")

    def open_breakers(hours: float) -> float | None:
        calls.clear()
        return scraped(app, hours).get_sample_value("rota_breakers_open", {"task": "charge"})

    assert [open_breakers(1.5), open_breakers(4.5), open_breakers(12.2)] == [None, 1, 0]
