"""Runs tests/django with another Django or Python than .venv has, each in an environment of its own.

`make test-django` takes the newest of both. `--every` goes through all pairs that this machine can make: Django 5.2,
6.0 and 6.1 with each Python from 3.11 on, on PATH or in pyenv. An environment is made again when its pins change.
Without a Python 3.12 or newer, one line says so; with `--required`, that is a failure. Other words go to pytest.
"""

import hashlib
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.pythons import Python, on_this_machine

ROOT = Path(__file__).parents[1]
PINS = ROOT / "requirements"
OLDEST = {"5.2": (3, 11), "6.0": (3, 12), "6.1": (3, 12)}
"""The oldest Python of each Django."""
NEWEST = "6.1"


@dataclass(frozen=True)
class Pair:
    """A Django with a Python."""

    django: str
    python: Python
    home: Path
    """The folder of the environment."""

    def __str__(self) -> str:
        return f"Django {self.django} with Python {self.python.minor}"

    @property
    def pins(self) -> str:
        """What the environment has: django61.txt, with the lines of another Django in place of its own."""
        pins = (PINS / "django61.txt").read_text()
        if self.django == NEWEST:
            return pins
        lines = [line for line in pins.splitlines() if not line.startswith("Django==")]
        return "\n".join(lines) + "\n" + (PINS / f"django{self.django.replace('.', '')}.txt").read_text()


def newest(pythons: Sequence[Python]) -> Pair | None:
    """Return the newest Django with the newest released Python; None if that Python is too old."""
    found = [python for python in pythons if python.final and python.version >= OLDEST[NEWEST]]
    return Pair(NEWEST, found[-1], ROOT / ".venv-django61") if found else None


def pairs(pythons: Sequence[Python]) -> list[Pair]:
    """Return every Django with every released Python that can run it."""
    return [
        Pair(django, python, ROOT / ".cache" / f"django-{django}-python-{python.minor}")
        for django, oldest in OLDEST.items()
        for python in pythons
        if python.final and python.version >= oldest
    ]


def made(pair: Pair) -> Path:
    """Return the Python of the environment, which is made first if it is missing or has other pins."""
    stamp, inside = pair.home / ".ready", pair.home / "bin" / "python"
    wanted = hashlib.sha256(pair.pins.encode() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return inside
    print(f"Installing {pair} and its tests into {pair.home.name} ...", flush=True)
    subprocess.run([pair.python.path, "-m", "venv", "--clear", pair.home], check=True)
    pins = pair.home / "pins.txt"
    pins.write_text(pair.pins)
    pip = [str(inside), "-m", "pip", "install", "-qq", "--no-deps"]
    subprocess.run([*pip, "-r", str(pins)], check=True)
    subprocess.run([*pip, "--no-build-isolation", "-e", str(ROOT)], check=True)
    stamp.write_text(wanted)
    return inside


def exit_code(pair: Pair, words: Sequence[str]) -> int:
    """Run the tests of rota.django with the pair, and return the exit code of pytest."""
    print(f"Testing rota.django: {pair}", flush=True)
    command = [str(made(pair)), "-m", "pytest", "-q", "-m", "not soak", "tests/django", *(words or ("-n", "auto"))]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def main(arguments: list[str]) -> int:
    words = [each for each in arguments if each not in ("--required", "--every")]
    pythons = on_this_machine()
    if "--every" in arguments:
        return max([exit_code(pair, words) for pair in pairs(pythons)], default=1)
    pair = newest(pythons)
    if pair is None:
        print("Django 6.1 is not tested: no Python 3.12 or newer was found on PATH or in pyenv")
        return 1 if "--required" in arguments else 0
    return exit_code(pair, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
