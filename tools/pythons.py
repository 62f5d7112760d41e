"""Finds the Pythons of this machine that rota can run on."""

import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

OLDEST = (3, 11)
ASK = "import ensurepip, json, sys, venv; print(json.dumps([*sys.version_info[:3], sys.version_info[3]]))"


@dataclass(frozen=True)
class Python:
    path: Path
    version: tuple[int, int, int]
    final: bool = True
    """Whether this is a release, and no alpha, beta or candidate."""

    @property
    def minor(self) -> str:
        return f"{self.version[0]}.{self.version[1]}"


def candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield files named `python3.N`, N of `OLDEST` or newer: on PATH, then in the versions of pyenv.

    A shim of pyenv answers only for the versions that pyenv has activated, so its versions are looked at as well.
    """
    pyenv = Path(environment.get("PYENV_ROOT") or Path(environment.get("HOME", "/")) / ".pyenv")
    folders = [Path(entry) for entry in environment.get("PATH", "").split(os.pathsep) if entry]
    for folder in (*folders, *sorted((pyenv / "versions").glob("*/bin"))):
        for path in sorted(folder.glob("python3.*")):
            named = re.fullmatch(r"python3\.(\d+)", path.name)
            if named and (3, int(named[1])) >= OLDEST and os.access(path, os.X_OK):
                yield path


def ask(path: Path) -> Python | None:
    """Start a Python and ask for its version; None if it does not start or cannot make environments."""
    try:
        done = subprocess.run([path, "-I", "-c", ASK], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    major, minor, micro, level = json.loads(done.stdout)
    return Python(path, (major, minor, micro), level == "final")


def newest(found: Iterable[Python]) -> list[Python]:
    """Keep one Python of each minor version: a release before a candidate, then the newest, then the first found."""
    best: dict[str, Python] = {}
    for python in found:
        held = best.get(python.minor)
        if held is None or (python.final, python.version) > (held.final, held.version):
            best[python.minor] = python
    return sorted(best.values(), key=lambda python: python.version)


def on_this_machine() -> list[Python]:
    return newest(python for path in candidates(os.environ) if (python := ask(path)) is not None)


def claimed(classifiers: Iterable[str]) -> list[str]:
    """Return the minor versions that the classifiers of a project name, oldest first."""
    named = (re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in classifiers)
    return sorted((found[1] for found in named if found), key=lambda minor: int(minor.split(".")[1]))
