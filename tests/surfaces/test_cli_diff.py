"""`rota diff`, `rota sync` and `rota lint`: code against store."""

import asyncio
from typing import TypedDict

import pytest

from rota import Cron, DailyAt, Every, Period, Rota, status_dict
from rota.domain.scheduling import Timed
from rota.store import bucket
from tests.requirement import requirement
from tests.surfaces.called import Called
from tests.surfaces.timetables import HOUR, beside, declare, made, on_terminal, took


def shop(rota: Called, monkeypatch: pytest.MonkeyPatch, hour: int = 9, name: str | None = "shop") -> Rota:
    app = Rota(rota.url, name=name)

    @app.task(schedule=DailyAt(hour))
    def report() -> None: ...

    beside(monkeypatch, app)
    return app


def told(rota: Called, *command: str, code: int = 0) -> list[tuple[str, str, str]]:
    found = rota.json(*command, code=code)["changes"]
    return [(each["change"], each["of"], each["id"]) for each in found]


def test_a_new_app_adds_all_and_its_sync_leaves_no_difference(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    shop(rota, monkeypatch)
    all_of_it = [("added", "schedule", "report"), ("added", "task", "report")]

    assert told(rota, "diff", code=3) == all_of_it
    assert told(rota, "diff", code=3) == all_of_it  # looking changes nothing
    assert told(rota, "sync") == all_of_it
    assert told(rota, "diff") == []
    assert told(rota, "sync") == []
    assert [each["owner"] for each in rota.json("schedules", "ls")] == ["shop"]


def test_a_start_leaves_no_difference_either(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    app = shop(rota, monkeypatch)

    async def start() -> None:
        async with app:
            pass

    asyncio.run(start())

    assert told(rota, "diff") == []


@requirement("1.11")
def test_what_the_code_says_otherwise_is_told_with_its_next_fire(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    shop(rota, monkeypatch)
    rota("sync")
    rota("schedules", "pause", "report")
    shop(rota, monkeypatch, hour=8)

    (change,) = rota.json("diff", code=3)["changes"]
    on_terminal(monkeypatch)
    page = rota("diff", code=3)
    monkeypatch.setattr("rota.cli.render.show.Show.terminal", False)
    rota("sync")
    after = rota.json("schedules", "show", "report")

    assert change["fields"] == {"trigger": {"before": "daily 09:00 UTC", "after": "daily 08:00 UTC"}}
    assert change["next_before"].endswith("T09:00:00.000000Z")
    assert change["next_after"].endswith("T08:00:00.000000Z")
    assert "~ schedule report" in page
    assert "trigger  daily 09:00 UTC → daily 08:00 UTC" in page
    assert (after["trigger"], after["state"]) == ("daily 08:00 UTC", "paused")


def test_what_is_no_longer_in_the_code_is_deleted_only_on_demand(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(rota, made("old", owner="shop"), made("theirs", owner="other"), made("by-hand"))
    shop(rota, monkeypatch)

    seen = told(rota, "diff", code=3)
    rota("sync")
    left = rota.err
    still = told(rota, "diff", code=3)
    pruned = told(rota, "sync", "--prune")

    assert ("undeclared", "schedule", "old") in seen
    assert left == "no longer in the code, and left alone: old; --prune deletes what is\n"
    assert still == pruned == [("undeclared", "schedule", "old")]
    assert told(rota, "diff") == []
    assert {each["id"] for each in rota.json("schedules", "ls")} == {"report", "theirs", "by-hand"}


def test_pruning_needs_a_name_of_the_apps_own(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(rota, made("old", owner="rota"))
    shop(rota, monkeypatch, name=None)

    rota("sync", "--prune", code=2)
    refused = rota.err
    kept = rota.json("schedules", "ls")
    monkeypatch.setenv("ROTA_NAME", "rota")
    shop(rota, monkeypatch, name=None)

    assert "that name is only the default, which other apps have too" in refused
    assert refused.count("\n") == 1
    assert [each["id"] for each in kept] == ["old"]  # not even a part of it was done
    assert ("undeclared", "schedule", "old") in told(rota, "sync", "--prune")


def test_what_belongs_to_another_is_told_and_fails_the_sync(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(rota, made("report", owner="other"))
    shop(rota, monkeypatch)

    assert told(rota, "diff", code=3)[0] == ("taken", "schedule", "report")
    assert told(rota, "sync", code=1)[0] == ("taken", "schedule", "report")
    assert [each["owner"] for each in rota.json("schedules", "ls")] == ["other"]
    on_terminal(monkeypatch)
    assert "the one in the store was declared by the code of the app 'other'" in rota("diff", code=3)


def test_the_catch_up_of_a_start_is_told_but_is_no_change(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(rota, made("hourly", timed=Timed(catch_up="all")), ago=3 * HOUR + 60)
    shop(rota, monkeypatch)
    rota("sync")

    found = rota.json("diff")
    on_terminal(monkeypatch)
    page = rota("diff")

    assert found == {
        "changes": [],
        "catch_up": [{"schedule": "hourly", "task": "greet", "runs": 3, "missed": None}],
    }
    assert "No changes: the store is as the code says." in page
    assert "hourly: 3 runs" in page
    assert rota.json("runs", "ls") == []


def test_changes_go_into_a_pipe_with_a_header(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    shop(rota, monkeypatch)

    header, *lines = rota("diff", code=3).splitlines()

    assert header == "change\tof\tid\tfields\tnext_before\tnext_after"
    assert [line.split("\t")[:3] for line in lines] == [["added", "schedule", "report"], ["added", "task", "report"]]


def test_lint_looks_at_code_and_store_and_goes_by_usual_durations(
    rota: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Rota(rota.url, name="shop")

    @app.task(schedule=Cron("*/7 * * * *"))
    def uneven() -> None: ...

    @app.task(schedule=Every(minutes=5))
    def fine() -> None: ...

    beside(monkeypatch, app)
    declare(rota, made("close", "every 1m"), made("theirs", "cron */7 * * * *", owner="other"))
    before = rota.json("lint")
    took(rota, "greet", bucket(300.0))

    after = rota.json("lint")

    assert [(each["schedule"], each["code"]) for each in before] == [("uneven", "uneven-step")]
    assert [(each["schedule"], each["code"]) for each in after] == [("close", "overrun"), ("uneven", "uneven-step")]
    assert "A run usually takes" in after[0]["message"]


def test_lint_exits_with_1_on_an_error(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    app = Rota(rota.url)

    @app.task(schedule="at 2001-01-01T00:00:00Z")
    def once() -> None: ...

    beside(monkeypatch, app)

    (finding,) = rota.json("lint", code=1)
    on_terminal(monkeypatch)

    assert (finding["schedule"], finding["level"], finding["code"]) == ("once", "error", "past")
    assert "0 schedules of 1 without a finding" in rota("lint", code=1)


def test_lint_leaves_alone_what_has_done_its_work(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(rota, made("once", "at 2001-01-01T00:00:00Z"), made("fine", "every 5m"))
    on_terminal(monkeypatch)

    assert rota("lint") == "1 schedule of 1 without a finding\n"


class Verdict(TypedDict):
    status: str


def returned() -> dict[str, str]:
    return {"status": "failed"}


def annotated() -> Verdict:
    return Verdict(status="success")


def test_lint_finds_a_once_task_whose_returned_status_nobody_reads(
    rota: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Rota(rota.url, name="shop")
    for name, fn in (("returned", returned), ("annotated", annotated)):
        app.task(name=name, once=Period.day())(fn)
        app.task(name=f"{name}_read", once=Period.day(), fail_on=status_dict)(fn)
        app.task(name=f"{name}_often")(fn)
    step = app.task(name="step")(returned)
    app.flow("unread", once=Period.day()).step(step)
    app.flow("read", once=Period.day(), fail_on=status_dict).step(step)
    beside(monkeypatch, app)

    found = rota.json("lint")
    on_terminal(monkeypatch)

    assert [(each["task"], each["schedule"], each["level"], each["code"]) for each in found] == [
        (task, None, "warning", "unread-status") for task in ("annotated", "returned", "step")
    ]
    assert "as step step of flow unread" in found[2]["message"]
    assert "Give fail_on=status_dict" in rota("lint")


def test_lint_is_content_once_the_app_reads_them(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    app = Rota(rota.url, name="shop", fail_on=status_dict)
    app.task(once=Period.day())(returned)
    beside(monkeypatch, app)

    assert rota.json("lint") == []
