"""Debian packages by name, fetched and unpacked without root."""

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path


class NotFetched(Exception):
    """A package cannot be fetched or unpacked here."""


def run(
    command: list[str | Path], cwd: Path | None = None, env: Mapping[str, str] | None = None, patience: float = 600
) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "LC_ALL": "C", **(env or {})}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=patience, stdin=subprocess.DEVNULL
    )


class Debian:
    """Packages by name, fetched and unpacked without root."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self._archives = folder / "archives"
        self._options: list[str | Path] = []
        self._had: set[str] = set()
        self._archives.mkdir(parents=True, exist_ok=True)
        self._lists = folder / "lists"

    def update(self) -> None:
        """Fetch the lists of packages into a folder of our own: those of a fresh machine are empty."""
        (self._lists / "partial").mkdir(parents=True, exist_ok=True)
        self._options = ["-o", f"Dir::State::lists={self._lists}", "-o", f"Dir::Cache={self._lists}"]
        done = run(["apt-get", *self._options, "update"])
        if done.returncode:
            raise NotFetched(f"apt-get update: {last(done.stderr)}")

    def fetch(self, names: Iterable[str]) -> None:
        wanted = [name for name in names if name not in self._had]
        done = run(["apt-get", *self._options, "download", *wanted], cwd=self._archives)
        if done.returncode and not self._options:
            self.update()
            done = run(["apt-get", *self._options, "download", *wanted], cwd=self._archives)
        if done.returncode:
            raise NotFetched(f"apt-get download {' '.join(wanted)}: {last(done.stderr)}")
        self._had.update(wanted)
        for archive in self._archives.glob("*.deb"):
            unpacked = run(["dpkg", "-x", archive, self.root])
            if unpacked.returncode:
                raise NotFetched(f"dpkg -x {archive.name}: {last(unpacked.stderr)}")
            archive.unlink()

    def libraries_of(self, names: Iterable[str]) -> list[str]:
        """Return the libraries on which these packages depend, but those that the machine or this folder has."""
        said = run(["apt-cache", *self._options, "depends", "--important", *names]).stdout
        wanted = sorted({name for name in re.findall(r"Depends: (lib[^\s:<]+)", said) if name not in self._had})
        return [name for name in wanted if not self._installed(name)]

    def _installed(self, name: str) -> bool:
        return "ok installed" in run(["dpkg-query", "-W", "-f", "${Status}", name]).stdout


def last(text: str) -> str:
    return (text.strip().splitlines() or ["no word"])[-1]
