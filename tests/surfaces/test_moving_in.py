"""The commands of docs/moving-in.md, run as written."""

import shlex
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
