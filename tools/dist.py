"""`make dist`: builds what a release uploads, from the last commit, and tries the wheel on every Python found here.

The wheel and the sdist are built twice, the second time from the unpacked sdist: equal bytes show that the build is
reproducible and that the sdist is complete. Only archives that pass every step reach the folder `dist`.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from tools.archives import build, differences, replace_folder, unpack
from tools.pythons import Python, claimed, on_this_machine
from tools.readme import follow

ROOT = Path(__file__).parents[1]
UNTIL = "On a schedule"
"""The section of the README before which a try of the wheel ends."""


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Return what a command prints; when the command fails, end this program with the output of the command."""
    done = subprocess.run(command, cwd=cwd or ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}")
    return done.stdout


def export(into: Path) -> int:
    """Write the files of the last commit into a folder; return the time of that commit."""
    if changes := run("git", "status", "--porcelain"):
        print(f"The archives hold the last commit, without these changes:\n{changes}", end="")
    into.mkdir()
    archive = into.with_suffix(".tar")
    run("git", "archive", "--format=tar", "-o", archive, "HEAD")
    run("tar", "-xf", archive, "-C", into)
    return int(run("git", "log", "-1", "--format=%ct"))


def build_twice(folder: Path) -> Path:
    """Build from the last commit, then from the sdist of that build; return the folder of the archives."""
    epoch = export(folder / "commit")
    first, second = folder / "first", folder / "second"
    build(folder / "commit", first, ("sdist", "wheel"), epoch)
    (sdist,) = first.glob("*.tar.gz")
    build(unpack(sdist, folder / "unpacked"), second, ("sdist", "wheel"), epoch, zone="Pacific/Chatham")
    if told := differences(first, second):
        raise SystemExit("The build is not reproducible:\n" + "\n".join(told))
    return first


def check(archives: Sequence[Path]) -> None:
    """Check the metadata of both archives, and what the wheel contains."""
    tools = Path(sys.executable).parent
    run(tools / "twine", "check", "--strict", *archives)
    run(tools / "check-wheel-contents", *(path for path in archives if path.suffix == ".whl"))


def try_wheel(wheel: Path, python: Python, folder: Path) -> None:
    """Install the wheel into an empty environment of `python`, and follow the first sections of the README there."""
    shims, project = folder / "bin", folder / "project"
    shims.mkdir(parents=True)
    project.mkdir()
    # A script and not a link: an environment made through a link takes the folder of the link for the home of Python.
    (shims / "python3").write_text(f'#!/bin/sh\nexec "{python.path}" "$@"\n')
    (shims / "python3").chmod(0o755)

    def install(environment: Path, requirements: list[str]) -> None:
        assert requirements == ["rota"], f"pip install {requirements} before the section {UNTIL!r}"
        inside = environment / "bin" / "python"
        run(inside, "-m", "pip", "install", "-qq", wheel, cwd=project)
        run(inside, "-m", "pip", "check", cwd=project)
        place = Path(run(inside, "-c", "import rota; print(rota.__file__)", cwd=project).strip())
        assert place.is_relative_to(environment), f"rota is imported from {place}, not from the wheel"

    try:
        follow((ROOT / "README.md").read_text(), project, shims, install, until=UNTIL)
    except AssertionError as problem:
        raise SystemExit(f"Python {python.minor} ({python.path}), with {wheel.name}: {problem}") from problem


def missing(pythons: Sequence[Python]) -> list[str]:
    """Return the Pythons that pyproject.toml names and this machine lacks."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = {python.minor for python in pythons}
    return [minor for minor in claimed(project["classifiers"]) if minor not in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", action="store_true", help="fail if a Python of the classifiers is not found here")
    every: bool = parser.parse_args().every
    for name in ("PYTHONPATH", "PYTHONHOME"):  # the checkout must not stand in for the wheel
        os.environ.pop(name, None)
    pythons = on_this_machine()
    if lacking := missing(pythons):
        told = f"not on this machine, though pyproject.toml names it: Python {', '.join(lacking)}"
        if every:
            raise SystemExit(told)
        print(told)
    with tempfile.TemporaryDirectory(prefix="rota-dist-") as name:
        folder = Path(name)
        built = build_twice(folder)
        archives = sorted(built.iterdir())
        print("built twice, byte for byte the same:", *(path.name for path in archives))
        check(archives)
        print("twine check --strict, check-wheel-contents: passed")
        (wheel,) = (path for path in archives if path.suffix == ".whl")
        for python in pythons:
            try_wheel(wheel, python, folder / python.minor)
            print(f"Python {'.'.join(map(str, python.version))}: the wheel does what the README says")
        replace_folder(ROOT / "dist", built)
    print("in dist:", *(path.name for path in archives))


if __name__ == "__main__":
    main()
