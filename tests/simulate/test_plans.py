"""Plans that follow their anchor, in virtual time."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import Struct

from rota import InvalidArguments, InvalidOptions, Limit, Period, PlanReport, Reason, Retry, Rota
from rota.domain.decision import DecisionCount
from rota.domain.guards import Mark
from rota.domain.run import State
from rota.domain.spec import TaskSpec
from rota.store import MarkRow, RowQuery, RunQuery
from rota.testing import simulate
from rota.testing.simulation import Simulation

START = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


class Race(Struct):
    id: str
    start: Any
    starters: int = 12


def at(hour: int, minute: int = 0) -> datetime:
    return START.replace(hour=hour, minute=minute)


class Track:
    """An app that watches races, ten minutes after they start."""

    def __init__(self) -> None:
        self.app = Rota("memory://")
        self.watched: list[tuple[str, str]] = []

        @self.app.task
        async def watch(race: str) -> None:
            self.watched.append((race, f"{self.simulation.now:%H:%M}"))

        self.watch = watch
        self.simulation: Simulation

    async def plan(self, races: Iterable[Race], **options: Any) -> PlanReport:
        said: dict[str, Any] = {
            "call": lambda race: self.watch.bind(race.id),
            "at": lambda race: race.start,
            "offset": timedelta(minutes=10),
            "key": lambda race: race.id,
            "period": "2026-11-15",
        }
        return await self.app.plan("watch_results", races, **(said | options))

    def play(self, scenario: Any, hours: float = 12) -> None:
        async def with_it(simulation: Simulation) -> None:
            self.simulation = simulation
            await scenario()

        simulate(self.app, START, START + timedelta(hours=hours), scenario=with_it)


def test_a_run_per_item_at_its_time() -> None:
    track = Track()

    async def plans() -> None:
        report = await track.plan([Race("R1C1", at(14)), Race("R1C2", at(14, 30)), Race("R0", at(9))])
        assert (report.planned, report.past, report.missed) == (("R1C1", "R1C2"), ("R0",), ("R0",))
        assert str(report) == "2 planned, 1 past (1 missed)"

    track.play(plans)
    assert track.watched == [("R1C1", "14:10"), ("R1C2", "14:40")]


def test_a_race_that_moves_twice_and_is_then_cancelled() -> None:
    track = Track()

    async def plans() -> None:
        await track.plan([Race("R1", at(14)), Race("R2", at(15))])
        assert (await track.plan([Race("R1", at(16)), Race("R2", at(15))])) == PlanReport(moved=("R1",), kept=("R2",))
        assert (await track.plan([Race("R1", at(13)), Race("R2", at(18))])).moved == ("R1", "R2")
        await asyncio.sleep(5400)
        report = await track.plan([])
        assert report == PlanReport(cancelled=("R2",))

    track.play(plans)
    assert track.watched == [("R1", "13:10")], "once, at the last time it was given; the other never"


def test_what_ran_is_left_alone() -> None:
    track = Track()

    async def plans() -> None:
        await track.plan([Race("R1", at(13))])
        await asyncio.sleep(2 * 3600)
        assert await track.plan([Race("R1", at(20))]) == PlanReport(done=("R1",))

    track.play(plans)
    assert track.watched == [("R1", "13:10")]


def test_what_is_late_but_waits_is_not_cancelled_as_past() -> None:
    track = Track()

    async def plans() -> None:
        await track.plan([Race("R1", at(12, 30))])
        track.simulation.crash(restart=3600)
        await asyncio.sleep(3000)
        assert await track.plan([Race("R1", at(12, 30))]) == PlanReport(past=("R1",))

    track.play(plans)
    assert [race for race, _ in track.watched] == ["R1"]


def test_a_grace_lets_what_is_a_little_late_still_start() -> None:
    track = Track()

    async def plans() -> None:
        report = await track.plan([Race("late", at(11, 45)), Race("gone", at(11, 30))], grace=600)
        assert (report.planned, report.past) == (("late",), ("gone",))

    track.play(plans)
    assert track.watched == [("late", "12:00")]


def test_what_an_earlier_plan_missed_is_found_and_recorded_once() -> None:
    """R1 was never planned, nobody was there for R2, and R3 is done: two were missed; planning on changes nothing."""
    track = Track()

    async def plans() -> None:
        races = [Race("R2", at(12, 30)), Race("R3", at(12))]
        await track.plan(races, grace=60)
        await asyncio.sleep(660)  # R3 is watched at 12:10
        track.simulation.crash(restart=3600)
        await asyncio.sleep(3600)
        races.append(Race("R1", at(12, 5)))
        for _ in range(3):
            report = await track.plan(races, grace=60)
            assert report == PlanReport(past=("R2", "R3", "R1"), missed=("R2", "R1"))
            await asyncio.sleep(300)
        store = await track.app.client().store()
        rows = (await store.rows(DecisionCount, RowQuery(task="watch"))).items
        assert {(row.key, row.reason, row.count) for row in rows if row.reason is Reason.EXPIRED} == {
            ("watch_results/R1@2026-11-15", Reason.EXPIRED, 1),
            ("watch_results/R2@2026-11-15", Reason.EXPIRED, 1),
        }

    track.play(plans)
    assert [race for race, _ in track.watched] == ["R3"]


def test_a_missed_race_that_is_put_off_is_watched() -> None:
    track = Track()

    async def plans() -> None:
        assert (await track.plan([Race("R1", at(11))])).missed == ("R1",)
        assert (await track.plan([Race("R1", at(14))])).planned == ("R1",)

    track.play(plans)
    assert track.watched == [("R1", "14:10")]


def test_what_is_done_is_not_missed_although_its_run_is_forgotten() -> None:
    """Marks outlive runs: they say what was done."""
    track = Track()

    async def plans() -> None:
        store = await track.app.client().store()
        mark = Mark(finished_at=1.0, succeeded_at=1.0)
        await store.mark([MarkRow("watch", "watch_results/R1@2026-11-15", mark)])
        assert await track.plan([Race("R1", at(11))]) == PlanReport(past=("R1",))

    track.play(plans)
    assert not track.watched


def test_the_past_is_made_up_where_that_is_wanted() -> None:
    track = Track()

    async def plans() -> None:
        assert (await track.plan([Race("R0", at(9))], skip_past=False)).planned == ("R0",)

    track.play(plans)
    assert track.watched == [("R0", "12:00")]


def test_only_some_and_before_their_time() -> None:
    track = Track()

    async def plans() -> None:
        races = [Race("big", at(14)), Race("small", at(14), starters=5)]
        await track.plan(races, where=lambda race: race.starters > 8, offset=-900)

    track.play(plans)
    assert track.watched == [("big", "13:45")]


def test_days_and_plans_are_apart() -> None:
    track = Track()

    async def plans() -> None:
        await track.plan([Race("R1", at(14))])
        await track.plan([Race("R1", at(15))], period=datetime(2026, 11, 16).date())
        await track.app.plan(
            "other",
            [Race("R1", at(16))],
            call=lambda race: track.watch.bind(race.id),
            at=lambda race: race.start,
            key=lambda race: race.id,
            period="2026-11-15",
        )

    track.play(plans)
    assert track.watched == [("R1", "14:10"), ("R1", "15:10"), ("R1", "16:00")]


def test_thousands_in_one_call() -> None:
    track = Track()

    async def plans() -> None:
        races = [Race(f"R{n}", at(14)) for n in range(3000)]
        assert len((await track.plan(races)).planned) == 3000
        report = await track.plan([*races[1:], Race("new", at(14))])
        assert (len(report.kept), report.planned, report.cancelled) == (2999, ("new",), ("R0",))
        with pytest.raises(InvalidArguments, match="more than 10,000 items"):
            await track.plan(Race(f"R{n}", at(14)) for n in range(10_001))

    track.play(plans, hours=1)


def test_one_wrong_item_and_nothing_is_changed() -> None:
    track = Track()

    async def plans() -> None:
        await track.plan([Race("R1", at(14))])
        for wrong, why in [
            ([Race("R2", at(15)), Race("R2", at(16))], "two items have the key 'R2'"),
            ([Race("R2", datetime(2026, 11, 15, 15))], "has no time zone"),
            ([Race("R2", "15:00")], "is no instant"),
            ([Race("R2", True)], "is no instant"),
        ]:
            with pytest.raises(InvalidArguments, match=why):
                await track.plan(wrong)
        with pytest.raises(InvalidOptions, match="plan watch_results"):
            await track.plan([], period="a@b")
        with pytest.raises(InvalidOptions, match="is an instant; give a day"):
            await track.plan([], period=at(14))
        once: Any = track.app.task(name="once", once=Period.day())(lambda race: None)
        with pytest.raises(InvalidOptions, match="has a once= of its own"):
            await track.plan([Race("R2", at(15))], call=lambda race: once.bind(race.id))
        with pytest.raises(InvalidOptions, match="has a once= of its own"):
            await (track.watch.bind("R3") >> once.bind("R3")).submit()
        with pytest.raises(InvalidArguments, match="let it bind a task"):
            await track.plan([Race("R2", at(15))], call=lambda race: race)
        with pytest.raises(InvalidOptions, match="at= says when"):
            await track.plan([Race("R2", at(15))], call=lambda race: track.watch.using(delay=5).bind(race.id))

    track.play(plans)
    assert track.watched == [("R1", "14:10")]


def test_a_naive_time_is_taken_by_the_clock_that_is_named() -> None:
    track = Track()

    async def plans() -> None:
        await track.plan([Race("R1", datetime(2026, 11, 15, 15, 0))], tz="Europe/Paris")

    track.play(plans)
    assert track.watched == [("R1", "14:10")]


def test_planning_again_does_not_call_back_what_waits_for_its_retry() -> None:
    app, calls, clock = Rota("memory://"), list[str](), list[Simulation]()

    @app.task(retry=Retry(3, backoff="fixed", delay=3600, jitter=0))
    async def watch(race: str) -> None:
        calls.append(f"{clock[0].now:%H:%M}")
        if len(calls) < 3:
            raise ValueError

    async def plans(simulation: Simulation) -> None:
        clock.append(simulation)
        for _ in range(240):
            report = await app.plan(
                "watch",
                ["R1"],
                call=watch.bind,
                at=lambda race: at(13),
                key=str,
                period="2026-11-15",
                skip_past=False,
            )
            assert not report.moved
            await asyncio.sleep(60)

    simulate(app, START, START + timedelta(hours=5), scenario=plans)
    assert calls == ["13:00", "14:00", "15:00"]


def test_what_failed_is_left_alone_until_it_is_put_to_a_later_time() -> None:
    app, calls = Rota("memory://"), list[str]()

    @app.task
    async def watch(race: str) -> None:
        calls.append(race)
        raise ValueError

    async def plan(hour: int) -> PlanReport:
        return await app.plan(
            "w", ["R1"], call=watch.bind, at=lambda race: at(hour), key=str, period="2026-11-15", grace=4 * 3600
        )

    async def plans(simulation: Simulation) -> None:
        await plan(13)
        await asyncio.sleep(2 * 3600)
        for _ in range(3):
            assert await plan(13) == PlanReport(failed=("R1",))
        assert (await plan(15)).planned == ("R1",)

    simulate(app, START, START + timedelta(hours=6), scenario=plans)
    assert calls == ["R1", "R1"]


def test_what_a_person_has_cancelled_is_not_planned_again() -> None:
    track = Track()

    async def plans() -> None:
        await track.plan([Race("R1", at(14)), Race("R2", at(14))])
        store = await track.app.client().store()
        (run,) = (await store.runs(RunQuery(key="watch_results/R1@2026-11-15"))).runs
        await track.app.handle(run.id).cancel("not this one")
        report = await track.plan([Race("R1", at(14)), Race("R2", at(14))])
        assert report == PlanReport(kept=("R2",), refused={"R1": Reason.CANCELLED})

    track.play(plans)
    assert track.watched == [("R2", "14:10")]


def test_a_task_that_is_switched_off_keeps_what_it_has_waiting() -> None:
    track = Track()

    async def plans() -> None:
        await track.plan([Race("R1", at(14))])
        store = await track.app.client().store()
        await store.declare([TaskSpec("watch", enabled=False)])
        assert await track.plan([Race("R1", at(14))]) == PlanReport(refused={"R1": Reason.DISABLED})
        await store.declare([TaskSpec("watch")])

    track.play(plans)
    assert track.watched == [("R1", "14:10")]


def test_the_tasks_own_key_counts_for_its_limit() -> None:
    app, busy = Rota("memory://"), list[int]()
    running = 0

    @app.task(key="{host}", limit=Limit(per_key=1))
    async def fetch(host: str, page: int) -> None:
        nonlocal running
        running += 1
        busy.append(running)
        await asyncio.sleep(10)
        running -= 1

    async def plans(simulation: Simulation) -> None:
        await app.plan(
            "pages", range(4), call=lambda n: fetch.bind("a", n), at=lambda n: at(13), key=str, period="2026-11-15"
        )

    simulate(app, START, START + timedelta(hours=2), scenario=plans)
    assert busy == [1, 1, 1, 1]


def test_a_cancelled_item_may_come_back() -> None:
    track = Track()

    async def plans() -> None:
        await track.plan([Race("R1", at(14))])
        await track.plan([])
        assert (await track.plan([Race("R1", at(15))])).planned == ("R1",)

    track.play(plans)
    assert track.watched == [("R1", "15:10")]
    assert State.CANCELLED in {run.state for run in track.simulation.of("watch")}
