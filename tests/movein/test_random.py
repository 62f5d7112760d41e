"""Random schedules of each source: rota fires when the engine of the source does, or the plan names the difference."""

import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

import pytest
from apscheduler.schedulers.background import BackgroundScheduler  # type: ignore[import-untyped]
from apscheduler.triggers.cron import CronTrigger  # type: ignore[import-untyped]

from rota.domain.triggers import Cron
from rota.movein.apscheduler import read_scheduler
from rota.movein.celery_cron import crontab_row
from rota.movein.crontab import read_crontab
from rota.movein.fires import AROUND, clock_changes, fires_of, prove
from rota.movein.plan import Row
from tests.domain.triggers.oracle import fires
from tests.movein.randoms import ZONES, expression

NOW = datetime(2026, 11, 17, 9, 30, tzinfo=UTC)
FEW, MANY = 40, 1000
COUNTS = [pytest.param(FEW, 300, id="few"), pytest.param(MANY, 60_000, marks=pytest.mark.soak, id="many")]


@pytest.mark.parametrize(("count", "most"), COUNTS)
def test_cron_lines_fire_as_croniter_says_and_at_clock_changes_as_cron_does(
    tmp_path: Path, count: int, most: int, search_seed: int
) -> None:
    chance = Random(search_seed)
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


def celery_fields(chance: Random) -> dict[str, str]:
    minute, hour, day, month, weekday = expression(chance).split()
    wrapped = chance.choice([hour, hour, f"{chance.randint(12, 23)}-{chance.randint(0, 11)}/{chance.randint(1, 3)}"])
    named = chance.choice([weekday, weekday, "mon-fri", "sat-tue", "sunday"])
    return {"minute": minute, "hour": wrapped, "day_of_month": day, "month_of_year": month, "day_of_week": named}


@pytest.mark.parametrize(("count", "most"), COUNTS)
def test_crontabs_of_celery_fire_as_celery_says(count: int, most: int, search_seed: int) -> None:
    chance, differing = Random(search_seed), 0
    for number in range(count):
        tz, fields = chance.choice(ZONES), celery_fields(chance)
        bare = Row(name=f"row-{number}", where="", says=f"{fields} {tz}", tz=tz, task="x")
        row = crontab_row(bare, fields, NOW)
        if row.refused:
            assert "never comes" in row.refused or "256" in row.refused, row
            continue
        proof = prove(row, NOW, most)
        assert proof is not None
        assert not proof.unnamed, (row, proof.unnamed)
        assert all(each.why for each in row.differences)
        differing += bool(row.differences)
    assert differing >= count // 100


def apscheduler_fields(chance: Random) -> dict[str, str]:
    minute, hour, day, month, weekday = expression(chance).split()
    fields = {"minute": minute, "hour": hour, "day": day, "month": month, "day_of_week": weekday}
    fields["day"] = chance.choice([day, day, "last", "2nd fri", "last sun", "1st mon,15", "3-9,last"])
    given = {name: text for name, text in fields.items() if chance.random() < 0.8}
    extra = {"week": "*/2", "second": "30", "year": "2027", "day_of_week": "mon-wed"}
    given |= {name: text for name, text in extra.items() if chance.random() < 0.1}
    return given or {"hour": "3"}


@pytest.mark.parametrize(("count", "most"), COUNTS)
def test_cron_triggers_of_apscheduler_fire_as_it_says(count: int, most: int, search_seed: int) -> None:
    chance, differing = Random(search_seed), 0
    scheduler = BackgroundScheduler()
    for number in range(count):
        fields = apscheduler_fields(chance)
        with suppress(ValueError):  # a step beyond the range, which APScheduler refuses
            trigger = CronTrigger(**fields, timezone=ZoneInfo(chance.choice(ZONES)))
            scheduler.add_job(os.getpid, trigger, id=f"job-{number}")
    source = read_scheduler(lambda: scheduler, "test", NOW)
    assert len(source.rows) > count * 0.8
    for row in source.rows:
        if row.refused:
            assert "never comes" in row.refused or "256" in row.refused, row
            continue
        proof = prove(row, NOW, most)
        assert proof is not None
        assert not proof.unnamed, (row.says, str(row.trigger), proof.unnamed[:3])
        assert all(each.why for each in row.differences), row
        differing += bool(row.differences)
    assert differing >= count // 100
