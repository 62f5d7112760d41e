"""`rota flows`: a grid of periods and steps, why a step waits, and doing it again."""

from datetime import UTC, datetime, timedelta

import pytest

from rota import Period, Rota
from tests.surfaces.called import Called
from tests.surfaces.days import Day
from tests.surfaces.timetables import beside, on_terminal


@pytest.fixture
def day(rota: Called, monkeypatch: pytest.MonkeyPatch) -> Day:
    made = Day(rota)
    beside(monkeypatch, made.app)
    return made


def test_flows_are_listed_with_their_period_of_now(rota: Called, day: Day) -> None:
    (before,) = rota.json("flows", "ls")
    day.failing.add("left")
    period = day.work()

    (after,) = rota.json("flows", "ls")

    assert (before["absent"], before["next_recheck"]) == (4, None)
    counts = {name: after[name] for name in ("steps", "done", "failed", "blocked", "running", "waiting", "absent")}
    assert counts == {"steps": 4, "done": 2, "failed": 1, "blocked": 1, "running": 0, "waiting": 0, "absent": 0}
    assert (after["period"], after["complete"]) == (period, False)
    assert datetime.fromisoformat(after["next_recheck"]) > datetime.now(UTC)


def test_a_terminal_shows_the_list_with_a_glyph_per_step(
    rota: Called, day: Day, monkeypatch: pytest.MonkeyPatch
) -> None:
    day.failing.add("left")
    day.work()
    on_terminal(monkeypatch, 100)

    header, line = rota("flows", "ls").splitlines()

    assert header.split() == ["flow", "period", "now", "done", "running", "blocked", "failed", "recheck"]
    assert "✔✖✔■" in line
    assert "2/4" in line
    assert "in 24 h" in line


def test_the_grid_has_a_row_per_step_and_a_column_per_period(
    rota: Called, day: Day, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = datetime.fromisoformat(day.work())
    day.failing.add("left")
    day.work(f"{today - timedelta(days=1):%Y-%m-%d}")
    on_terminal(monkeypatch, 100)

    page = rota("flows", "show", "day", "--last", "3")

    lines = page.splitlines()
    assert lines[0] == "day  4 steps  Europe/Paris time"
    assert f"{today:%d %b}" in lines[3]
    grid = {line.split()[0]: line.split()[1:4] for line in lines[4:8]}
    assert grid == {
        "load": ["·", "✔", "✔"],
        "left": ["·", "✖", "✔"],
        "right": ["·", "✔", "✔"],
        "join": ["·", "■", "✔"],
    }
    assert [line.index(line.strip()) for line in lines[4:8]] == [0, 1, 1, 2], "a step stands behind what it follows"
    assert "✔ done   ■ blocked   ✖ failed   · not started" in page
    assert all(len(line) <= 100 for line in lines)


def test_a_narrow_terminal_shows_the_last_periods(rota: Called, day: Day, monkeypatch: pytest.MonkeyPatch) -> None:
    day.work()
    on_terminal(monkeypatch, 30)

    lines = rota("flows", "show", "day").splitlines()

    assert lines[4].split() == ["load", "·", "✔"]
    assert all(len(line) <= 30 for line in lines[:8])


def test_one_period_in_full(rota: Called, day: Day, monkeypatch: pytest.MonkeyPatch) -> None:
    day.failing.add("left")
    period = day.work()
    told = rota.json("flows", "show", "day", "--period", period)
    on_terminal(monkeypatch, 120)

    page = rota("flows", "show", "day", "--period", period)

    (listed,) = told["periods"]
    steps = {step["step"]: step for step in listed["steps"]}
    assert (listed["period"], listed["done"]) == (period, False)
    assert [(name, step["state"], step["blocked_by"]) for name, step in steps.items()] == [
        ("load", "done", []),
        ("left", "failed", []),
        ("right", "done", []),
        ("join", "blocked", ["left"]),
    ]
    assert (steps["left"]["error"], steps["left"]["attempts"]) == ("ValueError: no left today", 1)
    assert steps["join"]["since"] == steps["left"]["since"]
    assert "2 of 4 done" in page
    assert steps["left"]["run"][-12:] in page
    assert f"rota flows why day left --period {period} tells more" in page


def test_a_pipe_gets_a_line_per_step_and_period(rota: Called, day: Day) -> None:
    day.work()

    header, *lines = rota("flows", "show", "day", "--last", "2").splitlines()

    assert header.split("\t")[:4] == ["period", "step", "task", "state"]
    assert [line.split("\t")[1:4:2] for line in lines] == [
        *([step, "absent"] for step in ("load", "left", "right", "join")),
        *([step, "done"] for step in ("load", "left", "right", "join")),
    ]


def test_why_follows_a_step_to_its_root(rota: Called, day: Day) -> None:
    day.failing.add("load")
    period = day.work()

    blocked = rota.json("flows", "why", "day", "join")
    root = rota.json("flows", "why", "day", "load")
    lines = rota("flows", "why", "day", "join").splitlines()

    assert blocked["subject"] == f"day/join@{period}"
    assert blocked["answer"].startswith(f"blocked by day/load@{period} (task load): it failed")
    assert blocked["answer"].endswith(f"ValueError: no load today; `rota flows rerun day load --period {period}`")
    assert (root["held"], root["answer"].startswith("it failed ")) == (True, True)
    assert "does it again" in root["answer"]
    assert lines[-1].startswith("- recheck: ")


def test_why_of_a_step_whose_flow_stopped_names_the_culprit(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Day(rota, on_failure="stop")
    beside(monkeypatch, made.app)
    made.failing.add("load")
    period = made.work()

    told = rota.json("flows", "why", "day", "join")

    assert told["answer"].startswith("it was cancelled ")
    assert told["answer"].endswith(f"`rota flows rerun day join --period {period}` does it again")
    (stopped,) = [fact["text"] for fact in told["facts"] if fact["about"] == "stopped"]
    assert "step load failed" in stopped


def test_why_speaks_of_what_is_done_and_what_was_never_started(rota: Called, day: Day) -> None:
    never = rota.json("flows", "why", "day", "join")
    period = day.work()
    done = rota.json("flows", "why", "day", "join")
    rota("flows", "reset", "day", "join")
    reset = rota.json("flows", "why", "day", "join")

    assert (never["held"], "was not started" in never["answer"]) == (True, True)
    assert f"`rota flows start day --period {period}`" in never["answer"]
    assert (done["held"], done["answer"].startswith("it was done ")) == (False, True)
    assert reset["answer"].startswith("it was done, but was reset; `rota flows start day ")


def test_start_rerun_and_reset(rota: Called, day: Day) -> None:
    first = rota.json("flows", "start", "day")
    again = rota.json("flows", "start", "day")
    day.go_on()
    late = rota.json("flows", "start", "day")
    one = rota.json("flows", "rerun", "day", "left", "--only")
    day.go_on()
    several = rota.json("flows", "rerun", "day", "left")
    day.go_on()

    assert [row["step"] for row in first] == ["load", "left", "right", "join"]
    reasons = [{row["reason"] for row in rows} for rows in (first, again, late)]
    assert reasons == [{"accepted"}, {"joined"}, {"already_done"}]
    assert [row["run"] for row in again] == [row["run"] for row in first]
    assert [(row["step"], row["reason"]) for row in one] == [("left", "accepted")]
    assert [(row["step"], row["reason"]) for row in several] == [("left", "accepted"), ("join", "accepted")]
    assert rota.json("flows", "reset", "day", "left", "--downstream")["reset"] == ["left", "join"]
    assert rota.json("flows", "reset", "day")["reset"] == ["load", "right"]
    assert "nothing was reset" in rota("flows", "reset", "day")


def test_a_reset_says_who_does_it_again(rota: Called, day: Day) -> None:
    yesterday = f"{datetime.now(UTC) - timedelta(days=2):%Y-%m-%d}"
    day.work(yesterday)

    said = rota("flows", "reset", "day", "--period", yesterday)

    assert said == (
        f"day {yesterday}: load, left, right, join reset; no recheck looks at {yesterday} any more: "
        f"`rota flows start day --period {yesterday}` does what is missing\n"
    )


def test_backfill_starts_every_period_and_asks_when_there_are_many(rota: Called, day: Day) -> None:
    rows = rota.json("flows", "backfill", "day", "2026-10-24", "2026-10-26")
    again = rota.json("flows", "backfill", "day", "2026-10-26", "2026-10-26")

    assert [(row["period"], row["put"]) for row in rows] == [
        ("2026-10-24", 4),
        ("2026-10-25", 4),
        ("2026-10-26", 4),
    ]
    assert [(row["put"], row["joined"]) for row in again] == [(0, 4)]
    rota("flows", "backfill", "day", "2026-10-01", "2026-10-31", code=2)
    assert "this starts 31 periods of day; say so with --yes" in rota.err
    rota("flows", "backfill", "day", "2026-10-26", "2026-10-24", code=2)
    assert "comes after" in rota.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "dya"), "no flow dya is defined in the app; did you mean day?"),
        (("why", "day", "lfet"), "no step lfet is defined in flow day; did you mean left?"),
        (("why", "day", "zzz"), "flow day has: join, left, load, right"),
        (("rerun", "day", "lfet"), "did you mean left?"),
        (("reset", "day", "lfet"), "did you mean left?"),
        (("reset", "day", "--downstream"), "--downstream: of which step?"),
        (("start", "day", "--period", "2026-W46"), "'2026-W46' is no day"),
        (("show", "day", "--last", "0"), "--last 0: from 1 to 60"),
        (("backfill", "day", "2020-01-01", "2026-01-01"), "more than 1,000 days"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(rota: Called, day: Day, arguments: tuple[str, ...], said: str) -> None:
    assert rota("flows", *arguments, code=2) == ""

    assert said in rota.err


def test_flows_need_the_app(rota: Called) -> None:
    rota("flows", "ls", code=2)

    assert "no app: name it in rota.toml" in rota.err


def test_runs_can_be_those_of_a_flow(rota: Called, day: Day, monkeypatch: pytest.MonkeyPatch) -> None:
    period = day.work()
    day.work("2026-01-01")

    now = rota.json("runs", "ls", "--flow", "day")
    then = rota.json("runs", "ls", "--flow", "day", "--period", "2026-01-01")
    group = rota.json("runs", "ls", "--group", f"day@{period}", "--task", "join")

    assert {run["key"].rpartition("@")[2] for run in now} == {period}
    assert (len(now), len(then), [run["task"] for run in group]) == (4, 4, ["join"])
    rota("runs", "ls", "--flow", "dya", code=2)
    assert "did you mean day?" in rota.err
    assert len(rota.json("runs", "ls", "--period", period)) == 4
    monkeypatch.delenv("ROTA_APP")
    assert len(rota.json("runs", "ls", "--flow", "day", "--period", "2026-01-01")) == 4
    rota("runs", "ls", "--flow", "day", code=2)
    assert "--period" in rota.err


def test_a_flows_own_task_is_shown_as_a_flow(rota: Called, day: Day, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {row["task"]: (row["kind"], row["steps"]) for row in rota.json("tasks")}
    on_terminal(monkeypatch)

    assert kinds == {"day": ("flow", 4), **dict.fromkeys(("load", "left", "right", "join"), ("task", None))}
    assert "flow of 4 steps" in rota("tasks")


def test_a_run_that_waits_says_for_what(rota: Called, day: Day, monkeypatch: pytest.MonkeyPatch) -> None:
    day.failing.add("load")
    period = day.work()
    (join,) = rota.json("runs", "ls", "--flow", "day", "--task", "join")
    (row,) = rota("runs", "ls", "--task", "join").splitlines()[1:]
    on_terminal(monkeypatch)

    (line,) = rota("runs", "ls", "--task", "join").splitlines()[1:]
    page = rota("runs", "show", join["id"])

    assert f"waits for day/left@{period} and 1 other" in line
    assert f"flow day of {period}, step join" in row
    assert f"flow day of {period}, step join" in page
    assert f"waits for  day/left@{period} and 1 other" in page


def test_the_doctor_names_every_task_of_a_flow_that_no_worker_knows(rota: Called, day: Day) -> None:
    rota("flows", "start", "day")

    (workers,) = [check for check in rota.json("doctor") if check["check"] == "workers"]

    assert (workers["verdict"], workers["detail"]) == (
        "warn",
        "0 live workers, 0 seats; 4 queued runs wait, and none knows join, left, load, right",
    )


@pytest.mark.parametrize("period", ["2026-11-15", "15112026"])
def test_a_period_is_taken_by_its_usual_name_and_in_the_apps_own_format(
    period: str, rota: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Rota(rota.url)

    @app.task
    def program() -> None: ...

    app.flow("day", once=Period.day(format="%d%m%Y")).step(program)
    beside(monkeypatch, app)

    assert {each["period"] for each in rota.json("flows", "start", "day", "--period", period)} == {"2026-11-15"}
    rota("marks", "set", "program", "day/program@2026-11-15")
    assert rota.json("reset", "day", "--period", period)["reset"] == [
        {"task": "program", "key": "day/program@2026-11-15"}
    ]
