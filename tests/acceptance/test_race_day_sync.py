"""Rows 3.11 and 3.12 of the fourth source document: synchronous planners and orchestrators, dates as DDMMYYYY, and
races that an earlier plan has missed."""

import asyncio
import json
from datetime import date, datetime
from typing import Any

import pytest

from examples.race_day.app import app
from examples.race_day.day import day as race_day
from examples.race_day.racing import PARIS
from examples.race_day.story import Story
from rota import Context, Inputs, InvalidOptions, Period, PlanReport, Reason, Rota
from rota.domain.decision import DecisionCount
from rota.engine.handler import ExecutorName
from rota.store import MarkRow, RowQuery
from rota.task import definition_of
from rota.testing import drain
from tests.acceptance.race_day_tasks import dated
from tests.requirement import requirement

DAY = Period.day(tz="Europe/Paris", format="%d%m%Y")
TODAY, WRITTEN = "2026-11-15", "15112026"


def planned(app: Rota, period: str | date, **times: int) -> PlanReport:
    watch: Any = app.tasks["watch"]
    return app.plan_sync(
        "watch_results",
        sorted(times),
        call=lambda race: watch.bind(race),
        at=lambda race: datetime(2099, 11, 15, times[race], tzinfo=PARIS),
        key=lambda race: race,
        period=period,
    )


@requirement("3.11")
def test_3_11_a_synchronous_planner_plans_moves_and_cancels() -> None:
    app = Rota("memory://")

    @app.task
    def watch(race: str) -> None: ...

    assert planned(app, TODAY, R1=13, R2=14) == PlanReport(planned=("R1", "R2"))
    assert planned(app, TODAY, R1=15) == PlanReport(moved=("R1",), cancelled=("R2",))
    asyncio.run(app.stop())


@requirement("3.11")
def test_3_11_a_synchronous_orchestrator_starts_looks_waits_and_mends() -> None:
    app, calls = Rota("memory://"), list[str]()

    @app.task
    def program() -> None:
        calls.append("program")

    @app.task
    def careers() -> None:
        calls.append("careers")

    day = app.flow("day", once=Period.day())
    day.step(program)
    day.step(careers, after=program)
    assert {answer.reason for answer in day.start_sync(TODAY).values()} == {Reason.ACCEPTED}
    assert day.status_sync(TODAY).steps["careers"].state == "waiting"
    asyncio.run(drain(app))
    assert day.wait_sync(TODAY, timeout=10).done
    assert {answer.reason for answer in day.recheck_sync(TODAY).values()} == {Reason.ALREADY_DONE}
    assert day.reset_sync(TODAY, "careers") == ["careers"]
    assert [str(answer.reason) for answer in day.recheck_sync(TODAY).values()] == ["already_done", "accepted"]
    assert list(day.rerun_sync("program", TODAY)) == ["program", "careers"]
    assert list(day.backfill_sync("2026-11-13", "2026-11-14")) == ["2026-11-13", "2026-11-14"]
    asyncio.run(drain(app))
    assert sorted(calls) == ["careers"] * 4 + ["program"] * 4
    asyncio.run(app.stop())


@requirement("3.11")
@pytest.mark.parametrize("executor", ["loop", "thread", "process"])
async def test_3_11_handlers_see_the_apps_own_format_and_the_store_keeps_the_usual_name(executor: ExecutorName) -> None:
    """One function says the argument of every step; a step that says it itself has its own."""
    app = Rota("memory://")

    async def on_the_loop(ctx: Context, date_string: str) -> list[str | None]:
        return dated(ctx, date_string)

    task = app.task(name="dated", executor=executor)(on_the_loop if executor == "loop" else dated)
    other = app.task(name="other")(lambda: None)
    day = app.flow("day", once=DAY, args=lambda inputs: {"date_string": inputs.period, "force": True})
    day.step(task)
    day.step(other)
    day.step(task, name="own", args={"date_string": "own"})
    await day.start(WRITTEN)
    await drain(app, timeout=30)
    status = await day.status(TODAY)
    assert status.done
    results = {name: step.run.result for name, step in status.steps.items() if step.run is not None}
    assert {name: json.loads(result or b"null") for name, result in results.items()} == {
        "dated": [WRITTEN, TODAY, WRITTEN],
        "other": None,
        "own": [WRITTEN, TODAY, "own"],
    }
    marks = (await (await app.client().store()).rows(MarkRow, RowQuery(task="dated"))).items
    assert {row.key for row in marks} == {f"day/dated@{TODAY}", f"day/own@{TODAY}"}


@requirement("3.11")
async def test_3_11_arguments_for_all_steps_are_checked_when_a_step_is_defined() -> None:
    """A mapping is known at once: what no step before, no args and no flow gives is still refused."""
    app = Rota("memory://")

    @app.task
    async def program(date_string: str, force: bool = False) -> list[object]:
        return [date_string, force]

    @app.task
    async def careers(program: list[object], horse: str) -> None: ...

    day = app.flow("day", once=Period.day(), args={"date_string": "today", "program": "not this one"})
    day.step(program, args={"force": True})
    with pytest.raises(TypeError, match="nothing gives its parameter 'horse'"):
        day.step(careers, after=program)
    await day.start(TODAY)
    await drain(app)
    run = (await day.status(TODAY)).steps["program"].run
    assert run is not None
    assert json.loads(run.result or b"") == ["today", True]


@requirement("3.11")
async def test_3_11_what_the_step_before_gives_wins_over_the_flow() -> None:
    app = Rota("memory://")

    @app.task
    async def program() -> str:
        return "by the step"

    @app.task
    async def careers(program: str) -> str:
        return program

    def shared(inputs: Inputs) -> dict[str, str]:
        return {"program": "by the flow"}

    day = app.flow("day", once=Period.day(), args=shared)
    day.step(program)
    day.step(careers, after=program)
    await day.start(TODAY)
    await drain(app)
    run = (await day.status(TODAY)).steps["careers"].run
    assert run is not None
    assert run.result == b'"by the step"'


@requirement("3.11")
def test_3_11_a_day_written_in_two_ways_is_one_day() -> None:
    """For plans too, which otherwise take any name: else each race would be watched twice."""
    app = Rota("memory://")

    @app.task
    def watch(race: str) -> None: ...

    app.flow("day", once=DAY)
    assert planned(app, WRITTEN, R1=13) == PlanReport(planned=("R1",))
    for period in (TODAY, date(2026, 11, 15)):
        assert planned(app, period, R1=13) == PlanReport(kept=("R1",))
    asyncio.run(app.stop())


@requirement("3.11")
async def test_3_11_a_task_done_once_sees_the_format_and_its_schedule_is_stored_without() -> None:
    app = Rota("memory://")

    @app.task(once=DAY, schedule="daily 04:00")
    async def clear_log(ctx: Context) -> str:
        assert ctx.period is not None
        return ctx.period

    run = await clear_log.submit()
    await drain(app)
    assert await run.result() == datetime.now(PARIS).strftime("%d%m%Y")
    assert (await run.refresh()).unique_key == datetime.now(PARIS).strftime("%Y-%m-%d")
    schedule = await app.schedules.get("clear_log")
    assert schedule is not None
    assert schedule.once == Period.day(tz="Europe/Paris")


@requirement("3.11")
def test_3_11_one_app_writes_its_days_in_one_way() -> None:
    app = Rota("memory://")
    app.flow("day", once=DAY)
    app.task(name="same", once=DAY)(lambda: None)
    app.task(name="plain", once=Period.day())(lambda: None)
    with pytest.raises(InvalidOptions, match="this app writes its days as '%d%m%Y'"):
        app.flow("other", once=Period.day(format="%m%d%Y"))
    with pytest.raises(InvalidOptions, match=r"task t: once: format='%Y%m%d'"):
        app.task(name="t", once=Period.day(format="%Y%m%d"))(lambda: None)


@requirement("3.11")
def test_3_11_the_example_is_written_so() -> None:
    """`examples/race_day`: plain planners, one `args=` for twelve steps, days as DDMMYYYY."""
    assert race_day.once == DAY
    assert not asyncio.iscoroutinefunction(race_day.steps["plan_race"].call.task.fn)
    given = [
        name
        for name, step in race_day.steps.items()
        if step.code.shared_args and "date_string" in definition_of(step.call.task).signature.names
    ]
    assert given == ["today", "plan_race", "prepare_tomorrow"]


# -- 3.12 ----------------------------------------------------------------------------------------------------------


@requirement("3.12")
def test_3_12_races_missed_by_an_earlier_plan_are_found() -> None:
    """The day is planned at 14:07: of the races before, each has a record that says so, and `missed` names it."""
    story = Story()
    story.world.model_asleep = True

    async def late(story: Story) -> None:
        await app.schedules.pause("follow_program")
        await story.until("14:03")
        story.world.model_asleep = False
        await story.until("14:08")
        store = await app.client().store()
        rows = (await store.rows(DecisionCount, RowQuery(task="autochat"))).items
        assert {row.key: (row.reason, row.count) for row in rows} == {
            f"autochat/{race}@{TODAY}": (Reason.EXPIRED, 1) for race in ("R1C1", "R2C1", "R1C2")
        }
        assert "expired" in str(await app.why("autochat", f"autochat/R1C1@{TODAY}"))

    story.play(late)
    (planner,) = story.simulation.of("plan_race")
    assert json.loads(planner.result or b"") == (
        "chats: 2 planned, 3 past (3 missed); results: 4 planned, 2 past (2 missed)"
    )
