"""The examples start with one command, and say what their READMEs say."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import Process

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["race_day", "context_app"])
def test_a_story_plays_as_its_readme_shows(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"examples.{name}"], cwd=ROOT, capture_output=True, text=True, timeout=100, check=True
    )
    assert done.stderr == ""
    readme = (ROOT / "examples" / name / "README.md").read_text()
    (shown,) = re.findall(r"^```text\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
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


@pytest.mark.parametrize("name", ["race_day", "context_app"])
def test_what_an_example_does_not_know_is_answered_with_what_it_does(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"examples.{name}", "fast"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.startswith(f"`python -m examples.{name}` plays ")) == (2, True)
