"""Which folder is the project's: whose files are obeyed, and where the default store lies."""

import os
from pathlib import Path

import pytest

from rota import Rota
from rota.cli.apps import Target
from rota.errors import InvalidOptions
from rota.settings import load
from rota.settings import project as places

STRANGER = 54_321


def give_away(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To another user, who is not root. Who may not do that becomes another user instead."""
    if os.geteuid() == 0:
        os.chown(file, STRANGER, -1)
    else:
        monkeypatch.setattr(places, "trusted_users", lambda: {0, STRANGER})


def below(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    inner = folder / "src" / "deep"
    inner.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(inner)
    return inner


@pytest.mark.parametrize("name", ["rota.toml", "pyproject.toml"])
def test_a_file_of_another_user_in_a_parent_folder_is_not_obeyed_and_nothing_is_imported(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    table = "" if name == "rota.toml" else "[tool.rota]\n"
    (folder / "pyproject.toml").unlink()
    (folder / name).write_text(f'{table}app = "trap:app"\ntz = "Europe/Paris"\n')
    (folder / "trap.py").write_text("raise AssertionError('imported')")
    inner = below(folder, monkeypatch)
    give_away(folder / name, monkeypatch)
    assert load().tz == "UTC"
    assert Target().reference is None
    with pytest.raises(InvalidOptions, match="no app"):
        Target().app()
    assert Rota().backend.url == f"sqlite:///{inner}/.rota/rota.db"
    (told,) = {record.getMessage() for record in caplog.records}
    assert f"{folder / name} is not obeyed: it belongs to another user" in told
    assert f"ROTA_TRUST={folder}" in told
    monkeypatch.setenv("ROTA_TRUST", f"/elsewhere{os.pathsep}{folder}")
    assert load().tz == "Europe/Paris"


def test_a_file_that_all_may_write_is_not_obeyed_from_below(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "rota.toml").write_text('tz = "Europe/Paris"')
    (folder / "rota.toml").chmod(0o666)
    assert load().tz == "Europe/Paris", "who works in a folder has chosen it"
    below(folder, monkeypatch)
    assert load().tz == "UTC"


def test_a_strange_file_beside_ours_is_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pyproject.toml").write_text('[tool.rota]\nname = "shop"\n')
    (folder / "rota.toml").write_text('tz = "Europe/Paris"')
    (folder / "rota.toml").chmod(0o666)
    below(folder, monkeypatch)
    assert (load().name, load().tz) == ("shop", "UTC")


def test_who_became_root_by_sudo_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    assert places.trusted_users() == {0, STRANGER}
    monkeypatch.setattr(os, "geteuid", lambda: 7)
    assert places.trusted_users() == {0, 7}


def test_without_a_project_file_the_store_of_a_parent_folder_is_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "pyproject.toml").unlink()
    inner = below(folder, monkeypatch)
    assert Rota().backend.url == f"sqlite:///{inner}/.rota/rota.db", "none is there: here"
    (folder / ".rota").mkdir()
    (folder / ".rota" / "rota.db").touch()
    assert Rota().backend.url == f"sqlite:///{folder}/.rota/rota.db"
    (folder / "src" / "rota.toml").touch()
    assert Rota().backend.url == f"sqlite:///{folder}/src/.rota/rota.db", "a project file says more than a store"


def test_the_store_of_another_user_in_a_parent_folder_is_not_taken(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "pyproject.toml").unlink()
    (folder / ".rota").mkdir()
    (folder / ".rota" / "rota.db").touch()
    inner = below(folder, monkeypatch)
    give_away(folder / ".rota" / "rota.db", monkeypatch)
    assert Rota().backend.url == f"sqlite:///{inner}/.rota/rota.db"
