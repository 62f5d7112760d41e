"""The command rota against a service: ROTA_SERVER and ROTA_TOKEN instead of a store."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rota.cli import run
from tests.web.serving import Served, serving

Rota = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("remote"), "memory://") as found:
        yield found


@pytest.fixture
def rota(served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Rota:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_SERVER", served.url)
    monkeypatch.setenv("ROTA_TOKEN", served.token)

    def call(*words: str) -> tuple[int, str, str]:
        code = run(words)
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_a_service_answers_what_a_store_answers(rota: Rota) -> None:
    assert rota("submit", "add", "a=2", "b=3", "--wait")[:2] == (0, "5\n")
    _, out, _ = rota("--json", "runs", "ls", "--task", "add", "--state", "succeeded", "--since", "1h")
    (found,) = json.loads(out)
    assert found["result"] == 5
    assert "state\tsucceeded" in rota("runs", "show", found["id"])[1]
    assert "succeeded" in rota("why", found["id"])[1]
    assert rota("tasks")[1].splitlines()[1].startswith("add\t")
    assert rota("workers")[1].startswith("name\tstanding\t")
    assert rota("schedules", "ls")[0] == 0
    code, out, _ = rota("--json", "runs", "retry", found["id"])
    assert (code, json.loads(out)[0]["created"]) == (0, True)


def test_a_service_acts(rota: Rota) -> None:
    assert rota("tasks", "pause", "add", "--note", "deploy")[1] == "name\tchanged\nadd\tyes\n"
    id = rota("submit", "add", "a=1")[1].strip()
    assert "paused" in rota("why", id)[1]
    code, _, err = rota("runs", "cancel", "--task", "add", "--state", "queued")
    assert (code, "--yes" in err) == (2, True)
    assert rota("runs", "cancel", id)[1] == f"id\tchanged\tstate\n{id}\tyes\tcancelled\n"
    assert rota("tasks", "resume", "add")[0] == 0
    code, _, err = rota("runs", "cancel", "none")
    assert (code, "none" in err) == (1, True)


def test_a_key_is_paused_and_its_task_goes_on(rota: Rota) -> None:
    assert rota("tasks", "pause", "add", "--key", "bad", "--note", "odd numbers")[0] == 0
    assert "add is paused" not in rota("why", "add")[1]
    assert rota("submit", "add", "a=2", "--key", "good", "--wait", "--timeout", "30")[0] == 0, "another key goes on"
    id = rota("submit", "add", "a=2", "--key", "bad")[1].strip()
    assert "the key 'bad' of add is paused" in rota("why", "add", "bad")[1]
    assert rota("runs", "cancel", id)[0] == 0
    assert rota("tasks", "resume", "add", "--key", "bad")[0] == 0
    assert "is paused" not in rota("why", "add", "bad")[1]


def test_a_pause_over_a_service_ends_by_itself(rota: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rota("tasks", "pause", "add", "--until", "2h")[0] == 0
    (shown,) = [each for each in json.loads(rota("--json", "tasks")[1]) if each["task"] == "add"]
    left = datetime.fromisoformat(shown["paused_until"]) - datetime.now(UTC)
    assert abs(left.total_seconds() - 7200) < 60
    monkeypatch.setenv("ROTA_TZ", "Asia/Tokyo")
    assert rota("tasks", "pause", "add", "--until", "2090-01-01T09:00")[0] == 0
    (shown,) = [each for each in json.loads(rota("--json", "tasks")[1]) if each["task"] == "add"]
    assert shown["paused_until"].startswith("2090-01-01T00:00"), "by the clock of the project, as without a service"
    assert rota("tasks", "resume", "add")[0] == 0
    code, _, err = rota("tasks", "pause", "add", "--until", "soon")
    assert (code, "--until" in err) == (2, True)


def test_an_id_of_ones_own_reaches_the_service(rota: Rota) -> None:
    first = rota("submit", "add", "a=3", "--id", "order-17")
    assert first[:2] == (0, "order-17\n") == rota("submit", "add", "a=3", "--id", "order-17")[:2]
    code, _, err = rota("submit", "add", "a=4", "--id", "order-17")
    assert (code, "its arguments differ" in err) == (1, True)


def test_a_window_reaches_the_service(rota: Rota) -> None:
    code, _, err = rota("submit", "add", "a=7", "--unique", "active", "--within", "10m")
    assert code != 0
    assert "within" in err


def test_what_a_service_cannot_do_is_said_in_a_sentence(rota: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = rota("freeze")
    assert code == 2
    assert "needs the store itself, and ROTA_SERVER names a service" in err
    assert rota("cron", "0 9 * * *")[0] == 0, "a command for this machine"
    monkeypatch.setenv("ROTA_TOKEN", "rota_wrong_wrong_wrong")
    code, _, err = rota("runs", "ls")
    assert (code, "send a valid token" in err) == (1, True)
    monkeypatch.setenv("ROTA_SERVER", "http://127.0.0.1:9")
    code, _, err = rota("runs", "ls")
    assert (code, "does not answer" in err) == (1, True)
    monkeypatch.setenv("ROTA_SERVER", "127.0.0.1:9")
    assert rota("runs", "ls")[0] == 2
