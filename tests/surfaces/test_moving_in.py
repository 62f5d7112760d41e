"""The commands of docs/moving-in.md, run as written."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from rota.cli import run as command
from tests.surfaces.test_readme import blocks

PAGE = Path(__file__).parents[2] / "docs" / "moving-in.md"


def test_the_commands_of_the_page_run_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_URL", f"sqlite:///{tmp_path}/rota.db")
    monkeypatch.delenv("ROTA_APP", raising=False)
    (tmp_path / "shop.crontab").write_text(blocks("crontab", PAGE)[0])
    lines = [line for block in blocks("sh", PAGE) for line in block.splitlines() if "crontab" in line]
    assert len(lines) == 5
    for line in lines:
        assert command(shlex.split(line, comments=True)[1:]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out.splitlines()[-2].startswith("sync\tfires\t")
    assert {"jobs.py", "tasks.py"} <= {path.name for path in tmp_path.iterdir()}


SHOP = """
from huey import MemoryHuey, crontab

huey = MemoryHuey("shop")


@huey.periodic_task(crontab(minute="0", hour="3"))
def nightly() -> None: ...
"""
CRONJOB = """
kind: CronJob
metadata: {name: nightly}
spec: {schedule: "0 3 * * *"}
"""
TIMER = "[Timer]\nOnCalendar=03:00\n"


@pytest.mark.parametrize("kind", ["huey", "k8s", "systemd"])
def test_other_sources_are_read_as_the_page_says(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("shop", "shop.tasks"):
        monkeypatch.setitem(sys.modules, name, sys)  # so that the end of the test takes away what it imports
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delenv("ROTA_APP", raising=False)
    for name, text in {"shop/tasks.py": SHOP, "cronjobs.yaml": CRONJOB, "units/nightly.timer": TIMER}.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (line,) = [line for block in blocks("sh", PAGE) for line in block.splitlines() if f"import {kind} " in line]
    words = shlex.split(line.replace("/etc/systemd/system", "units"))[1:]
    assert command([*words, "--json"]) == 0, capsys.readouterr().err
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["name"], row["outcome"], row["trigger"].split(" UTC")[0]) == ("nightly", "same", "cron 0 3 * * *")
