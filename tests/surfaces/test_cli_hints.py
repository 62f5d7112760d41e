"""What is asked wrongly is answered with what to write instead."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from rota import Period, Rota
from rota.cli import run as command
from rota.task import definition_of
from tests.surfaces.called import Called
from tests.surfaces.timetables import beside


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("jobs.py", "'jobs.py' is a file; write jobs:app"),
        ("jobs.py:other", "'jobs.py:other' is a file; write jobs:other"),
        ("./shop/jobs.py", "'./shop/jobs.py' is a file; write shop.jobs:app"),
    ],
)
def test_a_file_is_no_module(rota: Called, given: str, said: str) -> None:
    rota("-A", given, "tasks", code=2)
    assert rota.err == f"rota: {said}\n"


def test_a_module_that_is_not_there_says_where_it_was_looked_for(rota: Called, tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text("from rota import Rota\n\napp = Rota()\n")
    rota("-A", "job:app", "tasks", code=2)
    assert rota.err == (
        f"rota: 'job:app': there is no module job in {tmp_path}, nor is one installed; did you mean jobs?\n"
    )


def test_a_module_that_lacks_another_says_which_and_where(rota: Called, tmp_path: Path) -> None:
    (tmp_path / "lacking.py").write_text("\nimport not_installed_here\n")
    rota("-A", "lacking:app", "tasks", code=2)
    assert "'lacking:app' cannot be imported: ModuleNotFoundError: No module named 'not_installed_here'" in rota.err
    assert f"({tmp_path / 'lacking.py'}, line 2)" in rota.err


def test_what_the_project_file_says_wrongly_is_no_fault_of_the_import(
    rota: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wrongly_set.py").write_text("from rota import Rota\n\napp = Rota()\n")
    (tmp_path / "rota.toml").write_text('lease = "soon"\n')
    monkeypatch.setenv("ROTA_APP", "wrongly_set:app")
    sys.modules.pop("wrongly_set", None)
    rota("-A", "wrongly_set:app", "tasks", code=2)
    assert "cannot be imported" not in rota.err
    assert f"{tmp_path / 'rota.toml'}: lease = 'soon': expected seconds" in rota.err


def test_arguments_of_a_task_are_no_options(rota: Called) -> None:
    for words in (("--name", "Ada"), ("--name=Ada",)):
        rota("submit", "greet", *words, code=2)
        assert rota.err == "rota: submit has no option --name; an argument of the task is written name=Ada\n"
    rota("runs", "ls", "--stat", "failed", code=2)
    assert "argument of the task" not in rota.err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("reset", "day"), "reset: --period is missing (which, such as 2026-11-15); see rota reset --help"),
        (("reset", "day", "--period"), "reset: --period needs a value (which, such as 2026-11-15); "),
        (("why",), "why: SUBJECT is missing (a task, a schedule, or a run's id or its first or last 6 or more "),
        (("runs", "show"), "runs show: ID is missing ("),
        (("tasks", "pay"), "tasks lists all of them and takes no name; see rota why pay or rota runs ls --task pay"),
        (("tasks", "puase", "pay"), "tasks has no command puase; did you mean rota tasks pause?"),
        (("runs", "ls", "pay"), "runs ls takes no argument pay; see rota runs ls --help"),
        (("worker", "--lease", "soon"), "--lease: 'soon' is not a duration; expected such as 30s, 15m, "),
    ],
)
def test_what_is_missing_or_too_much_is_said_in_one_sentence(
    given: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(given) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"rota: {said}")
    assert err.count("\n") == 1


def test_doctor_names_the_file_first_that_names_an_app(rota: Called) -> None:
    (app,) = [check for check in rota.json("doctor", code=0) if check["check"] == "app"]
    assert app["advice"] == 'name it in rota.toml (app = "jobs:app"), with -A jobs:app, or in ROTA_APP'


def test_an_app_in_a_plain_with_says_what_to_write() -> None:
    said = r"`async with app:`, or in synchronous code `with app\.running\(\):`"
    app: Any = Rota("memory://")
    with pytest.raises(TypeError, match=said), app:
        pass


def test_a_flow_is_reset_by_an_app_that_defines_it(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    racing, other = Rota(rota.url), Rota(rota.url)
    day = racing.flow("race_day", once=Period.day(tz="UTC"))

    @racing.task
    async def odds() -> None: ...

    day.step(odds)

    async def start() -> None:
        async with racing.client():
            await (await racing.client().store()).declare([definition_of(task).spec for task in racing.tasks.values()])
            await day.start("2026-11-15")

    asyncio.run(start())
    rota("reset", "race_day", "--period", "2026-11-15", code=2)
    assert "race_day is a flow, and which steps it has stands in its code: say which app with -A" in rota.err
    beside(monkeypatch, other)
    rota("reset", "race_day", "--period", "2026-11-15", code=2)
    assert "shop:app does not define it" in rota.err


async def test_a_reset_answers_with_what_was_done() -> None:
    app = Rota("memory://")

    @app.task
    async def good() -> None: ...

    @app.task
    async def bad() -> None:
        raise ValueError("no")

    day = app.flow("day", once=Period.day(tz="UTC"), on_failure="continue")
    day.step(good)
    day.step(bad)
    async with app:
        await day.start("2026-11-15")
        await day.wait("2026-11-15", timeout=10)
        assert await day.reset("2026-11-15", step="bad") == []
        assert await day.reset("2026-11-15") == ["good"]
