"""A cut-over at any quarter of an hour of a night of clock change: nothing is missed and nothing runs twice."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from apscheduler.schedulers.background import BackgroundScheduler  # type: ignore[import-untyped]

from rota import Rota
from rota.movein.apscheduler import read_scheduler
from rota.movein.celery_cron import crontab_row
from rota.movein.fires import fires_of, torn
from rota.movein.plan import Row
from rota.testing import simulate
from tests.movein import jobs
from tests.requirement import requirement

PARIS = ZoneInfo("Europe/Paris")
NIGHTS = (datetime(2027, 3, 27, 22, tzinfo=UTC), datetime(2027, 10, 30, 22, tzinfo=UTC))
NOW = datetime(2027, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def by_celery(minute: str, hour: str) -> Row:
    fields = {"minute": minute, "hour": hour, "day_of_month": "*", "month_of_year": "*", "day_of_week": "*"}
    return crontab_row(Row(name="it", where="", says="", tz="Europe/Paris", task="it"), fields, NOW)


def by_apscheduler(minute: str, hour: str) -> Row:
    scheduler = BackgroundScheduler(timezone="Europe/Paris")
    scheduler.add_job(jobs.nightly, "cron", minute=minute, hour=hour)
    return read_scheduler(lambda: scheduler, "", NOW).rows[0]


@requirement("1.17")
@pytest.mark.parametrize(("minute", "hour"), [("30", "2"), ("*/15", "*"), ("10", "1-4"), ("0,30", "2,5")])
@pytest.mark.parametrize("made", [by_celery, by_apscheduler])
def test_each_reading_is_fired_once_or_the_cut_over_is_refused(
    made: Callable[[str, str], Row], minute: str, hour: str
) -> None:
    row = made(minute, hour)
    assert row.trigger is not None
    assert row.model is not None
    for night in NIGHTS:
        theirs = list(row.model(night - DAY, night + DAY))
        ours = list(fires_of(row.trigger, night - DAY, night + DAY))
        least, most = sorted((len(theirs), len(ours)))
        for quarter in range(4 * 10):
            at = night + quarter * timedelta(minutes=15)
            handed = [fire for fire in theirs if fire < at] + [fire for fire in ours if fire >= at]
            assert handed == sorted(set(handed))
            assert bool(torn(row, at)) == (not least <= len(handed) <= most), at
        assert not torn(row, night), "before the night"
        assert not torn(row, night + timedelta(hours=9)), "after the night"


def test_a_gap_tears_a_fixed_time_apart_and_the_message_says_when_it_does_not() -> None:
    row = by_celery("30", "2")
    between = datetime(2027, 3, 28, 3, 15, tzinfo=PARIS)
    assert torn(row, between) == "it: nobody would fire for a time of that night; cut over after 2027-03-28T01:30:00Z"
    assert not torn(row, datetime(2027, 3, 28, 1, 30, 1, tzinfo=UTC))


@pytest.mark.parametrize("night", NIGHTS, ids=["gap", "repeated hour"])
def test_rota_takes_over_inside_the_night_in_simulation(night: datetime) -> None:
    row = by_celery("*/20", "0-5")
    assert row.trigger is not None
    assert row.model is not None
    at = datetime(night.year, night.month, night.day + 1, 0, 50, tzinfo=UTC)  # ten minutes before the clocks change
    app = Rota("memory://")

    @app.task(schedule=row.trigger, start=at, overlap="allow")
    async def it() -> None: ...

    simulation = simulate(app, night, night + timedelta(hours=12))
    fired = [datetime.fromtimestamp(run.due_at, UTC) for run in simulation.of("it")]
    before = [fire for fire in row.model(night, night + timedelta(hours=12)) if fire < at]
    whole = list(fires_of(row.trigger, night, night + timedelta(hours=12)))
    assert before + fired == whole, "the fires before the cut-over, and then rota's"
    assert fired[0] == at + timedelta(minutes=10)
