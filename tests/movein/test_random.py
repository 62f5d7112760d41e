"""Random schedules of each source: rota fires when the engine of the source does, or the plan names the difference."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

import pytest

from rota.domain.triggers import Cron
from rota.movein.crontab import read_crontab
from rota.movein.fires import AROUND, clock_changes, fires_of, prove
from tests.domain.triggers.oracle import fires
from tests.movein.randoms import ZONES, expression

NOW = datetime(2026, 11, 17, 9, 30, tzinfo=UTC)
SEED = 20261117
FEW, MANY = 40, 1000
COUNTS = [pytest.param(FEW, 300, id="few"), pytest.param(MANY, 60_000, marks=pytest.mark.soak, id="many")]


@pytest.mark.parametrize(("count", "most"), COUNTS)
def test_cron_lines_fire_as_croniter_says_and_at_clock_changes_as_cron_does(
    tmp_path: Path, count: int, most: int
) -> None:
    chance = Random(SEED)
    lines = [f"CRON_TZ={chance.choice(ZONES)}\n{expression(chance)} true" for _ in range(count)]
    path = tmp_path / "crontab"
    path.write_text("\n".join(lines))
    source = read_crontab(path, None, "", system=False)
    assert len(source.rows) == count
    for row in source.rows:
        if row.refused:
            assert "never comes" in row.refused
            continue
        proof = prove(row, NOW, most)
        assert proof is not None
        assert not proof.unnamed, row
        assert isinstance(row.trigger, Cron)
        change = Random(row.says).choice(clock_changes(row.tz, NOW, NOW + timedelta(days=400)) or [None])
        if change is not None:
            window = change.at - AROUND, change.at + AROUND
            assert list(fires_of(row.trigger, *window)) == fires(row.trigger.expr, ZoneInfo(row.tz), *window), row
