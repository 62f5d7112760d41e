"""`rota runs`, `tasks`, `doctor`, `migrate`: their answers in each form, called in this process."""

import json
import re
import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from rota.domain.guards import Guards
from rota.stores.sqlite.connection import migrations
from tests.requirement import requirement
from tests.surfaces.called import Called, waiting
from tests.surfaces.timetables import on_terminal

NASTY = "[bold]loud[/bold] \x1b[31mred\x1b[0m \x1b]0;title\x07bell\x07 \u202eback\x9b2J\r\tend"
HARMLESS = "[bold]loud[/bold] red bell back"


def test_a_list_into_a_pipe_is_tsv_with_a_header(rota: Called) -> None:
    good, bad = rota.work()

    header, *lines = [line.split("\t") for line in rota("runs", "ls").splitlines()]

    rows = [dict(zip(header, line, strict=True)) for line in lines]
    assert [(row["id"], row["task"], row["state"]) for row in rows] == [
        (bad, "trip", "failed"),
        (good, "greet", "succeeded"),
    ]
    assert rows[0]["error"] == "ValueError: no"
    assert rows[0]["failures"] == "2"
    assert rows[1]["finished_at"].endswith("Z")


def test_a_list_in_json_is_an_array_of_runs(rota: Called) -> None:
    good, _ = rota.work()

    (run,) = rota.json("runs", "ls", "--state", "succeeded", "--state", "queued", "--task", "greet")

    assert run["id"] == good
    assert run["args"] == {"name": "Ada"}
    assert run["result"] == "hello Ada"
    assert run["attempts"][0]["outcome"] == "succeeded"
    assert "wire" not in run


def test_no_runs_are_an_empty_list(rota: Called) -> None:
    assert rota.json("runs", "ls") == []
    assert len(rota("runs", "ls").splitlines()) == 1


def test_a_list_goes_on_at_its_cursor(rota: Called) -> None:
    rota.put(*(waiting(f"run-number-{n}") for n in range(3)))

    first = rota.json("runs", "ls", "--limit", "2")
    cursor = rota.err.removeprefix("more: --cursor ").strip()
    rest = rota.json("runs", "ls", "--limit", "2", "--cursor", cursor)

    assert [run["id"] for run in first + rest] == ["run-number-2", "run-number-1", "run-number-0"]
    assert rota.err == ""


@pytest.mark.parametrize("options", [["--limit", "0"], ["--cursor", "here"], ["--state", "tired"]])
def test_a_list_that_cannot_be_made_is_a_usage_error(rota: Called, options: list[str]) -> None:
    rota("runs", "ls", *options, code=2)

    assert re.match(r"rota: (--limit|cursor|Invalid value)", rota.err)
    assert rota.err.count("\n") == 1


def test_a_run_is_shown_whole(rota: Called) -> None:
    _, bad = rota.work()

    shown = rota.json("runs", "show", bad)
    lines = dict(line.split("\t", 1) for line in rota("runs", "show", bad).splitlines())

    assert shown["error"]["message"] == "no"
    assert "Traceback" in shown["error"]["traceback"]
    assert (shown["fence"], shown["failures"], len(shown["attempts"])) == (2, 2, 2)
    assert lines["field"] == "value"
    assert lines["state"] == "failed"


@requirement("0.15")
def test_a_run_that_was_joined_shows_how_often_and_when(rota: Called) -> None:
    joined = replace(waiting("abcdef-1"), unique_key="k", guards=Guards("queued"))
    rota.put(joined, *(replace(joined, id=f"abcdef-{n}") for n in (2, 3)))

    shown = rota.json("runs", "show", "abcdef-1")

    assert (shown["touches"], shown["touched_at"]) == (3, shown["created_at"])


def test_the_beginning_of_an_id_is_enough_if_one_run_has_it(rota: Called) -> None:
    rota.put(waiting("abcdef-1"), waiting("abcdef-2"), waiting("abcxyz-3"))

    assert rota.json("runs", "show", "abcxyz")["id"] == "abcxyz-3"

    rota("runs", "cancel", "abcdef", code=2)
    assert rota.err == "rota: 'abcdef' fits 2 runs: abcdef-2, abcdef-1\n"
    rota("runs", "show", "abcde", code=2)
    assert "too short" in rota.err
    rota("runs", "show", "zzzzzz", code=1)
    assert rota.err.startswith("rota: no run zzzzzz")
    assert {run["state"] for run in rota.json("runs", "ls")} == {"queued"}


def test_retrying_twice_gives_the_same_run(rota: Called) -> None:
    good, bad = rota.work()

    first = rota.json("runs", "retry", bad, good)
    again = rota.json("runs", "retry", bad, good)

    assert first == again
    assert [answer["retry_of"] for answer in first] == [bad, good]
    assert len(rota.json("runs", "ls")) == 4


def test_what_has_not_ended_is_not_retried(rota: Called) -> None:
    rota.put(waiting("abcdef-1"))

    rota("runs", "retry", "abcdef-1", code=2)

    assert "only an ended run can be retried" in rota.err


def test_cancelling_says_for_which_runs_it_came_in_time(rota: Called) -> None:
    rota.put(waiting("abcdef-1"))

    first = rota.json("runs", "cancel", "abcdef-1", "--note", "not needed")
    again = rota.json("runs", "cancel", "abcdef-1", code=1)

    assert first == [{"id": "abcdef-1", "asked": True, "state": "cancelled"}]
    assert again == [{"id": "abcdef-1", "asked": False, "state": "cancelled"}]
    assert "1 run had ended before" in rota.err
    assert rota.json("runs", "show", "abcdef-1")["note"] == "not needed"


@pytest.mark.parametrize("terminal", [False, True])
def test_stored_text_cannot_play_tricks(rota: Called, monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    _, bad = rota.work(NASTY)
    rota.put(replace(waiting("nasty-1"), task="\x1b]0;x\x07[red]task"))  # no intake lets it pass: written by others
    rota("runs", "cancel", "nasty-1", "--note", NASTY)
    monkeypatch.setattr("rota.cli.render.show.Show.terminal", terminal)
    monkeypatch.setenv("COLUMNS", "200")
    for id, stored in ((bad, HARMLESS), ("nasty-1", "[red]task")):
        out = rota("runs", "ls") + rota("runs", "show", id)
        assert stored in out
        assert not set(out) & {"\x1b", "\x07", "\x9b", "\u202e", "\r"}
    raw = rota("runs", "show", bad, "--json")
    assert not set(raw) & {"\x1b", "\x07", "\x9b", "\u202e", "\r"}
    assert json.loads(raw)["error"]["message"] == NASTY


def test_migrate_tells_the_schema_before_and_after(rota: Called, tmp_path: Path) -> None:
    (tmp_path / "rota.db").unlink()
    newest = len(migrations())
    assert rota.json("migrate", "--plan") == {"url": rota.url, "before": 0, "after": newest, "functions": False}
    assert not (tmp_path / "rota.db").exists(), "a plan makes no file"
    assert rota.json("migrate") == {"url": rota.url, "before": 0, "after": newest}
    assert "nothing would change" in rota("migrate", "--plan")
    assert rota.json("migrate") == {"url": rota.url, "before": newest, "after": newest}
    assert rota("migrate") == f"{rota.url} has schema {newest}: up to date\n"
    rota.url = "memory://"
    assert rota("migrate") == "memory:// has no schema: nothing to do\n"


def verdicts(rota: Called, code: int = 0) -> dict[str, str]:
    return {check["check"]: check["verdict"] for check in rota.json("doctor", code=code)}


def test_the_doctor_finds_a_sound_store_sound(rota: Called) -> None:
    rota("migrate")

    found = verdicts(rota)

    assert found.pop("app") == "warn"  # none is named here
    assert found.pop("disk") in ("ok", "warn")
    assert set(found.values()) == {"ok"}
    assert {"python", "rota", "store", "schema", "journal", "synchronous", "writable", "clock"} <= found.keys()


def test_the_doctor_does_not_make_a_store(rota: Called, tmp_path: Path) -> None:
    (tmp_path / "rota.db").unlink()
    assert verdicts(rota)["file"] == "warn"
    assert not (tmp_path / "rota.db").exists()


def test_the_doctor_finds_a_schema_from_the_future(rota: Called, tmp_path: Path) -> None:
    rota("migrate")
    with sqlite3.connect(tmp_path / "rota.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()

    assert verdicts(rota, code=1)["schema"] == "fail"


def test_the_doctor_finds_a_corrupt_file(rota: Called, tmp_path: Path) -> None:
    (tmp_path / "rota.db").write_bytes(b"no database " * 1000)

    assert verdicts(rota, code=1)["schema"] == "fail"


def test_the_doctor_finds_runs_that_nobody_rescues(rota: Called, tmp_path: Path) -> None:
    rota.put(waiting("abcdef-1"))
    with sqlite3.connect(tmp_path / "rota.db") as connection:
        connection.execute("UPDATE runs SET state = 'running', worker = 'gone', fence = 1, until = 1000")
    connection.close()

    assert verdicts(rota)["leases"] == "warn"


def test_the_doctor_finds_an_app_that_cannot_be_imported(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_APP", "no_such_module:app")

    assert verdicts(rota, code=1)["app"] == "fail"


def test_80_columns_show_the_reason_of_a_failure_and_an_id_that_every_command_takes(
    rota: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = rota.work("the server answered with something odd")
    on_terminal(monkeypatch, 80)

    title, failed, done = rota("runs", "ls").splitlines()

    assert title.split() == ["id", "task", "state", "age", "outcome"]
    assert failed.split()[:3] == [bad[-12:], "trip", "failed"]
    assert "ValueError: the server answered" in failed
    assert done.split()[:3] == [good[-12:], "greet", "succeeded"]
    assert max(map(len, (title, failed, done))) <= 80
    shown = rota("runs", "show", failed.split()[0])
    assert bad in shown
