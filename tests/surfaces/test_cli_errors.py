"""What `rota` says and exits with when the world is not as it should be."""

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.surfaces.project import Done, Project, sentence

NOBODY = 65534

AS_NOBODY = f"""
import contextlib, io, os, sys, tempfile
import rota.cli
url, *arguments = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
    rota.cli.run([*arguments, "--url", f"sqlite:///{{folder}}/rehearsal.db"])
if os.getuid() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
sys.exit(rota.cli.run([*arguments, "--url", url]))
"""
"""Rehearses before it drops its rights: the interpreter may lie where nobody else can import from."""


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A folder that everybody may enter and nobody but root may write; pytest's own may not be entered."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)


def as_nobody(database: Path, *arguments: str) -> Done:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ROTA_")}
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, f"sqlite:///{database}", *arguments],
        cwd=tempfile.gettempdir(),
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("command", [["runs", "ls"], ["submit", "greet", "name=Ada"], ["migrate"], ["tasks"]])
def test_a_corrupt_file_is_one_sentence_and_exit_1(project: Project, command: list[str]) -> None:
    project.database.write_bytes(b"this is no database, " * 1000)

    said = sentence(project.rota(*command), code=1)

    assert f"{project.database} is not a sound SQLite database" in said


@pytest.mark.parametrize("command", [["runs", "ls"], ["submit", "greet", "name=Ada"], ["migrate"], ["worker"]])
def test_a_schema_from_the_future_is_one_sentence_and_exit_1(project: Project, command: list[str]) -> None:
    assert project.rota("migrate").code == 0
    with sqlite3.connect(project.database) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()

    said = sentence(project.rota(*command), code=1)

    assert "has schema 99, written by a newer rota" in said


def test_a_folder_without_rights_is_one_sentence_and_exit_1(read_only: Path) -> None:
    flat, deep = read_only / "rota.db", read_only / ".rota" / "rota.db"

    said = sentence(as_nobody(flat, "submit", "greet", "--unknown-ok"), code=1)
    below = sentence(as_nobody(deep, "submit", "greet", "--unknown-ok"), code=1)

    assert f"{flat} cannot be opened" in said
    assert f"the folder of {deep} cannot be made" in below


def test_the_doctor_finds_a_folder_without_rights(read_only: Path) -> None:
    done = as_nobody(read_only / "rota.db", "doctor")

    assert done.code == 1
    folder = next(row for row in done.rows if row["check"] == "folder")
    assert (folder["verdict"], folder["detail"]) == ("fail", f"{read_only} may not be written")


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("nowhere:app", "there is no module nowhere in "),
        ("broken:app", "ZeroDivisionError: division by zero"),
        ("broken:app", "broken.py, line 2)"),
        ("leaves:app", "SystemExit: 3"),
        ("tasks:nothing", "nothing in tasks is missing; its apps are: app"),
        ("tasks:greet", "greet in tasks is a Task, not a Rota"),
        (":app", "names no app"),
    ],
)
def test_an_app_that_cannot_be_had_is_one_sentence_and_exit_2(project: Project, reference: str, says: str) -> None:
    (project.folder / "broken.py").write_text("from rota import Rota\n1 / 0\n")
    (project.folder / "leaves.py").write_text("import sys\nsys.exit(3)\n")

    assert says in sentence(project.rota("tasks", "-A", reference), code=2)


def test_without_an_app_only_what_needs_one_is_refused(project: Project) -> None:
    (project.folder / "pyproject.toml").write_text("")

    assert sentence(project.rota("worker"), code=2) == (
        'rota: no app: name it in rota.toml (app = "jobs:app"), with -A jobs:app, in ROTA_APP, '
        "or as app under [tool.rota] in pyproject.toml\n"
    )
    assert project.rota("migrate").code == 0
    assert project.rota("runs", "ls").code == 0
    assert project.rota("tasks", ROTA_APP="tasks").code == 0


def test_a_project_file_that_cannot_be_read_is_named(project: Project) -> None:
    (project.folder / "rota.toml").write_text("app = ")

    assert f"{project.folder / 'rota.toml'} cannot be read" in sentence(project.rota("tasks"), code=2)


def test_debugging_shows_the_traceback(project: Project) -> None:
    flag = project.rota("submit", "gret", "--debug")
    variable = project.rota("submit", "gret", ROTA_DEBUG="1")

    for done in (flag, variable):
        assert done.code == 2
        assert done.err.startswith("Traceback")
        assert "rota: no task gret" in done.err.splitlines()[-1]


@pytest.mark.parametrize("arguments", [["--help"], ["runs", "ls", "--help"], ["--version"], []])
def test_help_goes_well(project: Project, arguments: list[str]) -> None:
    done = project.rota(*arguments)

    assert (done.code, done.err) == (0, "")
    assert "rota" in done.out


def test_a_reader_that_leaves_early_is_no_error(project: Project) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "rota", "tasks"],
            cwd=project.folder,
            env=project.environment,
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writer)

    assert done.stderr == b""


def test_a_worker_of_an_app_that_is_switched_off_says_so(project: Project) -> None:
    said = sentence(project.rota("worker", ROTA_ENABLED="false"), 2)
    assert "switched off here (enabled=false from ROTA_ENABLED)" in said


def test_a_second_ctrl_c_is_no_unheard_exception(project: Project) -> None:
    """Whichever of the tasks it breaks into: asyncio complains through its own log."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_TWICE], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (130, "")


INTERRUPTED_TWICE = """
import asyncio, gc, os, signal, sys
import rota.cli, rota.cli.tree

async def twice():
    asyncio.create_task(interrupted())
    await asyncio.sleep(3600)

async def interrupted():
    signal.raise_signal(signal.SIGINT)  # cancels the main task
    signal.raise_signal(signal.SIGINT)  # breaks into this one

def launch(arguments):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asyncio.run(twice())

rota.cli.tree.launch = launch
code = rota.cli.run([])
gc.collect()
sys.exit(code)
"""
