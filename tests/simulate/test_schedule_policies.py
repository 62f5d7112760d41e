"""Policies of schedules in virtual time: replace, buffer, n times, breaker, several schedules of one task."""

import asyncio
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from rota import Breaker, Context, Cron, DailyAt, Every, InvalidOptions, Rota, State
from rota.domain.decision import Reason
from rota.testing import simulate
from rota.testing.simulation import Simulation
from tests.simulate.test_schedules import START, decided, nominals


def test_a_tick_replaces_the_run_before_it_and_starts_when_its_call_has_ended() -> None:
    app = Rota("memory://")
    spans: list[tuple[str, float]] = []

    @app.task(schedule=Every(minutes=10), overlap="replace")
    async def mirror(ctx: Context) -> None:
        spans.append(("begin", asyncio.get_running_loop().time()))
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(30)  # it takes a while to stop
            spans.append(("end", asyncio.get_running_loop().time()))

    simulation = simulate(app, START, START + timedelta(minutes=45))
    words = [word for word, _ in spans]
    assert words[:6] == ["begin", "end"] * 3, "never two calls at once"
    states = [run.state for run in simulation.of("mirror")]
    assert states[:3] == [State.CANCELLED] * 3
    assert nominals(simulation, "mirror")[:4] == [START + timedelta(minutes=10 * n) for n in range(1, 5)]
    assert all(run.note and run.note.startswith("replaced by ") for run in simulation.of("mirror")[:3])


def test_a_buffer_runs_every_tick_in_order_and_refuses_what_it_cannot_hold() -> None:
    app = Rota("memory://")
    spans: list[tuple[datetime | None, float, float]] = []

    @app.task(schedule=Every(minutes=1), overlap="buffer", buffer=3)
    async def import_page(ctx: Context) -> None:
        begin = asyncio.get_running_loop().time()
        await asyncio.sleep(590 if len(spans) == 0 else 20)
        spans.append((ctx.nominal, begin, asyncio.get_running_loop().time()))

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(1190)
        reasons = [tick.firing.reason for tick in await app.schedules.ticks("import_page")]
        assert reasons == [Reason.ACCEPTED] * 4 + [Reason.BUFFER_FULL] * 6 + [Reason.ACCEPTED] * 9
        (full,) = await decided(app, "import_page", Reason.BUFFER_FULL)
        assert full.count == 6

    simulate(app, START, START + timedelta(minutes=20), scenario=scenario)
    minutes = [round(((at or START) - START).total_seconds() / 60) for at, _, _ in spans]
    assert minutes[:6] == [1, 2, 3, 4, 11, 12], "in order"
    assert all(end <= begin for (_, _, end), (_, begin, _) in pairwise(spans)), "one after the other"


def test_a_buffer_makes_up_for_all_ticks_of_an_outage() -> None:
    app = Rota("memory://")

    @app.task(schedule=Every(hours=1), overlap="buffer", catch_up="all")
    async def hourly() -> None: ...

    async def outage(simulation: Simulation) -> None:
        await asyncio.sleep(90 * 60)
        simulation.crash(restart=4 * 3600)

    simulation = simulate(app, START, START + timedelta(hours=7), scenario=outage)
    assert nominals(simulation, "hourly") == [START + timedelta(hours=n) for n in range(1, 7)]


def test_a_schedule_fires_n_times_and_ends() -> None:
    app = Rota("memory://")

    @app.task
    async def remind() -> None: ...

    async def scenario(simulation: Simulation) -> None:
        await app.schedules.put("three", DailyAt(9), remind.bind(), times=3)
        await asyncio.sleep(5 * 86_400)
        seen = await app.schedules.get("three")
        assert (seen.made, seen.ended) == (3, True)
        with pytest.raises(InvalidOptions, match="times=0: a whole number from 1 to 1,000,000"):
            await app.schedules.put("none", DailyAt(9), remind.bind(), times=0)

    days = simulate(app, START, START + timedelta(days=6), scenario=scenario)
    assert [at.day for at in days.starts(remind)] == [1, 2, 3]


def test_a_breaker_stops_a_schedule_that_keeps_failing_for_a_while() -> None:
    app = Rota("memory://")

    @app.task(schedule=Every(hours=1), breaker=Breaker(3, cool_down=6 * 3600))
    async def fragile() -> None:
        raise ValueError("the server is gone")

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(8.5 * 3600)
        reasons = [tick.firing.reason for tick in await app.schedules.ticks("fragile")]
        assert reasons == [Reason.ACCEPTED] * 3 + [Reason.BREAKER] * 5

    simulation = simulate(app, START, START + timedelta(hours=9, minutes=30), scenario=scenario)
    assert [at.hour for at in simulation.starts(fragile)] == [1, 2, 3, 9], "then it is tried again"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"buffer": 5}, "say overlap='buffer' as well"),
        ({"overlap": "buffer", "buffer": 1001}, "buffer=1001: a whole number from 1 to 1,000"),
        ({"overlap": "buffer", "breaker": Breaker(3)}, "leave one of them out"),
        ({"overlap": "sometimes"}, "choose skip, queue, allow, replace, buffer"),
        ({"catch_up": "all", "overlap": "replace"}, "catch_up='all' wants a run for every tick"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, Any], words: str) -> None:
    app = Rota("memory://")
    with pytest.raises(InvalidOptions) as caught:

        @app.task(schedule=Every(hours=1), **options)
        async def hourly() -> None: ...

    assert words in str(caught.value)


def test_a_task_has_several_schedules() -> None:
    app = Rota("memory://")

    @app.task(schedule=[DailyAt(9), Cron("0 17 * * *")])
    async def report() -> None: ...

    @app.task(schedule={"early": DailyAt(6), "late": "daily 22:00"}, aliases=["clean"])
    async def sweep() -> None: ...

    simulation = simulate(app, START, START + timedelta(days=1))
    assert [at.hour for at in simulation.starts(report)] == [9, 17]
    assert [at.hour for at in simulation.starts(sweep)] == [6, 22]
    assert [run.origin.of for run in simulation.of("report")] == ["report", "report:2"]
    assert [run.origin.of for run in simulation.of("sweep")] == ["sweep:early", "sweep:late"]


def test_a_list_of_schedules_holds_triggers_only() -> None:
    app = Rota("memory://")
    wrongs: list[Any] = [[60], {"early": 60}, {1: "daily 09:00"}]
    for wrong in wrongs:
        with pytest.raises(InvalidOptions, match="or a list of triggers, or triggers by name"):

            @app.task(schedule=wrong)
            async def report() -> None: ...

    with pytest.raises(InvalidOptions, match="101 triggers; at most 100"):

        @app.task(schedule=[DailyAt(9)] * 101)
        async def other() -> None: ...
