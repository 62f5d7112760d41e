"""`rota schedules`: what fires next, what became of the last firing, and a hand on it."""

import getpass
import socket
from datetime import UTC, datetime, timedelta

import pytest

from rota.domain.scheduling import Timed
from rota.domain.ticks import tick_id
from tests.surfaces.called import Called
from tests.surfaces.timetables import HOUR, declare, fire, made, on_terminal


def test_what_fires_next_is_listed_first_and_what_does_not_fire_last(rota: Called) -> None:
    declare(rota, made("later", "every 3h"), made("soon", "every 1h"), made("held", "every 1m"))
    rota("schedules", "pause", "held", "--note", "a moment")

    listed = rota.json("schedules", "ls")

    assert [(each["id"], each["state"]) for each in listed] == [
        ("soon", "active"),
        ("later", "active"),
        ("held", "paused"),
    ]
    assert 3500 < listed[0]["left"] <= 3600
    assert (listed[0]["words"], listed[0]["trigger"], listed[2]["note"]) == ("every hour", "every 1h", "a moment")
    assert listed[0]["last"] is None


def test_one_whose_last_tick_has_passed_has_ended(rota: Called) -> None:
    end = datetime.now(UTC) - timedelta(minutes=30)
    declare(rota, made("old", timed=Timed(end=end)), ago=2 * HOUR)
    fire(rota)

    (listed,) = rota.json("schedules", "ls")

    assert (listed["state"], listed["next_at"], listed["left"]) == ("ended", None, None)


def test_the_last_firing_is_told_with_what_became_of_its_run(rota: Called) -> None:
    declare(rota, made("hourly"), ago=HOUR + 60)
    fire(rota)

    (fired,) = rota.json("schedules", "ls")
    rota("runs", "cancel", fired["last_run"])
    (ended,) = rota.json("schedules", "ls")

    assert (fired["last"], ended["last"]) == ("queued", "cancelled")
    assert fired["last_run"] == tick_id("hourly", datetime.fromisoformat(fired["last_at"]).timestamp())
    assert 50 < fired["passed"] < 120
    assert rota.json("runs", "show", fired["last_run"])["origin"] == {
        "kind": "schedule",
        "of": "hourly",
        "nominal": fired["last_at"],
        "period": None,
    }


def test_a_tick_that_made_no_run_says_why(rota: Called) -> None:
    declare(rota, made("hourly"), made("careful", timed=Timed(catch_up="skip")), ago=2 * HOUR + 60)
    fire(rota, ago=HOUR + 30)
    fire(rota, ago=30)

    rows = {each["id"]: each for each in rota.json("schedules", "ls")}
    firings = rota.json("schedules", "show", "hourly")["firings"]

    assert (rows["hourly"]["last"], rows["hourly"]["last_run"]) == ("already_queued", None)
    assert [(each["reason"], each["state"]) for each in firings] == [("already_queued", None), ("accepted", "queued")]
    assert [each["outcome"] for each in firings] == ["already_queued", "queued"]
    assert firings[0]["run"] == firings[1]["run"] is not None, "the run that stood in its way"


def test_ticks_that_nobody_was_there_for_are_told_as_missed(rota: Called) -> None:
    declare(rota, made("careful", timed=Timed(catch_up="skip")), ago=5 * HOUR + 600)
    fire(rota)

    (listed,) = rota.json("schedules", "ls")

    assert (listed["last"], listed["last_run"]) == ("missed", None)


def test_the_list_can_be_of_one_task_and_goes_into_a_pipe_with_a_header(rota: Called) -> None:
    declare(rota, made("mine"), made("other", task="resize"))

    header, line = rota("schedules", "ls", "--task", "resize").splitlines()

    row = dict(zip(header.split("\t"), line.split("\t"), strict=True))
    assert (row["id"], row["task"], row["words"], row["state"]) == ("other", "resize", "every hour", "active")


def test_a_terminal_shows_local_times_and_which_zone_a_schedule_goes_by(
    rota: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(rota, made("tokyo", "daily 09:00 Asia/Tokyo"), made("utc", "daily 09:00"))
    on_terminal(monkeypatch)

    lines = {name: line for line in rota("schedules", "ls").splitlines() for name in ("tokyo", "utc") if name in line}

    assert "00:00+00:00" in lines["tokyo"]
    assert "every day at 09:00, Tokyo time" in lines["tokyo"]
    assert "09:00+00:00" in lines["utc"]
    assert "09:00 JST" in rota("schedules", "show", "tokyo")
    assert rota("schedules", "show", "utc").count("09:00 UTC") == 2, "in its trigger and the words for it alone"


@pytest.mark.parametrize(
    ("width", "shown", "left_out"),
    [
        (160, "next left last at outcome schedule task when state", ""),
        (120, "next left last at schedule task", ""),
        (80, "next left last outcome schedule", "at"),
        (50, "next left schedule", "last at task outcome when"),
    ],
)
def test_a_narrow_terminal_leaves_out_what_tells_least(
    rota: Called, monkeypatch: pytest.MonkeyPatch, width: int, shown: str, left_out: str
) -> None:
    declare(rota, made("refresh-the-odds", "cron 0 * * * *", task="refresh_prices"), ago=2 * HOUR)
    fire(rota)
    on_terminal(monkeypatch, width)

    lines = rota("schedules", "ls").splitlines()

    titles = set(lines[0].split())
    assert set(shown.split()) <= titles
    assert not set(left_out.split()) & titles
    assert "refresh-the-odds" in lines[1]
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)


def test_no_schedules_is_said(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    on_terminal(monkeypatch)

    assert rota("schedules", "ls").startswith("No schedules; give a task one with @app.task(schedule=DailyAt(9))")


def test_everything_about_one_is_shown(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(overlap="queue", catch_up="skip", grace=600)
    declare(rota, made("report", "daily 09:00 Europe/Paris", timed, owner="shop"))
    rota("schedules", "pause", "report", "--note", "moving house")

    told = rota.json("schedules", "show", "report")
    on_terminal(monkeypatch)
    page = rota("schedules", "show", "report")

    assert told["args"] == {"name": "Ada"}
    assert (told["overlap"], told["catch_up"], told["grace"], told["owner"]) == ("queue", "skip", 600, "shop")
    assert len(told["upcoming"]) == 5
    assert told["upcoming"][0] == told["next_at"]
    assert (told["asked"][0]["reason"], told["asked"][0]["note"]) == ("paused", "moving house")
    assert told["asked"][0]["by"] == f"{getpass.getuser()}@{socket.gethostname()}"
    for words in (
        "report  paused: moving house",
        "every day at 09:00, Paris time",
        "queue: at most one run waits behind the one that runs",
        "skip: ticks that nobody was there for are left out",
        "10 m 00 s: a run that could not start by then never does",
        "declared by the code of the app 'shop'",
        f"by {getpass.getuser()}@{socket.gethostname()}: moving house",
        "Next (once it is resumed)",
    ):
        assert words in page, words


def test_the_next_ticks_of_an_overdue_one_go_on_from_now(rota: Called) -> None:
    declare(rota, made("hourly"), ago=5 * HOUR + 600)

    told = rota.json("schedules", "show", "hourly")

    ticks = [datetime.fromisoformat(at) for at in told["upcoming"]]
    assert ticks[0] < datetime.now(UTC) - timedelta(hours=4)
    assert ticks[1] > datetime.now(UTC)


def test_an_overdue_one_is_told_as_late(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(rota, made("hourly"), ago=5 * HOUR)
    declare(rota, made("fine", "daily 09:00"))
    on_terminal(monkeypatch)

    table = rota("schedules", "ls")

    assert "4 h late" in table.splitlines()[1]
    assert rota.err == "1 schedule is overdue: does a worker run? rota workers tells\n"


def test_pausing_and_resuming_twice_is_no_error_but_told(rota: Called) -> None:
    declare(rota, made("hourly"))

    said = [
        rota("schedules", "pause", "hourly", "--note", "a moment"),
        rota("schedules", "pause", "hourly"),
        rota("schedules", "resume", "hourly"),
        rota("schedules", "resume", "hourly"),
    ]
    told = rota.json("schedules", "pause", "hourly")

    assert said == [
        "hourly is paused\n",
        "hourly was paused already: a moment\n",
        "hourly fires again\n",
        "hourly was not paused\n",
    ]
    assert (told["changed"], told["paused"]) == (True, True)


@pytest.mark.parametrize(
    "command",
    [
        ("show",),
        ("pause",),
        ("resume",),
        ("delete",),
        ("run-now",),
        ("backfill", "--from", "2026-11-01", "--to", "2026-11-02"),
    ],
)
def test_an_unknown_schedule_is_named_with_the_likely_one(rota: Called, command: tuple[str, ...]) -> None:
    declare(rota, made("hourly"))
    verb, *options = command

    rota("schedules", verb, "hurly", *options, code=1)

    assert rota.err == "rota: no schedule hurly; did you mean hourly?\n"


def test_a_deleted_schedule_is_gone_and_what_code_declares_comes_back(rota: Called) -> None:
    declare(rota, made("mine"), made("coded", owner="shop"))

    assert rota("schedules", "delete", "mine") == "mine is deleted\n"
    assert rota.err == ""
    assert rota.json("schedules", "delete", "coded") == {"id": "coded", "deleted": True, "owner": "shop"}
    assert rota.err == "the code of the app 'shop' declares it: its next start puts it back\n"
    assert rota.json("schedules", "ls") == []


def test_run_now_makes_a_run_beside_the_ticks_as_overlap_has_it(rota: Called) -> None:
    declare(rota, made("strict"), made("patient", timed=Timed(overlap="queue")))
    before = {each["id"]: each["next_at"] for each in rota.json("schedules", "ls")}

    run = rota("schedules", "run-now", "strict").strip()
    rota("schedules", "run-now", "strict", code=1)
    refused = rota.err
    first = rota.json("schedules", "run-now", "patient")
    again = rota.json("schedules", "run-now", "patient")
    joined = rota.err

    assert rota.json("runs", "show", run)["origin"]["of"] == "strict"
    assert "already_queued" in refused
    assert (first["created"], again["created"]) == (True, False)
    assert first["id"] == again["id"]
    assert joined == "joined: this run was there already\n"
    assert {each["id"]: each["next_at"] for each in rota.json("schedules", "ls")} == before


def test_eighty_columns_have_room_for_the_note_of_a_pause(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(rota, made("refresh-the-odds", "cron 0 * * * *", task="refresh_prices"), made("held"), ago=2 * HOUR)
    fire(rota)
    rota("schedules", "pause", "held", "--note", "moving house")
    on_terminal(monkeypatch, 80)
    lines = rota("schedules", "ls").splitlines()
    assert {"next", "last", "schedule", "state"} <= set(lines[0].split())
    assert "paused: mo" in "".join(lines)
    assert max(map(len, lines)) <= 80


def test_a_run_tells_which_tick_made_it(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(rota, made("hourly"), ago=HOUR + 60)
    fire(rota)
    (run,) = rota.json("runs", "ls")
    (line,) = rota("runs", "ls").splitlines()[1:]
    on_terminal(monkeypatch)

    assert line.split("\t")[-1] == f"schedule hourly, tick of {run['origin']['nominal']}"
    assert rota("runs", "ls").splitlines()[1].split()[-1] == "hourly"
    told = run["origin"]["nominal"].replace("T", " ").replace(".000000Z", "+00:00")
    assert f"schedule hourly, tick of {told}" in rota("runs", "show", run["id"])


def test_a_pause_ends_after_a_while_and_why_says_so(rota: Called) -> None:
    declare(rota, made("hourly"))
    begins = datetime.now(UTC)

    paused = rota.json("schedules", "pause", "hourly", "--until", "5h", "--note", "the disks are full")

    assert (paused["changed"], paused["paused"]) == (True, False)
    assert 5 * HOUR - 60 <= (datetime.fromisoformat(paused["next_at"]) - begins).total_seconds() <= 6 * HOUR + 60
    assert rota.json("schedules", "show", "hourly")["note"] == "the disks are full"
    assert "its ticks before that are left out (the disks are full)" in rota("why", "hourly")
    assert not rota.json("schedules", "pause", "hourly", "--until", "5h")["changed"]
    assert rota.json("schedules", "resume", "hourly")["changed"]
    assert "left out" not in rota("why", "hourly")


def test_the_next_tick_is_set(rota: Called) -> None:
    declare(rota, made("hourly"))
    assert rota.json("schedules", "set-next", "hourly", "2099-01-01T00:00Z")["next_at"].startswith("2099-01-01T0")
    rota("schedules", "set-next", "hourly", "soon", code=2)
    assert "not an ISO 8601 time" in rota.err
