"""Which folder is the project's: whose files are obeyed, and where the default store lies."""

import os
import sys
from pathlib import Path

import pytest

from rota import Rota
from rota.cli.options.target import Target
from rota.errors import InvalidOptions
from rota.settings import load, trust

STRANGER = 54_321


def give_away(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To another user, who is not root. Who may not do that becomes another user instead."""
    if os.geteuid() == 0:
        os.chown(file, STRANGER, -1, follow_symlinks=False)
    else:
        monkeypatch.setattr(trust, "trusted_users", lambda: {0, STRANGER})


def below(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    inner = folder / "src" / "deep"
    inner.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(inner)
    return inner


def lay_a_trap(folder: Path, name: str = "rota.toml") -> None:
    table = "" if name == "rota.toml" else "[tool.rota]\n"
    (folder / "pyproject.toml").unlink(missing_ok=True)
    (folder / name).write_text(f'{table}app = "trap:app"\ntz = "Europe/Paris"\n')
    (folder / "trap.py").write_text("raise AssertionError('imported')")


def assert_not_obeyed() -> None:
    assert load().tz == "UTC"
    assert Target().reference is None
    with pytest.raises(InvalidOptions, match="no app"):
        Target().app()


@pytest.mark.parametrize("here", [True, False], ids=["here", "above"])
@pytest.mark.parametrize("name", ["rota.toml", "pyproject.toml"])
def test_a_file_of_another_user_is_not_obeyed_and_nothing_is_imported(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str, here: bool
) -> None:
    lay_a_trap(folder, name)
    inner = folder if here else below(folder, monkeypatch)
    give_away(folder / name, monkeypatch)
    assert_not_obeyed()
    assert Rota().backend.url == f"sqlite:///{inner}/.rota/rota.db"
    (told,) = {record.getMessage() for record in caplog.records}
    assert f"{folder / name} is not obeyed, because {folder / name} belongs to another user" in told
    assert told.endswith(f"if you trust the code in {folder}, set ROTA_TRUST={folder}")
    monkeypatch.setenv("ROTA_TRUST", f"/elsewhere{os.pathsep}{folder}")
    assert load().tz == "Europe/Paris"


@pytest.mark.parametrize("here", [True, False], ids=["here", "above"])
@pytest.mark.parametrize("name", ["rota.toml", "."], ids=["file", "folder"])
@pytest.mark.parametrize("mode", [0o777, 0o1777], ids=["plain", "sticky"])
def test_what_all_may_write_to_is_not_obeyed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, here: bool, mode: int
) -> None:
    lay_a_trap(folder)
    (folder / name).chmod(mode)
    if not here:
        below(folder, monkeypatch)
    assert_not_obeyed()
    monkeypatch.setenv("ROTA_TRUST", str(folder))
    assert load().tz == "Europe/Paris"


@pytest.mark.parametrize("here", [True, False], ids=["here", "above"])
def test_a_file_of_ours_in_the_folder_of_another_user_is_not_obeyed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, here: bool
) -> None:
    lay_a_trap(folder)
    if not here:
        below(folder, monkeypatch)
    give_away(folder, monkeypatch)
    if os.geteuid() == 0:
        assert (folder / "rota.toml").stat().st_uid == 0, "only the folder is another user's"
    assert_not_obeyed()


@pytest.mark.parametrize("given", ["link", "target", "folder of the target", "second link"])
def test_a_link_counts_as_much_as_what_it_leads_to(folder: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    lay_a_trap(folder)
    elsewhere, between = folder / "elsewhere", folder / "between"
    elsewhere.mkdir()
    target, link = (folder / "rota.toml").rename(elsewhere / "rota.toml"), folder / "rota.toml"
    between.symlink_to(target)
    link.symlink_to("between")
    assert load().tz == "Europe/Paris", "all of it is this user's"
    strange = {"link": link, "target": target, "folder of the target": elsewhere, "second link": between}
    give_away(strange[given], monkeypatch)
    assert_not_obeyed()


def test_a_strange_file_beside_ours_is_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pyproject.toml").write_text('[tool.rota]\nname = "shop"\n')
    (folder / "rota.toml").write_text('tz = "Europe/Paris"')
    (folder / "rota.toml").chmod(0o666)
    below(folder, monkeypatch)
    assert (load().name, load().tz) == ("shop", "UTC")


def test_the_modules_of_another_user_here_do_not_replace_those_of_the_project_above(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", [*sys.path])
    (folder / "rota.toml").write_text('app = "ours_above:app"')
    (folder / "ours_above.py").write_text("from rota import Rota\napp = Rota('memory://', name='ours')\n")
    inner = below(folder, monkeypatch)
    (inner / "ours_above.py").write_text("raise AssertionError('imported')")
    inner.chmod(0o777)
    assert Target().app().settings.name == "ours"


def test_who_became_root_by_sudo_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    assert trust.trusted_users() == {0, STRANGER}
    monkeypatch.setattr(os, "geteuid", lambda: 7)
    assert trust.trusted_users() == {0, 7}


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


@pytest.mark.parametrize("given", [".rota/rota.db", ".rota", "."])
def test_the_store_of_another_user_in_a_parent_folder_is_not_taken(
    folder: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    (folder / "pyproject.toml").unlink()
    (folder / ".rota").mkdir()
    (folder / ".rota" / "rota.db").touch()
    inner = below(folder, monkeypatch)
    give_away(folder / given, monkeypatch)
    assert Rota().backend.url == f"sqlite:///{inner}/.rota/rota.db"
