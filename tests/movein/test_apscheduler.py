"""The jobs of an APScheduler: their times, their terms, and jobs that are refused instead of guessed."""

import asyncio
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest
from apscheduler.jobstores.memory import MemoryJobStore  # type: ignore[import-untyped]
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore  # type: ignore[import-untyped]
from apscheduler.schedulers.background import BackgroundScheduler  # type: ignore[import-untyped]
from apscheduler.triggers.combining import AndTrigger, OrTrigger  # type: ignore[import-untyped]
from apscheduler.triggers.cron import CronTrigger  # type: ignore[import-untyped]

from rota import InvalidOptions
from rota.movein.apscheduler import read_scheduler
from rota.movein.code import write_code
from rota.movein.fires import fires_of, prove
from rota.movein.plan import Row, Source
from tests.movein import jobs
from tests.requirement import requirement

NOW = datetime(2026, 11, 17, 9, 30, tzinfo=UTC)
PARIS = ZoneInfo("Europe/Paris")


def read(scheduler: Any) -> Source:
    return read_scheduler(lambda: scheduler, "shop:scheduler", NOW)


def row_of(trigger: object = "cron", func: Any = jobs.nightly, **options: Any) -> Row:
    scheduler = BackgroundScheduler(timezone="Europe/Paris")
    scheduler.add_job(func, trigger, id="it", **options)
    (row,) = read(scheduler).rows
    return row


@requirement("1.17")
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"hour": 3}, "cron 0 3 * * * Europe/Paris"),
        ({"day_of_week": 0, "hour": 9}, "cron 0 9 * * mon Europe/Paris"),
        ({"day_of_week": "5-6"}, "cron 0 0 * * sat,sun Europe/Paris"),
        ({"minute": "*/15"}, "cron */15 * * * * Europe/Paris"),
        ({"day": "2nd fri"}, "cron 0 0 * * fri#2 Europe/Paris"),
        ({"day": "last"}, "cron 0 0 L * * Europe/Paris"),
        ({"day": "last sun,15"}, "cron 0 0 15 * 0L Europe/Paris"),
        ({"week": "*/2", "day_of_week": "mon"}, "cron 0 0 * * mon Europe/Paris week */2"),
        ({"month": "jan-mar", "day": 1, "second": 30}, "cron 30 * * 1 1-3 * Europe/Paris"),
        (
            {"day": "1-7", "day_of_week": "mon", "hour": 4},
            "cron 0 4 1-7 * * Europe/Paris and cron 0 4 * * mon Europe/Paris",
        ),
    ],
)
def test_a_cron_trigger_keeps_its_meaning(fields: dict[str, Any], text: str) -> None:
    row = row_of(**fields)
    assert str(row.trigger) == text
    proof = prove(row, NOW, most=500)
    assert proof is not None
    assert proof.compared
    assert not proof.unnamed


def test_a_time_inside_a_gap_is_a_named_difference() -> None:
    row = row_of(hour=2, minute=30)
    assert row.outcome == "differs"
    night = datetime(2027, 3, 28, tzinfo=PARIS)
    shown = {(each.by, f"{each.at.astimezone(PARIS):%d %b %H:%M}", each.why) for each in row.differences}
    assert shown == {
        ("source", "28 Mar 03:30", "the clocks go from 02:00 to 03:00"),
        ("rota", "28 Mar 03:00", "the clocks go from 02:00 to 03:00"),
    }
    assert row.trigger is not None
    october = datetime(2027, 10, 31, tzinfo=PARIS)
    twice = list(fires_of(row.trigger, october, october + timedelta(days=1)))
    assert len(twice) == 2, "APScheduler fires in both passes of a repeated hour, so rota does"
    assert len(list(fires_of(row.trigger, night, night + timedelta(days=1)))) == 1


def test_the_first_hour_after_a_short_day_is_a_named_difference() -> None:
    row = row_of(hour=0, minute=15)
    shown = [(each.by, f"{each.at.astimezone(PARIS):%d %b %H:%M}", each.why) for each in row.differences]
    assert shown == [("rota", "29 Mar 00:15", "the clocks go from 02:00 to 03:00 on the day before")]


def test_a_fire_that_a_clock_change_weeks_before_loses_is_a_named_difference() -> None:
    row = row_of(month="*", timezone=ZoneInfo("Australia/Lord_Howe"))
    shown = [(each.by, each.at, each.why) for each in row.differences]
    gap = "the clocks go from 02:00 to 02:30 on 2027-10-03, before its first fire"
    assert shown == [("rota", datetime(2027, 10, 31, 13, tzinfo=UTC), gap)]
    proof = prove(row, NOW)
    assert proof is not None
    assert not proof.unnamed


def test_an_instant_that_apscheduler_answers_twice_does_not_end_its_proof() -> None:
    row = row_of(hour="0,2,3", minute="40,56,58")  # on the short day, 02:40 is 03:40, and then 03:40 comes too
    proof = prove(row, NOW)
    assert proof is not None
    assert (proof.unnamed, proof.compared) == ((), 400 * 9)


def test_the_terms_of_a_job_are_carried_over() -> None:
    plain = row_of(hour=3).timed
    assert (plain.overlap, plain.catch_up, plain.grace, plain.lost) == ("skip", "latest", 1, "fail")
    late = row_of(hour=3, misfire_grace_time=None, coalesce=False).timed
    assert (late.overlap, late.catch_up, late.grace) == ("buffer", "all", None)
    several = row_of(hour=3, max_instances=3, misfire_grace_time=600, jitter=60)
    assert (several.timed.overlap, several.limit, several.timed.grace) == ("allow", 3, 660)
    assert str(several.trigger) == "cron 0 3 * * * Europe/Paris jitter 1m"
    start, end = datetime(2027, 1, 1, tzinfo=UTC), datetime(2027, 6, 1, tzinfo=UTC)
    bounded = row_of(hour=3, start_date=start, end_date=end).timed
    assert (bounded.start, bounded.end) == (start, end)
    assert row_of(hour=3, next_run_time=None).paused


def test_an_interval_counts_from_its_next_run() -> None:
    following = datetime(2026, 11, 17, 10, 0, 7, 123456, tzinfo=UTC)
    row = row_of("interval", minutes=5, jitter=10, next_run_time=following)
    assert str(row.trigger) == "every 5m jitter 10s anchor 2026-11-17T10:00:07.123000Z"
    proof = prove(row, NOW, most=2000)
    assert proof is not None
    assert proof.compared > 1900
    assert not proof.unnamed


def test_dates_and_alternatives() -> None:
    at = datetime(2027, 1, 1, 9, tzinfo=PARIS)
    assert str(row_of("date", run_date=at).trigger) == "at 2027-01-01T08:00:00Z"
    assert "has passed" in row_of("date", run_date=datetime(2026, 1, 1, tzinfo=PARIS)).refused
    either = row_of(OrTrigger([CronTrigger(hour=h, timezone=PARIS) for h in (3, 15)]))
    assert str(either.trigger) == "cron 0 3 * * * Europe/Paris or cron 0 15 * * * Europe/Paris"
    assert "a & b" in row_of(AndTrigger([CronTrigger(hour=3), CronTrigger(day=1)])).refused


def test_what_rota_cannot_call_is_refused() -> None:
    assert "lambda" in row_of(func=lambda: None, hour=3).refused
    assert "no JSON" in row_of(hour=3, args=[object()]).refused


def test_the_code_calls_the_functions_of_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = BackgroundScheduler(timezone="UTC")
    scheduler.add_job(jobs.nightly, "cron", hour=3, id="night", args=["Paris"], kwargs={"limit": 3})
    scheduler.add_job(jobs.later, "interval", hours=1, max_instances=2)
    monkeypatch.setenv("ROTA_URL", "memory://")
    code = write_code(read(scheduler))
    made: dict[str, Any] = {}
    exec(compile(code, "jobs.py", "exec"), made)
    assert sorted(made["app"].tasks) == ["later", "night"]
    jobs.called.clear()
    made["night"]()
    asyncio.run(made["later"]())
    assert jobs.called == [("Paris", 3), "later"]
    assert "limit=Limit(2)" in code


def test_stored_jobs_are_read_by_their_library_and_none_is_deleted(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    writer = BackgroundScheduler(timezone="UTC", jobstores={"default": SQLAlchemyJobStore(url)})
    writer.start(paused=True)
    writer.add_job(jobs.nightly, "cron", hour=3, id="kept")
    writer.add_job(jobs.nightly, "cron", hour=4, id="broken")
    writer.shutdown()
    with sqlite3.connect(tmp_path / "jobs.db") as connection:
        connection.execute("UPDATE apscheduler_jobs SET job_state = x'00' WHERE id = 'broken'")

    reader = BackgroundScheduler(timezone="UTC", jobstores={"default": SQLAlchemyJobStore(url)})
    kept, broken = read(reader).rows
    assert (kept.name, str(kept.trigger)) == ("kept", "cron 0 3 * * * UTC")
    assert "cannot restore it here" in broken.refused
    with sqlite3.connect(tmp_path / "jobs.db") as connection:
        assert connection.execute("SELECT count(*) FROM apscheduler_jobs").fetchone() == (2,)


def test_a_scheduler_that_its_module_starts_runs_no_job() -> None:
    scheduler = BackgroundScheduler(timezone="UTC")

    def load() -> object:
        scheduler.add_job(
            jobs.nightly, "date", run_date=datetime.now(UTC) - timedelta(seconds=1), misfire_grace_time=60
        )
        scheduler.start()
        return scheduler

    jobs.called.clear()
    try:
        assert len(read_scheduler(load, "shop:scheduler", NOW).rows) == 1
        assert scheduler.state == 2, "paused"
    finally:
        scheduler.shutdown()
    assert jobs.called == []


def test_something_else_is_refused() -> None:
    with pytest.raises(InvalidOptions, match="is a dict, not a scheduler"):
        read_scheduler(dict, "shop:jobs", NOW)


@requirement("1.17")
def test_stored_jobs_fire_up_to_the_cut_over_and_others_are_named(tmp_path: Path) -> None:
    """Played by APScheduler's own scheduler over the same job store.

    All of it lies far ahead: when a scheduler is shut down, it looks once more for jobs that are due by the clock.
    """
    cut = datetime(2126, 11, 19, 9, tzinfo=UTC)
    store = SQLAlchemyJobStore(f"sqlite:///{tmp_path}/jobs.db")
    scheduler = BackgroundScheduler(timezone="UTC", jobstores={"default": store, "memory": MemoryJobStore()})
    scheduler.start(paused=True)
    scheduler.add_job(jobs.nightly, "cron", minute=0, id="hourly", next_run_time=cut - timedelta(days=2))
    scheduler.add_job(jobs.nightly, "interval", days=30, id="monthly", start_date=cut + timedelta(days=5))
    scheduler.add_job(jobs.nightly, "cron", hour=3, id="here", jobstore="memory")
    stop = read(scheduler).stop_at
    assert stop is not None
    for _ in range(2):
        assert stop(cut) == [
            "APScheduler removes a job after its last fire before then",
            "no job store can stop here: the process of the scheduler has to, at that instant",
        ]
    hourly, monthly = (cast("Any", store.lookup_job(id)) for id in ("hourly", "monthly"))
    assert monthly.next_run_time is None, "paused: it has no fire before"
    fires = [hourly.trigger.get_next_fire_time(None, cut - timedelta(minutes=minutes)) for minutes in (60, 1)]
    assert fires == [cut - timedelta(hours=1), None], "a fire at the cut-over is rota's"
    scheduler.shutdown()
