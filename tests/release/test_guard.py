"""`make bench ARGS=--guard` fails when rota has become slower beside a bare loop, and only then."""

from pathlib import Path

import msgspec
import pytest

from benchmarks import guard

NAMES = ("memory: submit in bulk", "memory: drain")
QUICK = ["--stores", "memory", "--rounds", "1", "--runs", "100"]


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "guard.json"
    monkeypatch.setattr(guard, "RECORD", path)
    return path


@pytest.mark.parametrize(("share", "code", "marks"), [(1e-9, 0, 0), (1e9, 1, 2)])
def test_a_speed_that_fell_fails_the_guard(
    record: Path, share: float, code: int, marks: int, capsys: pytest.CaptureFixture[str]
) -> None:
    record.write_bytes(msgspec.json.encode(dict.fromkeys(NAMES, share)))
    assert guard.guard(QUICK) == code
    assert capsys.readouterr().out.count("FELL") == marks


def test_a_quarter_may_be_lost_and_no_more() -> None:
    slower = [guard.Speed("drain", rota, 3.0, recorded=0.3) for rota in (13.3, 13.4)]
    assert [speed.fell for speed in slower] == [False, True]


def test_ratios_are_written_down_when_that_is_asked_for(record: Path) -> None:
    assert guard.guard(QUICK) == 0
    assert not record.exists()
    assert guard.guard([*QUICK, "--record"]) == 0
    assert msgspec.json.decode(record.read_bytes()).keys() == set(NAMES)


def test_the_recorded_ratios_are_those_of_every_store() -> None:
    recorded = msgspec.json.decode(guard.RECORD.read_bytes(), type=dict[str, float])
    assert recorded.keys() == {f"{store}: {what}" for store in guard.STORES for what in ("submit in bulk", "drain")}
