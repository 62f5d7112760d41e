"""On which Pythons `make dist` tries a wheel."""

import sys
from pathlib import Path

import pytest

from tools.dist import missing
from tools.pythons import OLDEST, Python, ask, candidates, claimed, newest


def executable(path: Path, text: str = "#!/bin/sh\nexit 1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_pythons_are_looked_for_on_path_and_among_the_versions_of_pyenv(tmp_path: Path) -> None:
    first = executable(tmp_path / "bin" / "python3.12")
    shim = executable(tmp_path / "shims" / "python3.13")
    version = executable(tmp_path / "pyenv" / "versions" / "3.13.1" / "bin" / "python3.13")
    for name in ("python3.10", "python3.12-config", "python3.13t", "python3", "python2.7"):
        executable(tmp_path / "bin" / name)
    (tmp_path / "bin" / "python3.14").write_text("not executable")
    environment = {
        "PATH": f"{tmp_path / 'bin'}:{tmp_path / 'none'}::{tmp_path / 'shims'}",
        "PYENV_ROOT": str(tmp_path / "pyenv"),
    }
    assert list(candidates(environment)) == [first, shim, version]


def test_without_its_variable_pyenv_is_looked_for_at_home(tmp_path: Path) -> None:
    version = executable(tmp_path / ".pyenv" / "versions" / "3.11.9" / "bin" / "python3.11")
    assert list(candidates({"HOME": str(tmp_path)})) == [version]


def test_a_python_says_its_version() -> None:
    python = ask(Path(sys.executable))
    assert python is not None
    assert python.version == sys.version_info[:3]
    assert python.minor == f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 1\n", "not a program"])
def test_a_shim_that_starts_no_python_is_passed_over(tmp_path: Path, text: str) -> None:
    assert ask(executable(tmp_path / "python3.12", text)) is None
    assert ask(tmp_path / "gone") is None


def test_one_python_of_each_minor_version_is_kept_the_newest_release() -> None:
    old, new = Python(Path("a"), (3, 11, 2)), Python(Path("b"), (3, 11, 10))
    same = Python(Path("c"), (3, 11, 10))
    candidate, release = Python(Path("d"), (3, 14, 0), final=False), Python(Path("e"), (3, 9, 0))
    assert newest([old, candidate, new, same, release]) == [release, new, candidate]
    assert newest([Python(Path("f"), (3, 14, 1), final=False), Python(Path("g"), (3, 14, 0))])[0].path == Path("g")


def test_the_pythons_that_a_project_claims_are_in_order() -> None:
    lines = ["3", "3 :: Only", "3.13", "3.9", "3.11"]
    assert claimed(f"Programming Language :: Python :: {line}" for line in lines) == ["3.9", "3.11", "3.13"]


def test_a_claimed_python_that_the_machine_lacks_is_named() -> None:
    assert missing([]) == missing([Python(Path("a"), (3, 99, 0))])
    assert missing([])[0] == ".".join(map(str, OLDEST))
    assert missing([Python(Path("a"), (*OLDEST, 0))]) == missing([])[1:]
