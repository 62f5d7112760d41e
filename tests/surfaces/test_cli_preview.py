"""`rota preview`: what will fire, from code and store, without calling anything."""

from datetime import UTC, datetime

import pytest

from rota import DailyAt, Rota
from rota.store import bucket
from tests.surfaces.called import Called
from tests.surfaces.days import Day
from tests.surfaces.timetables import beside, declare, made, on_terminal, took


@pytest.fixture
def shop(rota: Called, monkeypatch: pytest.MonkeyPatch) -> Rota:
    """An app that has not been started yet."""
    app = Rota(rota.url, name="shop", tz="Europe/Paris")

    @app.task(schedule=DailyAt(9))
    def report() -> None:
        raise AssertionError("a preview calls nothing")

    beside(monkeypatch, app)
    return app


def test_declared_and_stored_schedules_are_foretold_together(rota: Called, shop: Rota) -> None:
    declare(rota, made("stored", "daily 09:00 Europe/Paris"), made("other", "daily 10:00 Europe/Paris"))

    told = rota.json("preview", "--days", "2")

    assert [each["schedule"] for each in told["fires"]].count("report") == 2
    assert {each["schedule"] for each in told["fires"]} == {"report", "stored", "other"}
    assert [each["at"] for each in told["fires"]] == sorted(each["at"] for each in told["fires"])
    assert [(each["schedules"], len(each["minutes"])) for each in told["collisions"]] == [(["report", "stored"], 2)]
    assert {each["hour"]: each["fires"] for each in told["hours"]} == {9: 2, 10: 1}
    assert told["zone"] == "Europe/Paris"
    assert rota.json("schedules", "ls", "--task", "report") == []  # nothing was changed


def test_what_code_changes_is_foretold_as_changed(rota: Called, shop: Rota) -> None:
    declare(rota, made("report", "daily 03:00 Europe/Paris", owner="shop", task="report"))

    told = rota.json("preview", "--days", "1")

    (fire,) = told["fires"]
    assert datetime.fromisoformat(fire["at"]).astimezone(UTC).hour in (7, 8)  # 09:00 in Paris


def test_only_one_task_can_be_asked_for_and_fires_go_into_a_pipe(rota: Called, shop: Rota) -> None:
    declare(rota, made("other", "daily 10:00"), made("often", "every 1m"))

    one = rota("preview", "--days", "1", "--task", "report").splitlines()
    whole = rota("preview", "--days", "1").splitlines()

    assert one[0] == "at\tschedule\ttask\tmeets\tkind\tstep"
    assert [line.split("\t")[1] for line in one[1:]] == ["report"]
    assert {line.split("\t")[1] for line in whole[1:]} == {"report", "other"}
    assert rota.err == "often fires 1,440 times a day; its fires are not listed\n"


def test_the_calendar_tells_hours_meetings_and_seats(rota: Called, shop: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(rota, made("long", "daily 09:00 Europe/Paris"), made("held", "daily 09:00"))
    rota("schedules", "pause", "held")
    took(rota, "greet", bucket(3600.0))
    on_terminal(monkeypatch, 80)

    page = rota("preview", "--days", "7")

    lines = page.splitlines()
    assert lines[0] == "Fires by hour, Europe/Paris time"
    assert lines[1].split() == [f"{hour:02}" for hour in range(24)]
    assert sum(line.split()[2:].count("2") for line in lines[2:10]) == 7  # report and long, each day at nine
    assert all(len(line) <= 80 for line in lines)
    assert "Busy seats by hour, in the mean (4 seats of live workers)" in page
    assert "7 times, first " in page
    assert ": long, report" in page
    assert "usual durations: greet 1 h" in page
    assert "no run in the last two days, so no duration and no load: report" in page
    assert "paused, so not in it: held" in page


def test_busy_seats_stand_apart(rota: Called, shop: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(rota, made("often", "every 10s"), made("seldom", "every 1m"))
    took(rota, "greet", bucket(11.0))
    on_terminal(monkeypatch, 80)

    lines = rota("preview", "--days", "2").splitlines()

    busy = lines[lines.index("Busy seats by hour, in the mean (4 seats of live workers)") + 3].split()[2:]
    assert (len(busy), set(busy)) == (24, {"1"})


def test_it_works_without_an_app(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    on_terminal(monkeypatch)
    nothing = rota("preview")
    declare(rota, made("daily", "daily 09:00"))

    assert nothing.startswith("No schedules; ")
    assert "No two schedules meet in the same minute." in rota("preview")


@pytest.mark.parametrize("days", ["0", "367", "many"])
def test_days_are_bounded(rota: Called, days: str) -> None:
    rota("preview", "--days", days, code=2)

    assert "--days" in rota.err


def test_a_flow_is_foretold_once_per_period_with_its_steps(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    day = Day(rota, "cron */7 4-23 * * *", expect="07:00")
    beside(monkeypatch, day.app)
    took(rota, "load", bucket(60.0))

    told = rota.json("preview", "--days", "3")
    kinds = [line.split("\t")[4] for line in rota("preview", "--days", "3").splitlines()[1:]]
    on_terminal(monkeypatch, 100)
    page = rota("preview", "--days", "3")

    whole = [each for each in told["flows"] if each["rechecks"] == 179]
    assert len(whole) >= 2
    assert [step["step"] for step in whole[0]["steps"]] == ["load", "left", "right", "join"]
    assert whole[0]["steps"][0]["end"] == whole[0]["steps"][1]["begin"] == whole[0]["steps"][2]["begin"]
    assert [each["schedule"] for each in told["fires"]] == ["day"] * len(told["flows"])
    assert {(each["schedule"], each["task"]) for each in told["deadlines"]} == {("expect:day/join", "join")}
    assert [kinds.count(kind) for kind in ("flow", "step", "deadline", "run")] == [
        len(told["flows"]),
        4 * len(told["flows"]),
        3,
        0,
    ]
    left = told["flows"][0]["rechecks"]
    assert (f", and {left} recheck" if left else "  starts ") in page
    assert "day/join  every day at 07:00, Paris time; next " in page
    assert "no run in the last two days, so no duration and no load: join, left, right" in page


def test_a_period_that_is_under_way_is_only_rechecked(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    day = Day(rota, "cron * * * * *")
    beside(monkeypatch, day.app)
    period = day.work()
    on_terminal(monkeypatch, 100)

    page = rota("preview", "--days", "2")
    told = {each["period"]: each for each in rota.json("preview", "--days", "2")["flows"]}

    assert (told[period]["begun"], told[period]["steps"]) == (True, [])
    assert f"day {period} is under way: " in page
    steps = [line.split()[1] for line in page.splitlines() if line.split()[1:2] and line.startswith("    ")]
    assert steps.count("join") == 1, "of the first period that is to start"


def test_schedules_of_disabled_tasks_are_named_and_not_foretold(
    rota: Called, shop: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.task(name="mail", schedule=DailyAt(8), enabled=False)(lambda: None)

    told = rota.json("preview", "--days", "2")
    on_terminal(monkeypatch)
    page = rota("preview", "--days", "2")

    assert {each["schedule"] for each in told["fires"]} == {"report"}
    assert told["disabled"] == ["mail"]
    assert "of disabled tasks, so not in it: mail" in page
