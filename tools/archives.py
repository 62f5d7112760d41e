"""Builds the wheel and the sdist of a source tree, and compares what two builds made."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

Target = Literal["wheel", "sdist"]


def build(source: Path, into: Path, targets: Sequence[Target], epoch: int | None = None, zone: str = "UTC") -> None:
    """Build `targets` of the tree `source` into the folder `into`, with the hatchling of this environment.

    `epoch` is the time stamp of every file in the archives, in seconds since 1970. `zone` is the time zone of the
    building process, which must not show in the archives.
    """
    chosen = [word for target in targets for word in ("-t", target)]
    stamp = {} if epoch is None else {"SOURCE_DATE_EPOCH": str(epoch)}
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", *chosen, "-d", into.absolute()],
        cwd=source,
        env={**os.environ, **stamp, "TZ": zone},
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode:
        raise RuntimeError(f"hatchling cannot build {source}:\n{done.stdout}{done.stderr}")


def unpack(sdist: Path, into: Path) -> Path:
    """Unpack an sdist; return the one folder that it holds."""
    with tarfile.open(sdist) as archive:
        archive.extractall(into, filter="data")
    (folder,) = into.iterdir()
    return folder


def members(archive: Path) -> dict[str, bytes]:
    """Return the name and the content of each file in a wheel or an sdist."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {info.filename: wheel.read(info) for info in wheel.infolist() if not info.is_dir()}
    with tarfile.open(archive) as sdist:
        opened = ((info.name, sdist.extractfile(info)) for info in sdist if info.isfile())
        return {name: file.read() for name, file in opened if file is not None}


def differences(one: Path, other: Path) -> list[str]:
    """Say how two folders of archives differ, one sentence per difference; an empty list means equal bytes."""
    said: list[str] = []
    names = {path.name for folder in (one, other) for path in folder.iterdir()}
    for name in sorted(names):
        first, second = one / name, other / name
        if not first.exists() or not second.exists():
            said.append(f"{name} is only in one of the two builds")
        elif first.read_bytes() != second.read_bytes():
            said.extend(_inside(first, second))
    return said


def _inside(first: Path, second: Path) -> list[str]:
    ours, theirs = members(first), members(second)
    changed = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    if not changed:
        return [f"{first.name}: the same files, but other bytes: time stamps, modes, their order or the compression"]
    return [f"{first.name}: {name} differs" for name in changed]


def replace_folder(folder: Path, archives: Path) -> None:
    """Let `folder` hold the files of the folder `archives` and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(archives, folder)
