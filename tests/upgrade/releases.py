"""The code of earlier commits, taken from the history of this clone."""

import io
import subprocess
import tarfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

BEFORE_THE_SERVICE = "39c8e65bb32c65efbfcb16eef2c505ce3ce4e4f2"
"""The commit before `rota serve` came: its stores have other tables, and neither version opens those of the other."""
FIRST_FORMAT = "8b3e4d6801fbc8fc91187147ea7d7c381731bc15"
"""The commit whose stores every later version opens and shares."""


def source_of(commit: str, folder: Path) -> Path:
    """Unpack `src` of a commit into `folder`; return what goes onto PYTHONPATH."""
    with tarfile.open(fileobj=io.BytesIO(_git(commit, "archive", "--format=tar", commit, "src"))) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def file_of(commit: str, path: str) -> str:
    """Return a file as it was in a commit."""
    return _git(commit, "show", f"{commit}:{path}").decode()


def _git(commit: str, *words: str) -> bytes:
    git = ["git", "-C", str(REPOSITORY)]
    if subprocess.run([*git, "cat-file", "-e", f"{commit}^{{commit}}"], capture_output=True, check=False).returncode:
        raise AssertionError(
            f"this clone has no commit {commit}, whose code the test needs beside today's; "
            "if it is shallow: git fetch --unshallow"
        )
    return subprocess.run([*git, *words], capture_output=True, check=True).stdout
