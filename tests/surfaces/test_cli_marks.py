"""`rota marks` and `rota reset`: what is remembered as done, and doing it again."""

import asyncio
from datetime import UTC, datetime

import pytest

from rota import Period, Rota
from rota.domain.guards import Mark
from rota.store import MarkRow
from tests.surfaces.called import Called
from tests.surfaces.days import Day
from tests.surfaces.timetables import beside, on_terminal

PERIOD = "2026-11-15"


@pytest.fixture
def day(rota: Called, monkeypatch: pytest.MonkeyPatch) -> Day:
    made = Day(rota)
    beside(monkeypatch, made.app)
    return made


@pytest.fixture
def shop(rota: Called, monkeypatch: pytest.MonkeyPatch) -> Rota:
    app = Rota(rota.url, name="shop", tz="UTC")

    @app.task(once=Period.day(), key="{name}")
    async def report(name: str) -> None: ...

    beside(monkeypatch, app)
    return app


def keys(rota: Called, *arguments: str) -> list[str]:
    return [row["key"] for row in rota.json("marks", "ls", *arguments)]


def test_marks_are_listed_by_task_and_key(rota: Called, shop: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    done = [MarkRow(task, key, Mark(succeeded_at=100.0)) for task in ("report", "other") for key in ("a", "b")]
    failed = MarkRow("report", "c", Mark(finished_at=100.0, failures=2))
    rota.store(lambda store: store.mark([*done, failed]))

    assert [(row["task"], row["key"]) for row in rota.json("marks", "ls")] == [
        *(("other", key) for key in "ab"),
        *(("report", key) for key in "abc"),
    ]
    assert keys(rota, "report") == ["a", "b", "c"]
    assert keys(rota, "--key", "b") == ["b", "b"]
    assert rota.json("marks", "ls", "report", "--key", "c") == [
        {
            "task": "report",
            "key": "c",
            "succeeded_at": None,
            "finished_at": "1970-01-01T00:01:40.000000Z",
            "failures": 2,
        }
    ]
    assert rota("marks", "ls", "--limit", "1").count("\n") == 2
    assert rota.err == "more than 1: name a task, or say --limit\n"
    on_terminal(monkeypatch)
    assert "succeeded" in rota("marks", "ls").splitlines()[0]
    rota("marks", "ls", "reprot", code=2)
    assert "did you mean report?" in rota.err


def test_a_mark_is_set_by_the_clock_of_the_store_and_cleared(rota: Called, shop: Rota) -> None:
    before = datetime.now(UTC)
    assert rota("marks", "set", "report", f"a@{PERIOD}") == f"report a@{PERIOD} counts as done from now on\n"

    (row,) = rota.json("marks", "ls")
    assert datetime.fromisoformat(row["succeeded_at"]).timestamp() == pytest.approx(before.timestamp(), abs=60)
    assert rota.json("marks", "clear", "report", f"a@{PERIOD}")["changed"] is True
    assert "was not marked" in rota("marks", "clear", "report", f"a@{PERIOD}")
    assert keys(rota) == []
    rota("marks", "set", "reprot", "a", code=2)
    assert "did you mean report?" in rota.err
    rota("marks", "set", "elsewhere", "a", "--unknown-ok")
    assert keys(rota) == ["a"]


def test_a_mark_that_is_set_lets_those_go_who_wait_for_it(rota: Called, day: Day) -> None:
    day.failing.add("load")
    period = day.work()

    rota("marks", "set", "load", f"day/load@{period}")

    states = {
        step["step"]: step["state"] for step in rota.json("flows", "show", "day", "--last", "1")["periods"][0]["steps"]
    }
    assert states == {"load": "done", "left": "due", "right": "due", "join": "waiting"}


def test_a_reset_forgets_all_of_a_task_in_a_period_and_nothing_else(rota: Called, shop: Rota) -> None:
    said = (PERIOD, f"a@{PERIOD}", f"b@{PERIOD}", "a@2026-11-14", f"{PERIOD}-not", "2026-11-14")
    rota.store(lambda store: store.mark([MarkRow("report", key, Mark(succeeded_at=1.0)) for key in said]))

    told = rota("reset", "report", "--period", PERIOD)

    assert keys(rota) == ["2026-11-14", f"{PERIOD}-not", "a@2026-11-14"]
    assert told.splitlines() == [
        f"report {PERIOD} is reset",
        f"report a@{PERIOD} is reset",
        f"report b@{PERIOD} is reset",
        f"the next submit or tick of report in {PERIOD} runs it again",
    ]
    assert "nothing was reset" in rota("reset", "report", "--period", PERIOD)


def test_what_is_reset_runs_again(rota: Called, shop: Rota) -> None:
    task = shop.tasks["report"]

    async def work() -> list[bool]:
        async with shop:
            (handle,) = await shop.submit_many([task.bind("Ada")])
            if handle:
                await shop.client().ended(handle.id, 30)
            return [bool(handle)]

    assert asyncio.run(work()) == [True]
    assert asyncio.run(work()) == [False]
    (key,) = keys(rota)
    rota("reset", "report", "--period", key.rpartition("@")[2])
    assert asyncio.run(work()) == [True]


def test_a_flow_is_reset_whole_and_a_step_with_what_follows(rota: Called, day: Day) -> None:
    period = day.work()

    step = rota.json("reset", "left", "--period", period, "--downstream")
    again = rota("reset", "left", "--period", period, "--downstream")
    whole = rota("reset", "day", "--period", period)

    assert [row["key"] for row in step["reset"]] == [f"day/left@{period}", f"day/join@{period}"]
    assert "nothing was reset" in again
    assert [line.split()[0] for line in whole.splitlines()] == ["load", "right", "day:"]
    assert f"`rota flows start day --period {period}`" in whole


def test_a_task_can_be_reset_without_its_code_but_not_what_follows(
    rota: Called, day: Day, monkeypatch: pytest.MonkeyPatch
) -> None:
    period = day.work()
    monkeypatch.delenv("ROTA_APP")

    assert [row["task"] for row in rota.json("reset", "left", "--period", period)["reset"]] == ["left"]
    rota("reset", "left", "--period", period, "--downstream", code=2)
    assert "say which app with -A" in rota.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("lfet", "--period", PERIOD), "did you mean left?"),
        (("left", "--period", "a@b"), "is no name of a period"),
        (("day", "--period", "2026-W46"), "'2026-W46' is no day"),
        (("left",), "--period"),
    ],
)
def test_what_cannot_be_reset_is_said(rota: Called, day: Day, arguments: tuple[str, ...], said: str) -> None:
    rota("reset", *arguments, code=2)

    assert said in rota.err
