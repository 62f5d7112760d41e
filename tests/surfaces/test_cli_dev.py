"""`rota dev`: the worker starts again when the code changes."""

import signal
from pathlib import Path

import pytest

from rota.cli.worker.changes import Changes, snapshot
from tests.surfaces.project import TASKS, Project, line_with, sentence

ONE_MORE = "\n\n@app.task\ndef one_more() -> None: ...\n"


def test_a_change_of_the_code_starts_the_worker_again(project: Project) -> None:
    tasks = project.folder / "tasks.py"
    with project.start("dev") as dev:
        line_with(dev, f"rota dev: watching {project.folder.resolve()}")
        line_with(dev, "rota worker: 4 tasks")
        tasks.write_text(TASKS + ONE_MORE)
        line_with(dev, "rota dev: tasks.py changed")
        line_with(dev, "rota worker: 5 tasks")
        tasks.write_text(TASKS + "\n1 / 0\n")
        line_with(dev, "ZeroDivisionError")
        line_with(dev, "it starts again when a file changes")
        tasks.write_text(TASKS)
        line_with(dev, "rota worker: 4 tasks")
        dev.send_signal(signal.SIGINT)
        rest, _ = dev.communicate(timeout=60)

    assert dev.returncode == 0, rest
    assert rest.rstrip().endswith("stopped")


def test_without_an_app_there_is_nothing_to_start(project: Project) -> None:
    (project.folder / "pyproject.toml").write_text("")

    assert "no app: name it in rota.toml" in sentence(project.rota("dev"), code=2)


@pytest.mark.parametrize("told", [True, False])
async def test_changes_are_seen_with_and_without_watchfiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    monkeypatch.setattr("rota.cli.worker.changes.watchfiles_installed", lambda: told)
    monkeypatch.setattr("rota.cli.worker.changes.SCAN_EVERY", 0.01)
    (tmp_path / "gone.py").touch()
    changes = Changes(tmp_path)

    (tmp_path / "gone.py").unlink()
    (tmp_path / "rota.toml").touch()
    (tmp_path / "notes.txt").touch()
    assert await changes.next() == ["gone.py", "rota.toml"]
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "new.py").touch()
    assert await changes.next() == ["deep/new.py"]
    await changes.close()


def test_what_is_not_the_users_code_is_not_looked_at(tmp_path: Path) -> None:
    for name in (".venv", ".git", "__pycache__", ".rota", "node_modules", "package"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "module.py").touch()
    (tmp_path / "dangling.py").symlink_to(tmp_path / "nowhere.py")

    assert list(snapshot(tmp_path)) == [str(tmp_path / "package" / "module.py")]
