"""A cut-over at any quarter of an hour of a night of clock change: nothing is missed and nothing runs twice."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from apscheduler.schedulers.background import BackgroundScheduler  # type: ignore[import-untyped]

from rota import Rota
from rota.movein.apscheduler import read_scheduler
from rota.movein.celery_cron import crontab_row
from rota.movein.cronjobs import read_cronjobs
from rota.movein.crontab import read_crontab
from rota.movein.fires import fires_of, torn
from rota.movein.plan import Fires, Row
from rota.testing import simulate
from tests.domain.triggers.oracle import fires
from tests.movein import jobs
from tests.requirement import requirement

PARIS = ZoneInfo("Europe/Paris")
NIGHTS = (datetime(2027, 3, 27, 22, tzinfo=UTC), datetime(2027, 10, 30, 22, tzinfo=UTC))
NOW = datetime(2027, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
HOURS = timedelta(hours=12)


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


def celery(tmp_path: Path, minute: str, hour: str) -> tuple[Row, Fires]:
    row = by_celery(minute, hour)
    assert row.engine is not None
    return row, row.engine


def apscheduler(tmp_path: Path, minute: str, hour: str) -> tuple[Row, Fires]:
    row = by_apscheduler(minute, hour)
    assert row.engine is not None
    return row, row.engine


def apscheduler_interval(tmp_path: Path, minute: str, hour: str) -> tuple[Row, Fires]:
    scheduler = BackgroundScheduler(timezone="Europe/Paris")
    scheduler.add_job(jobs.nightly, "interval", minutes=25, start_date=NOW)
    row = read_scheduler(lambda: scheduler, "", NOW).rows[0]
    assert row.engine is not None
    return row, row.engine


def cron(tmp_path: Path, minute: str, hour: str) -> tuple[Row, Fires]:
    """As the second opinion of the tests of Cron says: croniter is wrong in these nights."""
    path = tmp_path / "crontab"
    path.write_text(f"CRON_TZ=Europe/Paris\n{minute} {hour} * * * true\n")
    row = read_crontab(path, None, "", system=False).rows[0]
    return row, lambda start, end: fires(f"{minute} {hour} * * *", PARIS, start, end)


def kubernetes(tmp_path: Path, minute: str, hour: str) -> tuple[Row, Fires]:
    path = tmp_path / "jobs.json"
    spec = {"schedule": f"{minute} {hour} * * *", "timeZone": "Europe/Paris"}
    path.write_text(json.dumps({"kind": "CronJob", "metadata": {"name": "it"}, "spec": spec}))
    row = read_cronjobs(path, None).rows[0]
    return row, lambda start, end: fires(f"{minute} {hour} * * *", PARIS, start, end, "each")


def taken_over(row: Row, at: datetime, night: datetime) -> list[datetime]:
    """Return when rota fires around a night, in simulation, if it takes over at an instant."""
    app = Rota("memory://")

    @app.task(schedule=row.trigger, start=at, overlap="allow")
    async def it() -> None: ...

    simulation = simulate(app, night, night + HOURS)
    return [datetime.fromtimestamp(run.due_at, UTC) for run in simulation.of("it")]


@requirement("1.17")
@pytest.mark.parametrize("night", NIGHTS, ids=["gap", "repeated hour"])
@pytest.mark.parametrize(("minute", "hour"), [("30", "2"), ("*/20", "0-5")])
@pytest.mark.parametrize("source", [celery, apscheduler, apscheduler_interval, cron, kubernetes])
def test_rota_takes_over_inside_the_night_in_simulation(
    tmp_path: Path, source: Callable[[Path, str, str], tuple[Row, Fires]], minute: str, hour: str, night: datetime
) -> None:
    """At every twenty minutes: what the engine of the source has fired before, and what rota fires then."""
    row, engine = source(tmp_path, minute, hour)
    assert row.trigger is not None
    theirs, ours = set(engine(night, night + HOURS)), set(fires_of(row.trigger, night, night + HOURS))
    least, most = sorted((len(theirs), len(ours)))
    refused = 0
    for twenty in range(3 * 7):
        at = night + twenty * timedelta(minutes=20)
        handed = [*sorted(fire for fire in theirs if fire < at), *taken_over(row, at, night)]
        if torn(row, at):
            refused += 1
            assert not least <= len(handed) <= most, f"a cut-over at {at} is refused, and it harms nothing"
            continue
        assert handed == sorted(set(handed)), f"cut over at {at}: twice"
        assert theirs & ours <= {*handed} <= theirs | ours, f"cut over at {at}"
        assert least <= len(handed) <= most, f"cut over at {at}: missed, or too many"
    assert refused <= 3, "an hour of the night"
