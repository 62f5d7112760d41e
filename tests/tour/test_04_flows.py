"""The tour, part 4: days of dependent work, and plans that follow their anchor."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from rota import (
    Context,
    Cron,
    Event,
    Inputs,
    InvalidArguments,
    InvalidOptions,
    Period,
    Reason,
    Refused,
    Results,
    Rota,
    TaskError,
)
from rota.testing import Simulation, simulate

START = datetime(2026, 5, 4, tzinfo=UTC)
TODAY = "2026-05-04"


def test_a_task_can_be_done_once_a_day() -> None:
    app = Rota("memory://")

    @app.task(once=Period.day())
    async def invoices(ctx: Context) -> str:
        return f"the invoices of {ctx.period}"

    async def scenario(simulation: Simulation) -> None:
        assert await (await invoices.submit()).result() == "the invoices of 2026-05-04"
        with pytest.raises(Refused, match="already_done"):
            await invoices.submit()
        await asyncio.sleep(86_400)
        assert await (await invoices.submit()).result() == "the invoices of 2026-05-05"

    simulate(app, START, START + timedelta(days=2), scenario=scenario)


def test_steps_follow_each_other_and_take_results_by_name() -> None:
    app, said = Rota("memory://"), list[str]()

    @app.task
    async def races() -> list[str]:
        return ["R1", "R2"]

    @app.task
    async def horses(races: list[str], most: int) -> int:
        return len(races) * most

    @app.task
    async def report(races: list[str], horses: int) -> None:
        said.append(f"{races}: {horses}")

    day = app.flow("race_day", once=Period.day(), recheck=Cron("*/7 4-23 * * *"))
    day.step(races)
    day.step(horses, after=races, args={"most": 12})
    day.step(report, after=[races, horses])

    simulation = simulate(app, START, START + timedelta(days=1))
    assert said == ["['R1', 'R2']: 24"]
    assert simulation.starts(report) == [START + timedelta(hours=4)], "the recheck starts the day, nobody waits for it"


def test_what_failed_blocks_and_the_recheck_heals_it() -> None:
    app, broken = Rota("memory://"), [True]

    @app.task
    async def model() -> None:
        if broken[0]:
            raise TaskError("failed", "the model is asleep")

    @app.task
    async def predictions() -> None: ...

    day = app.flow("day", once=Period.day(), recheck=Cron("*/10 * * * *"))
    day.step(model)
    day.step(predictions, after=model)

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(15 * 60)
        step = (await day.status()).steps["predictions"]
        assert (step.state, step.blocked_by) == ("blocked", ("model",))
        broken[0] = False
        await asyncio.sleep(10 * 60)
        assert (await day.status()).done

    simulate(app, START, START + timedelta(hours=1), scenario=scenario)


def test_a_step_may_not_be_wanted_today() -> None:
    app, sent = Rota("memory://"), list[str]()

    @app.task
    async def races() -> list[str]:
        return []

    @app.task
    async def newsletter(date: str) -> None:
        sent.append(date)

    @app.task
    async def tidy(date: str) -> None:
        sent.append(f"tidy {date}")

    def date(inputs: Inputs) -> dict[str, str]:
        return {"date": inputs.period}

    day = app.flow("day", once=Period.day())
    day.step(races)
    day.step(newsletter, after=races, when=lambda inputs: inputs.results["races"], args=date)
    day.step(tidy, after=newsletter, args=date)

    async def scenario(simulation: Simulation) -> None:
        await day.start()
        await asyncio.sleep(1)
        assert (await day.status()).steps["newsletter"].state == "skipped"

    simulate(app, START, START + timedelta(hours=1), scenario=scenario)
    assert sent == [f"tidy {TODAY}"], "what is skipped holds nobody up"


def test_a_step_can_be_done_again_with_all_that_follows_from_it() -> None:
    app, done = Rota("memory://"), list[str]()

    @app.task
    async def letter(name: str) -> None:
        done.append(name)

    day = app.flow("day", once=Period.day())
    a = day.step(letter.bind("a"), name="a")  # one task, three steps
    b = day.step(letter.bind("b"), name="b", after=a)
    day.step(letter.bind("c"), name="c", after=b)

    async def scenario(simulation: Simulation) -> None:
        await day.start()
        await asyncio.sleep(1)
        await day.rerun("b")
        await asyncio.sleep(1)
        answers = await day.start()
        assert {answer.reason for answer in answers.values()} == {Reason.ALREADY_DONE}
        await day.backfill("2026-05-01", "2026-05-02")

    simulate(app, START, START + timedelta(hours=1), scenario=scenario)
    assert "".join(done[:5]) == "abcbc"
    assert len(done) == 5 + 6


def test_a_chain_is_a_flow_for_once() -> None:
    app = Rota("memory://")

    @app.task
    async def fetch(n: int) -> int:
        return n + 1

    @app.task
    async def double(fetch: int) -> int:
        return fetch * 2

    @app.task
    async def tell(double: int) -> str:
        return f"told {double}"

    async def scenario(simulation: Simulation) -> None:
        chain = await (fetch.bind(1) >> double >> [tell, tell]).submit()
        assert await chain.result() == ["told 4", "told 4"]

    simulate(app, START, START + timedelta(hours=1), scenario=scenario)


def test_a_plan_follows_what_it_is_about() -> None:
    app = Rota("memory://")

    @app.task
    async def watch(race: str) -> None: ...

    async def plan(**starts: int) -> str:
        report = await app.plan(
            "watch_results",
            starts,
            call=lambda race: watch.bind(race),
            at=lambda race: START + timedelta(hours=starts[race]),
            offset=timedelta(minutes=10),
            key=lambda race: race,
            period=TODAY,
        )
        return str(report)

    async def scenario(simulation: Simulation) -> None:
        assert await plan(R1=14, R2=15) == "2 planned"
        assert await plan(R1=14, R2=16) == "1 moved, 1 as they were"
        assert await plan(R2=16) == "1 as they were, 1 cancelled"
        await asyncio.sleep(17 * 3600)
        assert await plan(R2=20) == "1 already done"

    day = simulate(app, START, START + timedelta(days=1), scenario=scenario)
    assert day.starts(watch) == [START + timedelta(hours=16, minutes=10)]


def test_a_list_fans_out_and_one_task_gets_all_results() -> None:
    app = Rota("memory://")

    @app.task
    def find(folder: str) -> Iterator[str]:
        yield from (f"{folder}/{name}" for name in ("a.png", "b.png", "notes.txt"))

    @app.task
    async def resize(path: str) -> int:
        if path.endswith(".txt"):
            raise ValueError("no image")
        return len(path)

    @app.task
    def report(results: Results[int]) -> str:
        return f"{list(results)}, {[child.index for child in results.failed]} failed"

    async def scenario(simulation: Simulation) -> None:
        known = await (resize.map(["a.png", "bb.png"]) >> report).submit()
        assert await known.result() == "[5, 6], [] failed"
        found = await (find.bind("/photos") >> resize.each(failures="collect") >> report).submit()
        assert await found.result() == "[13, 13], [2] failed"

    simulate(app, START, START + timedelta(hours=1), scenario=scenario)


def test_somebody_hears_of_what_is_late() -> None:
    app, heard = Rota("memory://"), list[str]()

    @app.task(expect="07:00")  # and nobody ever submits it
    async def backup() -> None: ...

    def hear(event: Event) -> None:
        heard.append(f"{event.task} is {event.name}")

    app.on("late", hear)
    simulate(app, START, START + timedelta(days=2))
    assert heard == ["backup is late"] * 2


def test_what_cannot_be_is_said_when_it_is_defined() -> None:
    app = Rota("memory://")

    @app.task
    async def races() -> int:
        return 2

    @app.task
    async def report(races: int, colour: str) -> None: ...

    day = app.flow("day", once=Period.day())
    day.step(races)
    with pytest.raises(InvalidArguments, match="nothing gives its parameter 'colour'"):
        day.step(report, after=races)
    with pytest.raises(InvalidOptions, match="'horses', which is no step before it; there are: races"):
        day.step(report, after="horses")
