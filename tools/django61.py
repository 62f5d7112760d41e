"""Runs tests/django with Django 6.1, which needs Python 3.12, in an environment of its own: `make test-django`.

The environment is made again when its pins change. Without a Python 3.12 or newer on PATH or in pyenv, one line says
so; with `--required`, that is a failure.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

from tools.pythons import Python, on_this_machine

ROOT = Path(__file__).parents[1]
HOME = ROOT / ".venv-django61"
PINS = ROOT / "requirements" / "django61.txt"
OLDEST = (3, 12)


def python_for_django() -> Python | None:
    """Return the newest released Python that runs Django 6.1."""
    found = [python for python in on_this_machine() if python.final and python.version >= OLDEST]
    return found[-1] if found else None


def made(python: Python) -> Path:
    """Return the Python of the environment, which is made first if it is missing or has other pins."""
    stamp, inside = HOME / ".ready", HOME / "bin" / "python"
    wanted = hashlib.sha256(PINS.read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return inside
    print(f"Installing Django 6.1 and its tests into {HOME.name} ...", flush=True)
    subprocess.run([python.path, "-m", "venv", "--clear", HOME], check=True)
    pip = [str(inside), "-m", "pip", "install", "-qq", "--no-deps"]
    subprocess.run([*pip, "-r", str(PINS)], check=True)
    subprocess.run([*pip, "--no-build-isolation", "-e", str(ROOT)], check=True)
    stamp.write_text(wanted)
    return inside


def main(arguments: list[str]) -> int:
    required = "--required" in arguments
    python = python_for_django()
    if python is None:
        print("Django 6.1 is not tested: no Python 3.12 or newer was found on PATH or in pyenv")
        return 1 if required else 0
    rest = [each for each in arguments if each != "--required"] or ["-n", "2"]
    command = [str(made(python)), "-m", "pytest", "-q", "-m", "not soak", "tests/django", *rest]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
