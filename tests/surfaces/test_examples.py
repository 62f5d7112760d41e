"""The examples start with one command, and say what their READMEs say."""

import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.processes import Process

ROOT = Path(__file__).parents[2]
RACE_DAY = ROOT / "examples" / "race_day"


def test_the_day_at_the_races_plays_as_its_readme_shows() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.race_day"], cwd=ROOT, capture_output=True, text=True, timeout=100, check=True
    )
    assert done.stderr == ""
    (shown,) = re.findall(r"^```text\n(.*?)^```", (RACE_DAY / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert done.stdout == shown


def test_the_day_at_the_races_runs_live_on_a_store_that_others_can_look_into(tmp_path: Path) -> None:
    env = {"ROTA_URL": f"sqlite:///{tmp_path / 'rota.db'}"}
    with Process("-m", "examples.race_day", "live", env=env) as live:
        live.wait_for("today: clear_log accepted, today accepted")
        live.wait_for("is prepared")
        live.signal(signal.SIGINT)
        assert live.wait() == 0
    with Process("-m", "examples.race_day", "live", env=env) as again:
        again.wait_for("today: clear_log already_done")


def test_what_it_does_not_know_is_answered_with_what_it_does() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.race_day", "fast"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.startswith("`python -m examples.race_day` plays the day")) == (2, True)
