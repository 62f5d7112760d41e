"""One filter everywhere: RunQuery, app.runs and `rota runs` take the same conditions, and mean the same by them."""

import inspect
from dataclasses import fields

from rota import Rota
from rota.cli.runs.filters import Filter
from rota.client.operations import CONDITIONS
from rota.store import RunQuery
from tests.surfaces.called import Called, waiting

FILTER = [
    *("state", "task", "key", "queue", "group", "schedule", "flow", "period", "origin", "worker", "error", "reason"),
    *("retry_of", "since", "until", "by", "q", "order"),
]


def test_the_surfaces_take_the_same_conditions() -> None:
    in_python = list(inspect.signature(Rota.runs).parameters)[1:]
    on_the_command_line = [field.name for field in fields(Filter)]

    assert ["ids", *FILTER] == list(CONDITIONS) == in_python
    assert on_the_command_line == FILTER, "ids are the arguments of a command"
    assert list(RunQuery.__struct_fields__) == [*CONDITIONS, "limit", "cursor", "brief"]


def test_each_condition_is_an_option_of_each_command(rota: Called) -> None:
    for command in ("ls", "retry", "cancel", "pause", "resume", "reschedule", "delete"):
        shown = rota("runs", command, "--help")
        assert [name for name in FILTER if f"--{name.replace('_', '-')}" not in shown] == [], command


def test_a_list_takes_any_condition(rota: Called) -> None:
    good, bad = rota.work()

    def found(*options: str) -> list[str]:
        return [run["id"] for run in rota.json("runs", "ls", *options)]

    assert found("--task", "greet", "--task", "trip") == [bad, good]
    assert found("--error", "ValueError") == [bad]
    assert found("--q", "ADA") == [good]
    assert found("--order", "finished", "--state", "succeeded") == [good]
    assert found("--since", "1h", "--until", "0s", "--by", "finished") == [bad, good]
    assert found("--since", "1h", "--until", "30m") == []
    assert found("--origin", "retry") == []
    assert found("--queue", "default", "--key", "none") == []


def test_all_that_match_are_counted_and_asked_for_first(rota: Called) -> None:
    rota.put(*(waiting(f"run-number-{n}") for n in range(3)))

    rota("runs", "cancel", "--task", "greet", code=2)
    assert "would cancel 3 runs; say so with --yes" in rota.err
    assert len(rota.json("runs", "ls", "--state", "queued")) == 3
    assert rota.json("runs", "pause", "--task", "greet", "--yes") == {"action": "pause", "done": 3, "skipped": 0}
    assert rota.json("runs", "resume", "--q", "number-1", "-y") == {"action": "resume", "done": 1, "skipped": 0}
    assert rota("runs", "cancel", "--state", "paused", "--yes").strip() == "cancel: 2 runs done, 0 skipped"
    rota("runs", "cancel", "--state", "paused", "--yes")
    assert "no runs match" in rota.err


def test_runs_are_moved_and_deleted(rota: Called) -> None:
    rota.put(waiting("run-number-1"), waiting("run-number-2"))

    (answer,) = rota.json("runs", "reschedule", "run-number-1", "--delay", "2h")
    assert answer == {"id": "run-number-1", "asked": True}
    moved = rota.json("runs", "reschedule", "--q", "run-number", "--at", "2030-01-01T00:00Z", "--yes")
    assert moved == {"action": "reschedule", "done": 2, "skipped": 0}
    assert {run["due_at"] for run in rota.json("runs", "ls")} == {"2030-01-01T00:00:00.000000Z"}
    rota("runs", "delete", "run-number-1", code=1)
    assert "only what ended at least a minute ago is deleted" in rota.err


def test_ids_and_a_filter_do_not_go_together(rota: Called) -> None:
    rota("runs", "cancel", "abcdef", "--task", "greet", code=2)
    assert "by their ids or by --task, not both" in rota.err
    rota("runs", "cancel", code=2)
    assert "which runs?" in rota.err
    rota("runs", "reschedule", "abcdef", code=2)
    assert "Give --at or --delay" in rota.err
