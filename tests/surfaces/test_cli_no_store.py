"""Commands where there is no store yet: who only reads creates nothing, and says so."""

from pathlib import Path

import pytest

from rota.cli import run as command
from tests.surfaces.project import Project

APP = """
from rota import Period, Rota
app = Rota()

@app.task
def greet(name: str) -> str:
    return name

flow = app.flow("day", once=Period.day(tz="UTC"))
flow.step(greet, args=lambda period: {"name": period})
"""

READING = [
    ["runs", "ls"],
    ["runs", "show", "abcdef"],
    ["runs", "retry", "abcdef"],
    ["runs", "cancel", "abcdef"],
    ["why", "greet"],
    ["schedules", "ls"],
    ["schedules", "show", "x"],
    ["schedules", "pause", "x"],
    ["workers"],
    ["marks", "ls"],
    ["marks", "clear", "greet", "x"],
    ["watch", "abcdef"],
    ["events"],
    ["clear", "greet", "--yes"],
    ["reset", "greet", "--period", "2026-11-15"],
    ["tasks", "pause", "greet"],
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("ROTA_URL", "ROTA_APP"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "rota.toml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")


@pytest.mark.parametrize("url", [None, "sqlite:///no/such/folder/rota.db", "sqlite:///typo.db"])
@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_who_only_reads_creates_no_store(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], url: str | None
) -> None:
    assert command([*arguments, *(["--url", url] if url else [])]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    file = url.removeprefix("sqlite:///") if url else ".rota/rota.db"
    assert f"no store at {here / file} yet: nothing was submitted there" in err
    assert names(here) == ["rota.toml"]


def test_the_doctor_creates_no_store(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command(["doctor"])
    assert "rota.db is not there yet" in capsys.readouterr().out
    assert names(here) == ["rota.toml"]


def test_a_move_from_a_store_that_is_not_there_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["move", "--from", "sqlite:///old.db", "--to", "sqlite:///new.db"]) == 1
    assert f"no store at {here / 'old.db'} yet" in capsys.readouterr().err
    assert names(here) == ["rota.toml"]


def test_what_the_code_says_is_shown_without_a_store(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (tmp_path / "tasks.py").write_text(APP)
    before = names(tmp_path)
    for arguments, code, said in (
        (["tasks"], 0, "greet"),
        (["flows", "ls"], 0, "day"),
        (["diff"], 3, "greet"),
        (["preview"], 0, ""),
        (["lint"], 0, ""),
    ):
        done = project.rota(*arguments)
        assert (done.code, said in done.out) == (code, True), done
        assert f"no store at {project.database} yet" in done.err
        assert names(tmp_path) == before


def test_who_puts_something_in_creates_the_store(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["submit", "greet", "name=Ada", "--unknown-ok"]) == 0
    assert names(here) == [".rota", "rota.toml"]
    capsys.readouterr()
    assert command(["runs", "ls"]) == 0
    assert "greet" in capsys.readouterr().out


def test_a_submit_on_a_terminal_says_which_store_was_taken(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    arguments = ["submit", "greet", "--unknown-ok"]
    assert command(arguments) == 0
    assert f"into sqlite:///{here}/.rota/rota.db, the default store" in capsys.readouterr().err
    assert command([*arguments, "--url", "sqlite:///own.db"]) == 0
    assert capsys.readouterr().err == ""
