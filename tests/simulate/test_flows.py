"""Flows in virtual time, on the real engine: order, once per period, failures, healing, results by name."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from rota import (
    Context,
    Cron,
    Flow,
    InvalidOptions,
    Period,
    Reason,
    Retry,
    Rota,
    State,
)
from rota.testing import simulate
from rota.testing.simulation import Simulation

PARIS = ZoneInfo("Europe/Paris")
START = datetime(2026, 11, 15, 3, 0, tzinfo=PARIS)
DAY = "2026-11-15"


class Journal:
    """Who began and ended, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.failing: set[str] = set()

    def task(self, app: Rota, name: str, seconds: float = 1.0) -> Any:
        @app.task(name=name)
        async def work(ctx: Context) -> str:
            self.lines.append(f"+{name}")
            await asyncio.sleep(seconds)
            if name in self.failing:
                raise ValueError(name)
            self.lines.append(f"-{name}")
            return f"{name} of {ctx.period}"

        return work


def a_day(on_failure: str = "block", recheck: bool = True) -> tuple[Rota, Flow, Journal]:
    """load → (left, right) → join, rechecked every seven minutes from four to eleven."""
    app, journal = Rota("memory://", tz="UTC"), Journal()
    load, left, right, join = (journal.task(app, name) for name in ("load", "left", "right", "join"))
    trigger = Cron("*/7 4-23 * * *") if recheck else None
    day = app.flow("day", once=Period.day(tz="Europe/Paris"), recheck=trigger, on_failure=on_failure)  # type: ignore[arg-type]
    day.step(load)
    day.step(left, after=[load])
    day.step(right, after=[load])
    day.step(join, after=[left, right])
    return app, day, journal


def played(app: Rota, hours: float, scenario: Callable[[Simulation], Awaitable[object]] | None = None) -> Simulation:
    return simulate(app, START, START + timedelta(hours=hours), scenario=scenario)


def test_a_day_goes_in_order_and_in_parallel_and_once() -> None:
    app, _, journal = a_day()
    simulation = played(app, 20)
    assert journal.lines[:2] == ["+load", "-load"]
    assert sorted(journal.lines[2:4]) == ["+left", "+right"], "both start before either has ended"
    assert journal.lines[6:] == ["+join", "-join"]
    (first,) = simulation.of("load")
    assert datetime.fromtimestamp(first.created_at, PARIS).strftime("%H:%M") == "04:00"
    (last,) = simulation.of("join")
    assert (last.finished_at or 0) - first.due_at == pytest.approx(3, abs=0.1), "no step waits for the recheck"
    assert last.origin.period == DAY


def test_every_day_is_a_day_of_its_own() -> None:
    app, _, journal = a_day()
    simulation = played(app, 72)
    assert [run.origin.period for run in simulation.of("join")] == ["2026-11-15", "2026-11-16", "2026-11-17"]
    assert len(journal.lines) == 24


def test_a_failed_step_blocks_those_behind_it_and_is_healed_by_the_recheck() -> None:
    app, day, journal = a_day()
    journal.failing.add("left")

    async def mends(simulation: Simulation) -> None:
        await asyncio.sleep(3600 + 60)
        status = await day.status()
        states = {name: step.state for name, step in status.steps.items()}
        assert states == {"load": "done", "left": "failed", "right": "done", "join": "blocked"}
        join, left = status.steps["join"], status.steps["left"]
        assert (join.blocked_by, join.since) == (("left",), left.since)
        journal.failing.clear()

    played(app, 2, mends)
    assert journal.lines.count("+left") == 2, "the recheck after the repair runs it again"
    assert journal.lines.count("-join") == 1
    assert journal.lines.index("-left") < journal.lines.index("+join")


def test_a_blocked_step_names_the_root_however_far_up() -> None:
    app, day, journal = a_day(recheck=False)
    journal.failing.add("load")

    async def looks(simulation: Simulation) -> None:
        await day.start()
        await asyncio.sleep(60)
        status = await day.status()
        assert [status.steps[name].blocked_by for name in ("left", "join")] == [("load",), ("load",)]
        assert set(status.blocked) == {"left", "right", "join"}
        assert not status.done

    played(app, 1, looks)


def test_continue_goes_on_without_the_failed_step() -> None:
    app, _, journal = a_day("continue", recheck=False)
    journal.failing.add("left")
    starts(app)
    assert journal.lines[-2:] == ["+join", "-join"]
    assert "-left" not in journal.lines


def test_continue_waits_for_the_retries_of_a_step() -> None:
    app, calls = Rota("memory://"), list[str]()

    @app.task(retry=Retry(2, delay=10, jitter=0))
    async def shaky() -> None:
        calls.append("shaky")
        raise ValueError

    @app.task
    async def then() -> None:
        calls.append("then")

    flow = app.flow("f", once=Period.day(), on_failure="continue")
    flow.step(shaky)
    flow.step(then, after=[shaky])
    starts(app)
    assert calls == ["shaky"] * 3 + ["then"]


def test_stop_ends_the_period() -> None:
    app, day, journal = a_day("stop")
    journal.failing.add("load")

    async def looks(simulation: Simulation) -> None:
        await asyncio.sleep(3 * 3600)
        states = {name: step.state for name, step in (await day.status()).steps.items()}
        assert states == {"load": "failed", "left": "cancelled", "right": "cancelled", "join": "cancelled"}
        journal.failing.clear()
        answers = await day.start()
        assert {answer.reason for answer in answers.values()} == {Reason.ACCEPTED}, "a person starts it again"

    played(app, 4, looks)
    assert journal.lines.count("+load") == 2, "no recheck started it"
    assert journal.lines[-1] == "-join"


def starts(app: Rota, hours: float = 1.0) -> Simulation:
    """The app's only flow, started once."""
    (flow,) = app.flows.values()

    async def start(simulation: Simulation) -> None:
        await flow.start()

    return played(app, hours, start)


def test_starting_twice_changes_nothing() -> None:
    app, day, journal = a_day(recheck=False)

    async def twice(simulation: Simulation) -> None:
        first = await day.start()
        again = await day.start()
        assert {answer.reason for answer in first.values()} == {Reason.ACCEPTED}
        assert {answer.reason for answer in again.values()} == {Reason.JOINED}
        assert [answer.run for answer in again.values()] == [answer.run for answer in first.values()]
        await asyncio.sleep(60)
        assert {answer.reason for answer in (await day.start()).values()} == {Reason.ALREADY_DONE}

    played(app, 1, twice)
    assert len(journal.lines) == 8


def test_a_cancelled_step_stays_cancelled_until_somebody_says_otherwise() -> None:
    app, day, journal = a_day()

    async def cancels(simulation: Simulation) -> None:
        await day.start()
        run = (await day.status()).steps["left"].run
        assert run is not None
        await app.handle(run.id).cancel("not today")
        await asyncio.sleep(2 * 3600)
        assert "+left" not in journal.lines, "no recheck makes it anew"
        assert (await day.status()).steps["join"].blocked_by == ("left",)
        await day.rerun("left")

    played(app, 3, cancels)
    assert journal.lines[-1] == "-join"


def test_rerun_does_a_step_again_and_what_follows_from_it() -> None:
    app, day, journal = a_day(recheck=False)

    async def reruns(simulation: Simulation) -> None:
        await day.start()
        await asyncio.sleep(60)
        del journal.lines[:]
        assert list(await day.rerun("left")) == ["left", "join"]
        await asyncio.sleep(60)
        assert journal.lines == ["+left", "-left", "+join", "-join"]
        del journal.lines[:]
        await day.rerun("left", downstream=False)
        await asyncio.sleep(60)
        assert journal.lines == ["+left", "-left"]
        with pytest.raises(InvalidOptions, match="no step 'nobody'; there are: load, left"):
            await day.rerun("nobody")

    played(app, 1, reruns)


def test_what_would_be_done_anew_is_not_done_while_it_runs() -> None:
    app, day, journal = a_day(recheck=False)

    async def reruns(simulation: Simulation) -> None:
        await day.start()
        await asyncio.sleep(1.5)
        with pytest.raises(InvalidOptions, match="step left runs; wait for its end, or cancel"):
            await day.rerun("load")
        await day.rerun("load", downstream=False)

    played(app, 1, reruns)
    assert journal.lines.count("-load") == 2
    assert journal.lines.count("-join") == 1


def test_the_retry_of_a_step_that_was_never_reached_waits_like_it() -> None:
    app, day, journal = a_day(recheck=False)

    async def retries(simulation: Simulation) -> None:
        await app.pause("load")
        answers = await day.start()
        handle = app.handle(answers["left"].run)
        await handle.cancel()
        await handle.retry()
        await asyncio.sleep(60)
        assert journal.lines == []
        await app.resume("load")

    played(app, 1, retries)
    assert journal.lines.index("-load") < journal.lines.index("+left")
    assert journal.lines[-1] == "-join"


def test_a_step_that_waits_for_one_that_left_the_code_is_blocked_by_it() -> None:
    app, day, _ = a_day(recheck=False)

    async def looks(simulation: Simulation) -> None:
        await app.pause("load")
        await day.start()
        del day.steps["load"]
        status = await day.status()
        assert (status.steps["join"].blocked_by, status.moving) == (("load",), False)

    played(app, 1, looks)


def test_reset_lets_the_next_recheck_do_it_again() -> None:
    app, day, journal = a_day()

    async def resets(simulation: Simulation) -> None:
        await asyncio.sleep(3600 + 60)
        assert await day.reset(DAY, "left", downstream=True) == ["left", "join"]
        assert await day.reset(DAY, "left") == []
        assert (await day.status()).steps["left"].state == "absent"

    played(app, 2, resets)
    assert journal.lines[8:] == ["+left", "-left", "+join", "-join"]


def test_backfill_starts_every_period() -> None:
    app, day, _ = a_day(recheck=False)

    async def fills(simulation: Simulation) -> None:
        assert list(await day.backfill("2026-10-24", "2026-10-26")) == ["2026-10-24", "2026-10-25", "2026-10-26"]
        with pytest.raises(InvalidOptions, match="more than 1,000 days"):
            await day.backfill("2020-01-01", "2026-01-01")
        with pytest.raises(InvalidOptions, match="is no day"):
            await day.backfill("2026-W01", "2026-W02")

    simulation = played(app, 1, fills)
    assert sorted(run.origin.period or "" for run in simulation.of("join")) == [
        "2026-10-24",
        "2026-10-25",
        "2026-10-26",
    ]
    assert all(run.state is State.SUCCEEDED for run in simulation.runs)


def test_a_step_that_is_new_in_the_code_is_started_by_the_recheck() -> None:
    app, day, journal = a_day()
    late = journal.task(app, "late")

    async def grows(simulation: Simulation) -> None:
        await asyncio.sleep(3600 + 60)
        day.step(late, after="join")

    played(app, 2, grows)
    assert journal.lines[-2:] == ["+late", "-late"]


def test_a_period_can_be_waited_for() -> None:
    app, day, journal = a_day(recheck=False)
    journal.failing.add("right")

    async def waits(simulation: Simulation) -> None:
        await day.start()
        with pytest.raises(TimeoutError):
            await day.wait(timeout=1.5)
        status = await day.wait()
        assert (status.done, list(status.blocked)) == (False, ["join"])
        journal.failing.clear()
        await day.rerun("right")
        assert (await day.wait(DAY)).done

    played(app, 1, waits)


def test_a_period_of_ones_own() -> None:
    app, journal = Rota("memory://"), Journal()
    shift = app.flow("shift", once=lambda at: f"{at:%Y-%m-%d}-{'early' if at.hour < 12 else 'late'}")
    shift.step(journal.task(app, "work"))

    async def starts_all(simulation: Simulation) -> None:
        await shift.start()
        await shift.start()
        await shift.start(datetime(2026, 11, 15, 13, tzinfo=UTC))
        with pytest.raises(InvalidOptions, match="without @"):
            await shift.start("a@b")
        with pytest.raises(InvalidOptions, match="start them one by one"):
            await shift.backfill("a", "b")

    simulation = played(app, 1, starts_all)
    assert [run.origin.period for run in simulation.of("work")] == ["2026-11-15-early", "2026-11-15-late"]


def test_a_retried_step_releases_those_behind_it() -> None:
    app, day, journal = a_day(recheck=False)
    journal.failing.add("left")

    async def retries(simulation: Simulation) -> None:
        await day.start()
        await asyncio.sleep(60)
        journal.failing.clear()
        run = (await day.status()).steps["left"].run
        assert run is not None
        await app.handle(run.id).retry()

    played(app, 1, retries)
    assert journal.lines[-4:] == ["+left", "-left", "+join", "-join"]
