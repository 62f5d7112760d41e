"""A harness that lives elsewhere, given our adapter; what it says goes into RESULTS.md under a heading of its own."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import HARNESS, machine, write_section
from benchmarks.stage import ROOT

ADAPTER = Path(__file__).with_name("adapter.py")
OUT = ROOT / "build" / "harness"


def run_harness(harness: Path, more: Sequence[str]) -> int:
    """`more` goes to the harness as it is, after ours: so it wins."""
    OUT.mkdir(parents=True, exist_ok=True)
    for stale in ("results.json", "RESULTS.md"):
        (OUT / stale).unlink(missing_ok=True)
    options = [
        f"--adapter={ADAPTER}={sys.executable}",
        "--peers=huey-sqlite",
        "--workloads=w1,w2,w3,w8",
        "--repeat=3",
        f"--out={OUT / 'results.json'}",
        *more,
    ]
    done = subprocess.run([sys.executable, str(harness / "run.py"), *options], cwd=ROOT)
    if done.returncode:
        return done.returncode
    report = (OUT / "RESULTS.md").read_text()
    if "### Failures" in report:
        print("some workloads failed: RESULTS.md stays as it was", file=sys.stderr)
        return 1
    tables = report.removeprefix("# Results").strip()
    write_section(HARNESS, f"`make bench HARNESS=path`, {machine()}\n\n{tables}")
    return 0
