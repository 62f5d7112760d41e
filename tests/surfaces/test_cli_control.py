"""Pausing, resuming, clearing, and seeing who works: called in this process."""

import io
import re
import subprocess
from pathlib import Path

import pytest

from rota.store import ClaimRequest, Report, Store
from tests.surfaces.called import Called, waiting


def test_a_paused_run_waits_until_it_is_resumed(rota: Called) -> None:
    rota.put(waiting("abcdef-1"), waiting("abcdef-2"))

    paused = rota.json("runs", "pause", "abcdef-1", "abcdef-2", "--note", "a moment")
    again = rota.json("runs", "pause", "abcdef-1", code=1)
    note = rota.json("runs", "show", "abcdef-1")["note"]
    resumed = rota.json("runs", "resume", "abcdef-1")
    rota("runs", "resume", "abcdef-1", code=1)

    assert paused == [{"id": f"abcdef-{n}", "asked": True, "state": "paused"} for n in (1, 2)]
    assert again == [{"id": "abcdef-1", "asked": False, "state": "paused"}]
    assert note == "a moment"
    assert resumed == [{"id": "abcdef-1", "asked": True, "state": "queued"}]
    assert rota.err == "rota: 1 run could not be resumed: only what is paused can be\n"


def test_a_task_is_paused_and_resumed(rota: Called) -> None:
    rota.put(waiting("abcdef-1"))

    first = rota.json("tasks", "pause", "greet")
    again = rota.json("tasks", "pause", "greet")
    back = rota.json("tasks", "resume", "greet")
    rota("tasks", "pause", "gret", code=2)
    said = rota.err
    new = rota.json("tasks", "pause", "elsewhere", "--unknown-ok")

    assert first == [{"task": "greet", "changed": True, "paused": True}]
    assert again == [{"task": "greet", "changed": False, "paused": True}]
    assert back == [{"task": "greet", "changed": True, "paused": False}]
    assert said == "rota: no task gret is defined in app or store; did you mean greet?\n"
    assert new == [{"task": "elsewhere", "changed": True, "paused": True}]


def test_clearing_ends_what_waits(rota: Called) -> None:
    rota.put(waiting("abcdef-1"), waiting("abcdef-2"), waiting("abcdef-3", task="other"))
    rota("runs", "pause", "abcdef-2")

    assert rota.json("clear", "greet", "--note", "a mistake") == {"task": "greet", "cleared": 2}
    assert rota("clear", "other") == "1 run of other ended\n"
    shown = rota.json("runs", "show", "abcdef-2")
    assert (shown["state"], shown["reason"], shown["note"]) == ("cancelled", "dropped", "a mistake")
    rota("clear", "gret", code=2)
    assert "no task gret is defined in app or store" in rota.err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 0), ("\n", 1, 1), ("", 1, 1)])
def test_somebody_at_a_terminal_is_asked_first(
    rota: Called, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, left: int
) -> None:
    rota.put(waiting("abcdef-1"))
    monkeypatch.setattr("sys.stdin", Terminal(answer))

    rota("clear", "greet", code=code)

    assert rota.err.startswith("End 1 waiting run of greet? [y/N] ")
    assert len(rota.json("runs", "ls", "--state", "queued")) == left


def test_yes_is_an_answer_too(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    rota.put(waiting("abcdef-1"))
    monkeypatch.setattr("sys.stdin", Terminal(""))

    assert rota.json("clear", "greet", "--yes")["cleared"] == 1


REPORT = Report(host="here", pid=7, version="1.0", seats=10, leased=2, overdue=1)


def seen(rota: Called, name: str, *tasks: str, ago: float = 0.0, n: int = 1, free: int = 0) -> None:
    """Whoever was there longest ago comes first: the store's clock does not go back."""

    async def claim(store: Store) -> None:
        await store.claim(ClaimRequest(name, n, tasks, free, 30.0, REPORT))

    rota.store(claim, skew=-ago)


def test_workers_are_told_and_the_silent_ones_marked(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    seen(rota, "quiet", "greet", ago=60)
    seen(rota, "gone", ago=5)
    rota.put(waiting("abcdef-1"), waiting("abcdef-2"))
    seen(rota, "a-long-name-of-a-worker", "greet", "resize", free=2)

    listed = rota.json("workers")
    every = rota("workers", "--all").splitlines()
    monkeypatch.setattr("rota.cli.render.show.Show.terminal", True)
    table = rota("workers")

    assert [(worker["name"], worker["standing"]) for worker in listed] == [
        ("a-long-name-of-a-worker", "busy"),
        ("quiet", "silent"),
    ]
    assert {name: listed[0][name] for name in ("host", "pid", "version", "seats", "held", "overdue", "tasks")} == {
        "host": "here",
        "pid": 7,
        "version": "1.0",
        "seats": 10,
        "held": 2,
        "overdue": 1,
        "tasks": ["greet", "resize"],
    }
    assert 60 <= listed[1]["silent_for"] < 120
    assert [line.split("\t")[1] for line in every[1:]] == ["busy", "stopped", "silent"]
    assert "a-long-n  busy" in table


def test_what_a_worker_holds_is_counted_from_the_runs_and_not_from_its_last_report(rota: Called) -> None:
    seen(rota, "dead", "greet", ago=60)
    seen(rota, "there", "greet")

    listed = {worker["name"]: (worker["standing"], worker["held"]) for worker in rota.json("workers")}

    assert listed == {"dead": ("silent", 0), "there": ("idle", 0)}


def test_a_worker_that_stops_is_listed_as_long_as_it_holds_runs(rota: Called) -> None:
    rota.store(lambda store: store.put([waiting("abcdef-1"), waiting("abcdef-2")]), skew=-60)
    seen(rota, "killed", "greet", ago=60, free=1)
    seen(rota, "killed", ago=59, n=2)
    seen(rota, "leaving", "greet", free=1)
    seen(rota, "leaving", n=2)
    seen(rota, "gone")

    listed = {worker["name"]: (worker["standing"], worker["held"]) for worker in rota.json("workers")}

    assert listed == {"killed": ("silent", 1), "leaving": ("stopping", 1)}
    assert workers_check(rota)["detail"] == "0 live workers, 0 seats; 1 stopping with 1 run in hand"


def test_the_doctor_tells_at_once_of_a_run_that_only_a_new_worker_can_take_over(rota: Called) -> None:
    rota.store(lambda store: store.put([waiting("abcdef-1")]), skew=-32)
    seen(rota, "dead", "greet", ago=32, free=1)

    def leases() -> tuple[str, str, str | None]:
        check = next(found for found in rota.json("doctor") if found["check"] == "leases")
        return check["verdict"], check["detail"], check["advice"]

    alone = leases()
    seen(rota, "there", "other")

    assert alone[0] == "warn"
    assert re.fullmatch(r"1 run is held by a dead worker: its lease lapsed \S+ \S+ ago", alone[1])
    assert alone[2] == "start a worker: it takes them over: rota worker"
    assert leases() == ("ok", "none lapsed without a rescue", None)


def test_the_doctor_warns_of_what_nobody_is_there_for(rota: Called) -> None:
    rota("migrate")
    empty = workers_check(rota)
    rota("schedules", "put", "beat", "every 1h", "greet", "--unknown-ok")
    scheduled = workers_check(rota)
    rota("submit", "greet", "--delay", "3600", "--unknown-ok")
    queued = workers_check(rota)

    assert (empty["verdict"], empty["detail"]) == ("ok", "0 live workers, 0 seats")
    assert (scheduled["verdict"], scheduled["detail"]) == (
        "warn",
        "0 live workers, 0 seats; nobody fires schedule beat",
    )
    assert (queued["verdict"], queued["detail"]) == (
        "warn",
        "0 live workers, 0 seats; 1 queued run waits, and none knows greet",
    )
    rota("doctor")
    rota("doctor", "--strict", code=1)


def workers_check(rota: Called) -> dict[str, str]:
    return next(found for found in rota.json("doctor") if found["check"] == "workers")


def test_the_doctor_finds_work_that_nobody_knows(rota: Called) -> None:
    seen(rota, "quiet", "greet", ago=60)
    seen(rota, "one", "known")
    rota.put(waiting("abcdef-1"), waiting("abcdef-2", task="known"))

    def check(name: str) -> dict[str, str]:
        return next(found for found in rota.json("doctor") if found["check"] == name)

    alone = check("workers")
    rota("tasks", "pause", "greet")

    assert alone["verdict"] == "warn"
    assert alone["detail"] == "1 live worker, 10 seats; 1 queued run waits, and none knows greet"
    assert check("workers")["verdict"] == "ok"
    assert check("paused") == {
        "verdict": "warn",
        "check": "paused",
        "detail": "greet",
        "advice": "if that is not meant: rota tasks resume",
    }


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed(rota: Called, shell: str) -> None:
    script = rota("completion", shell)

    assert "rota" in script
    assert all(command in script for command in ("worker", "runs", "resume", "--processes"))


def test_bash_completes_commands(rota: Called, tmp_path: Path) -> None:
    script = tmp_path / "rota.bash"
    script.write_text(rota("completion", "bash"))

    asked = f"source {script}; COMP_WORDS=(rota runs pa); COMP_CWORD=2; _rota; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "--norc", "-c", asked], capture_output=True, text=True, timeout=60, check=False)

    assert (done.stdout, done.stderr) == ("pause\n", "")


def test_the_help_tells_the_exit_codes(rota: Called) -> None:
    assert "Exit codes: 0 done; 1 it failed" in " ".join(rota("--help").split())


def test_a_queued_run_is_changed(rota: Called) -> None:
    run = rota.json("submit", "greet", "name=7", "times=2", "--unknown-ok", "--delay", "1h")["id"]

    assert rota.json("runs", "update", run, "--priority", "5", "--expires", "2h") == [{"id": run, "asked": True}]
    seen = rota.json("runs", "show", run)
    assert (seen["priority"], seen["args"]) == (5, {"name": 7, "times": 2})
    assert seen["expires_at"] is not None

    rota("runs", "update", run, "name=Ada", "times=null")
    assert rota.json("runs", "show", run)["args"] == {"name": "Ada"}
    rota("runs", "update", run, "name=5")
    assert rota.json("runs", "show", run)["args"] == {"name": "5"}, "what is a text stays one"
    rota("runs", "update", run, "--args", '{"times": 3}')
    assert rota.json("runs", "show", run)["args"] == {"name": "5", "times": 3}


def test_an_update_that_cannot_be_says_why(rota: Called) -> None:
    good, _ = rota.work()
    rota("runs", "update", good, "--priority", "5", code=1)
    assert "1 run stays as it is: only what is queued can be changed" in rota.err

    run = rota.json("submit", "greet", "name=Ada", "--unknown-ok", "--delay", "1h")["id"]
    rota("runs", "update", run, code=2)
    assert "nothing to change" in rota.err
    rota("runs", "update", run, "nmae=Bob", code=2)
    assert "greet has no parameter 'nmae'; did you mean name?" in rota.err
    rota("runs", "update", run, "--args", "[1]", code=2)
    assert "a JSON object" in rota.err
