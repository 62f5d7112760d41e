"""Deadlines and what is done once per period, in the commands about schedules."""

import asyncio
from datetime import UTC, datetime

import pytest

from rota import DailyAt, Every, Period, Rota, Trigger
from rota.app.core import core_of
from rota.domain.schedule import Schedule
from rota.domain.ticks import deadline_tick, late
from rota.store import Store, bucket
from rota.task import definition_of
from tests.surfaces.called import Called
from tests.surfaces.days import Day
from tests.surfaces.timetables import HOUR, beside, on_terminal, took


def shop(
    rota: Called,
    monkeypatch: pytest.MonkeyPatch,
    once: Period | None = None,
    expect: str | None = "07:00",
    schedule: Trigger | None = None,
) -> Rota:
    app = Rota(rota.url, name="shop", tz="Europe/Paris")

    @app.task(schedule=schedule or DailyAt(5), once=once, expect=expect)
    def report() -> None: ...

    beside(monkeypatch, app)
    return app


def start(app: Rota, rota: Called, ago: float = 0.0) -> None:
    """Declares the schedules, so many seconds ago."""

    async def declare() -> None:
        app.backend.skew = -ago
        async with app.client():
            await core_of(app).declare_schedules()

    asyncio.run(declare())
    app.backend.skew = 0.0


def test_a_deadline_is_listed_as_one(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    start(shop(rota, monkeypatch), rota)

    kinds = {each["id"]: each["kind"] for each in rota.json("schedules", "ls")}
    on_terminal(monkeypatch)
    lines = [line for line in rota("schedules", "ls").splitlines() if "expect:report" in line]

    assert kinds == {"report": "schedule", "expect:report": "deadline"}
    assert "deadline, every day at 07:00, Paris time" in lines[0]


def test_what_a_deadline_looks_for_is_shown_instead_of_policies(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    start(shop(rota, monkeypatch, Period.day()), rota)
    whole = rota.json("schedules", "show", "expect:report")
    on_terminal(monkeypatch)
    page, plain = rota("schedules", "show", "expect:report"), rota("schedules", "show", "report")

    assert whole["deadline"] == {"about": "", "period": {"unit": "day", "tz": "Europe/Paris"}, "tz": "Europe/Paris"}
    assert "makes no runs: it is late unless report of the day has succeeded by then" in page
    assert "overlap" not in page
    assert "Arguments" not in page
    assert "per day, Europe/Paris time" in plain
    assert "Arguments" in plain


def test_a_late_one_shows_in_the_list(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    start(shop(rota, monkeypatch), rota, ago=30 * HOUR)

    async def passes(store: Store) -> None:
        stored = await store.rows(Schedule)
        (deadline,) = [row for row in stored.items if row.deadline is not None]
        found = deadline_tick(deadline, stored.now)
        assert found is not None
        assert (await store.fire([late(found[0], found[1], "not done")])).items[0].applied

    rota.store(passes)

    rows = {each["id"]: each for each in rota.json("schedules", "ls")}
    assert (rows["expect:report"]["last"], rows["expect:report"]["last_run"]) == ("late", None)


def test_nobody_runs_a_deadline(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    start(shop(rota, monkeypatch), rota)

    for command in (("run-now",), ("backfill", "--from", "2026-01-01T00:00", "--to", "2026-01-02T00:00")):
        assert rota("schedules", command[0], "expect:report", *command[1:], code=2) == ""
        assert "expect:report is a deadline: it makes no runs" in rota.err


def test_a_difference_names_once_and_deadline(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    start(shop(rota, monkeypatch), rota)
    shop(rota, monkeypatch, Period.day())

    changes = {each["id"]: each["fields"] for each in rota.json("diff", code=3)["changes"] if each["of"] == "schedule"}

    assert changes["report"]["once"] == {"before": None, "after": {"unit": "day", "tz": "Europe/Paris"}}
    assert changes["expect:report"]["deadline.period"]["after"] == {"unit": "day", "tz": "Europe/Paris"}
    on_terminal(monkeypatch)
    assert "once" in rota("diff", code=3)
    rota("sync")
    assert rota.json("diff")["changes"] == []


def test_an_overdue_deadline_owes_no_runs_and_one_that_is_gone_is_pruned(
    rota: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(shop(rota, monkeypatch, schedule=Every(days=30)), rota, ago=30 * HOUR)

    assert rota.json("diff", code=3)["catch_up"] == []
    shop(rota, monkeypatch, expect=None, schedule=Every(days=30))
    gone = [each["id"] for each in rota.json("sync", "--prune")["changes"] if each["change"] == "undeclared"]
    assert gone == ["expect:report"]
    assert [each["id"] for each in rota.json("schedules", "ls")] == ["report"]


def test_a_deadline_is_linted_by_its_times_alone(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    app = shop(rota, monkeypatch)
    definition_of(app.tasks["report"]).expect = Every(minutes=10)
    took(rota, "report", bucket(HOUR))

    codes = [(each["schedule"], each["code"]) for each in rota.json("lint")]

    assert ("expect:report", "overrun") not in codes


def test_a_schedule_is_put_with_a_deadline_by_hand(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    shop(rota, monkeypatch, expect=None)

    rota("schedules", "put", "dawn", "daily 05:00", "report", "--expect", "07:00")
    before = {each["id"]: each["kind"] for each in rota.json("schedules", "ls")}
    rota("schedules", "put", "dawn", "daily 05:00", "report")
    after = [each["id"] for each in rota.json("schedules", "ls")]

    assert before == {"dawn": "schedule", "expect:dawn": "deadline"}
    assert after == ["dawn"]
    rota("schedules", "put", "dawn", "daily 05:00", "report", "--expect", "at dawn", code=2)
    assert "dawn: " in rota.err


def test_the_deadline_of_a_step_is_listed_with_its_flow(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    day = Day(rota, expect="07:00")
    beside(monkeypatch, day.app)
    start(day.app, rota)

    rows = {each["id"]: each for each in rota.json("schedules", "ls")}

    assert rows["expect:day/join"]["task"] == "join"
    assert datetime.fromisoformat(rows["expect:day/join"]["next_at"]) > datetime.now(UTC)
    assert rota.json("why", "expect:day/join")["kind"] == "schedule"
