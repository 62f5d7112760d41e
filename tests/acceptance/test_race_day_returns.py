"""Rows 3.6 and 3.10 of the fourth source document: tasks *return* how it went, as `{"status": ..., ...}`."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from examples.race_day.story import MORNING
from rota import Cron, InvalidOptions, Period, Reason, Retry, Rota, Run, State, StatusReport, status_dict
from rota.engine.handler import ExecutorName
from rota.store import MarkRow, RowQuery
from rota.testing import Simulation, drain, simulate
from tests.acceptance.race_day_tasks import told
from tests.requirement import requirement

STATUSES = ("success", "skipped", "failed", "partial")
FAILED = {"status": "failed", "message": "no data"}


def ends(run: Run) -> tuple[str, State, str, tuple[str, ...]]:
    (attempt,) = run.attempts
    return attempt.outcome, run.state, "" if run.error is None else run.error.message, attempt.warnings


@requirement("3.6")
@requirement("3.10")
@pytest.mark.parametrize("executor", ["loop", "thread", "process"])
async def test_3_10_a_returned_status_means_what_it_says(executor: ExecutorName) -> None:
    """For a whole app, wherever the task runs; errors and warnings are recorded on the attempt."""
    app = Rota("memory://", fail_on=status_dict)

    async def on_the_loop(status: str) -> dict[str, Any]:
        return told(status)

    task = app.task(executor=executor, once=Period.day())(on_the_loop if executor == "loop" else told)
    async with app:
        runs = {status: await task.submit(status) for status in STATUSES}
        ended = {status: await app.client().ended(run.id, timeout=30) for status, run in runs.items()}
        marks = (await (await app.client().store()).rows(MarkRow, RowQuery(task=task.name))).items
        assert await runs["success"].result() == told("success")
    words = "no data: R1C1: timeout; R1C2: timeout"
    assert {status: ends(run) for status, run in ended.items()} == {
        "success": ("succeeded", State.SUCCEEDED, "", ("R1C1: timeout", "R1C2: timeout", "late")),
        "skipped": ("skipped", State.SUCCEEDED, words, ("R1C1: timeout", "R1C2: timeout", "late")),
        "failed": ("failed", State.FAILED, words, ("late",)),
        "partial": ("partial", State.FAILED, words, ("late",)),
    }
    done = [row.key for row in marks if row.mark is not None and row.mark.succeeded_at is not None]
    assert done == [ended["success"].unique_key], "only the success counts as done"


@requirement("3.10")
def test_3_10_a_returned_failure_is_healed_by_the_recheck() -> None:
    """It sets no mark, holds up the steps behind it, and the next recheck does it again."""
    app, days = Rota("memory://", tz="Europe/Paris"), list[str]()

    @app.task
    def program() -> dict[str, str]:
        days.append("program")
        return {"status": "success"} if len(days) > 2 else FAILED

    @app.task
    def careers() -> None:
        days.append("careers")

    day = app.flow("day", once=Period.day(), recheck=Cron("*/7 4-23 * * *"), fail_on=status_dict)
    day.step(program)
    day.step(careers, after=program)

    async def looks(simulation: Simulation) -> None:
        await asyncio.sleep(3600 + 30)
        status = await day.status()
        assert (status.steps["program"].state, status.steps["careers"].state) == ("failed", "blocked")

    simulation = simulate(app, MORNING, MORNING + timedelta(hours=3), scenario=looks)
    assert days == ["program", "program", "program", "careers"]
    assert [str(run.state) for run in simulation.of(program)] == ["failed", "failed", "succeeded"]


@requirement("3.10")
async def test_3_10_the_tasks_own_reader_wins_then_the_flows_then_the_apps() -> None:
    app = Rota("memory://", fail_on=lambda result: StatusReport("partial", "by the app"))

    @app.task
    def plain() -> str:
        return "ok"

    @app.task(fail_on=lambda result: result == "ok")
    def own() -> str:
        return "ok"

    flow = app.flow("f", once=Period.day(), fail_on=lambda result: StatusReport("skipped", "by the flow"))
    flow.step(plain)
    flow.step(own, name="own_step")
    await flow.start("2026-11-15")
    alone = await plain.submit()
    await drain(app)
    steps = (await flow.status("2026-11-15")).steps
    runs = [await alone.refresh(), steps["plain"].run, steps["own_step"].run]
    assert [(run.state, str(run.error)) for run in runs if run is not None] == [
        (State.FAILED, "TaskError: by the app"),
        (State.SUCCEEDED, "Skipped: by the flow"),
        (State.FAILED, "TaskError: the result 'ok' means failure"),
    ]


@requirement("3.10")
async def test_3_10_the_flow_itself_is_not_judged_by_the_app() -> None:
    """A step may be called `status`: what the flow's own run returns is no status dict."""
    app = Rota("memory://", fail_on=status_dict)
    status = app.task(name="status")(lambda: None)
    flow = app.flow("f", once=Period.day())
    flow.step(status)
    run = await app.submit("f", period="2026-11-15")
    await drain(app)
    assert await run.result() == {"status": "accepted"}


@requirement("3.10")
async def test_3_10_a_returned_failure_is_retried_like_any_other() -> None:
    app, calls = Rota("memory://"), list[int]()

    @app.task(fail_on=status_dict, retry=Retry(1, delay=0))
    async def flaky() -> dict[str, str]:
        calls.append(1)
        return {"status": "failed" if len(calls) == 1 else "success"}

    run = await flaky.submit()
    await drain(app)
    assert [attempt.outcome for attempt in (await run.refresh()).attempts] == ["failed", "succeeded"]


@requirement("3.10")
async def test_3_10_a_worker_without_the_flow_does_not_take_a_failure_for_a_success() -> None:
    """It knows the task and not what judges its result: the step is left to a worker that does."""
    app = Rota("memory://")
    task = app.task(name="program")(lambda: FAILED)
    flow = app.flow("f", once=Period.day(), fail_on=status_dict)
    flow.step(task)
    other = Rota(app.backend)
    other.task(name="program")(lambda: FAILED)
    await flow.start("2026-11-15")
    await drain(other)
    run = (await flow.status("2026-11-15")).steps["program"].run
    assert run is not None
    assert (run.state, run.attempts[0].outcome) == (State.QUEUED, "unbindable")


@requirement("3.10")
@pytest.mark.parametrize(
    ("result", "report"),
    [
        ({"status": "success"}, StatusReport("success")),
        ({"status": "skipped", "reason": "already running"}, StatusReport("skipped", "already running")),
        ({"status": "failed", "error_message": "gone"}, StatusReport("failed", "gone")),
        ({"status": "partial", "errors": "one"}, StatusReport("partial", errors=("one",))),
        ({"status": "partial", "errors": [{"race": 1}]}, StatusReport("partial", errors=("{'race': 1}",))),
        (
            {"status": "error"},
            StatusReport("failed", "the returned status 'error' is none of success, skipped, failed, partial"),
        ),
        ({"status": []}, StatusReport("failed", "the returned status [] is none of success, skipped, failed, partial")),
        ({"state": "failed"}, None),
        ("failed", None),
        (None, None),
    ],
)
def test_3_10_the_ready_reader(result: object, report: StatusReport | None) -> None:
    assert status_dict(result) == report


@requirement("3.10")
async def test_3_10_a_reader_that_breaks_is_told_as_such() -> None:
    app = Rota("memory://", fail_on=lambda result: result["status"] != "success")
    task = app.task(name="odd")(lambda: "text")
    run = await task.submit()
    await drain(app)
    ended = await run.refresh()
    assert (ended.state, ended.reason) == (State.FAILED, Reason.BAD_RESULT)
    assert "fail_on cannot read the result" in str(ended.error)


@requirement("3.10")
def test_3_10_a_reader_that_is_no_function_is_refused_where_it_is_given() -> None:
    wrong: Any = "status"
    with pytest.raises(InvalidOptions, match="fail_on='status': a function"):
        Rota("memory://", fail_on=wrong)
    app = Rota("memory://")
    with pytest.raises(InvalidOptions, match=r"flow f: fail_on='status'"):
        app.flow("f", once=Period.day(), fail_on=wrong)
    with pytest.raises(InvalidOptions, match=r"task t: fail_on='status'"):
        app.task(name="t", fail_on=wrong)(lambda: None)
