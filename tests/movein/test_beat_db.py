"""The tables of django-celery-beat: Celery's grammar held to Celery, and rows that are refused instead of guessed."""

import asyncio
import json
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest
from celery.schedules import crontab_parser  # type: ignore[import-untyped]

from rota import InvalidOptions
from rota.movein.beat_db import QUERY, read_beat
from rota.movein.celery_cron import FIELDS, read_field
from rota.movein.code import write_code
from rota.movein.database import by_url, of_django
from rota.movein.plan import Row, Source
from storekit.servers.postgres import PostgresServer

NOW = datetime(2026, 11, 17, 9, 30, tzinfo=UTC)
PREFIX = "django_celery_beat_"
SCHEMA = f"""
CREATE TABLE {PREFIX}intervalschedule (id integer PRIMARY KEY, every integer, period varchar(24));
CREATE TABLE {PREFIX}clockedschedule (id integer PRIMARY KEY, clocked_time TIMESTAMP);
CREATE TABLE {PREFIX}periodictasks (ident smallint PRIMARY KEY, last_update TIMESTAMP NOT NULL);
CREATE TABLE {PREFIX}solarschedule (id integer PRIMARY KEY, event varchar(24));
CREATE TABLE {PREFIX}crontabschedule (id integer PRIMARY KEY, minute varchar(240), hour varchar(96),
    day_of_week varchar(64), day_of_month varchar(124), month_of_year varchar(64), timezone varchar(63));
CREATE TABLE {PREFIX}periodictask (id integer PRIMARY KEY, name varchar(200), task varchar(200), args text, kwargs text,
    queue varchar(200), exchange varchar(200), routing_key varchar(200), headers text, priority integer,
    expires TIMESTAMP, expire_seconds integer, one_off bool, start_time TIMESTAMP, enabled bool,
    last_run_at TIMESTAMP, interval_id integer, clocked_id integer, solar_id integer, crontab_id integer);
INSERT INTO {PREFIX}intervalschedule VALUES (1, 5, 'minutes'), (2, 50, 'microseconds');
INSERT INTO {PREFIX}clockedschedule VALUES (1, '2027-01-01 09:00:00'), (2, '2020-01-01 09:00:00');
INSERT INTO {PREFIX}solarschedule VALUES (1, 'sunset');
INSERT INTO {PREFIX}crontabschedule VALUES
    (1, '0', '3', '*', '*', '*', 'Europe/Paris'), (2, '*', '3', '*', '*', '*', 'UTC'),
    (3, '30', '22-2/2', 'mon-fri', '1-7', '*', 'UTC'), (4, '5/15', '*', '*', '*', '*', 'UTC'),
    (5, '0', '3', '7', '*', '*', 'UTC'), (6, '30', '2', '*', '*', '*', 'Europe/Paris'),
    (7, '0', '3', '*', '*', '*', 'Mars/North');
"""


def task(name: str, **columns: Any) -> str:
    """The statement that adds a row."""
    given: dict[str, Any] = {"name": name, "task": "shop.tasks.add", "args": "[]", "kwargs": "{}", "headers": "{}"}
    given |= {"one_off": False, "enabled": True} | columns
    values = ", ".join(
        "NULL" if v is None else str(v) if isinstance(v, bool | int) else f"'{v}'" for v in given.values()
    )
    return f"INSERT INTO {PREFIX}periodictask ({', '.join(given)}) VALUES ({values});"


ROWS = [
    task("nightly", id=1, crontab_id=1, args="[2, 3]", kwargs='{"tax": true}'),
    task("hour three", id=2, crontab_id=2, task="short"),
    task("wrapped", id=3, crontab_id=3, enabled=False, queue="reports", priority=3),
    task("cron step", id=4, crontab_id=4),
    task("sunday as 7", id=5, crontab_id=5),
    task("in the gap", id=6, crontab_id=6),
    task("no such zone", id=7, crontab_id=7),
    task("often", id=8, interval_id=1, last_run_at="2026-11-17 09:27:30.5", expire_seconds=60),
    task("too often", id=9, interval_id=2),
    task("once", id=10, clocked_id=1, one_off=True),
    task("passed", id=11, clocked_id=2),
    task("sun", id=12, solar_id=1),
    task("nothing", id=13),
    task("bad json", id=14, crontab_id=1, args="{oops"),
    task("ends", id=15, crontab_id=1, expires="2027-02-01 00:00:00", start_time="2026-12-01 00:00:00", one_off=True),
    task("ended", id=16, crontab_id=1, expires="2020-02-01 00:00:00"),
    task("celery.backend_cleanup", id=17, crontab_id=1, task="celery.backend_cleanup"),
]


@pytest.fixture
def url(tmp_path: Path) -> str:
    with sqlite3.connect(tmp_path / "beat.db") as connection:
        connection.executescript(SCHEMA + "".join(ROWS))
    return f"sqlite:///{tmp_path}/beat.db"


def read(url: str) -> Source:
    return read_beat(by_url(url), url, NOW)


def by_name(source: Source) -> dict[str, Row]:
    return {row.name: row for row in source.rows}


def test_rows_keep_their_times(url: str) -> None:
    rows = by_name(read(url))
    assert {name: str(row.trigger) for name, row in rows.items() if row.trigger} == {
        "nightly": "cron 0 3 * * * Europe/Paris",
        "hour three": "cron * 3 * * * UTC",
        "wrapped": "cron 30 0,2,22 1-7 * * UTC and cron 30 0,2,22 * * mon-fri UTC",
        "in the gap": "cron 30 2 * * * Europe/Paris",
        "often": "every 5m anchor 2026-11-17T09:27:30Z",
        "once": "at 2027-01-01T09:00:00Z",
        "ends": "cron 0 3 * * * Europe/Paris",
    }
    assert {name for name, row in rows.items() if row.outcome == "differs"} == {"in the gap"}
    assert rows["nightly"].args == [2, 3]
    assert rows["nightly"].kwargs == {"tax": True}
    assert (rows["wrapped"].paused, rows["wrapped"].timed.queue) == (True, "reports")
    assert "with Redis 0 is the highest" in rows["wrapped"].notes[0]
    assert (rows["often"].timed.grace, rows["often"].timed.overlap, rows["often"].timed.lost) == (60, "allow", "fail")
    ends = rows["ends"].timed
    assert (ends.times, ends.start) == (1, datetime(2026, 12, 1, tzinfo=UTC))
    assert ends.end == datetime(2027, 1, 31, 23, 59, 59, 999000, tzinfo=UTC), "beat does not fire at `expires` itself"


def test_what_has_no_trigger_of_its_own_is_refused(url: str) -> None:
    refused = {row.name: row.refused for row in read(url).rows if row.refused}
    words = {
        "cron step": "Celery refuses minute='5/15'",
        "sunday as 7": "Celery refuses day_of_week='7'",
        "no such zone": "Mars/North",
        "too often": "at least 0.1 s",
        "passed": "has passed",
        "sun": "no sun",
        "nothing": "stops beat",
        "bad json": "no JSON",
        "ended": "expired",
        "celery.backend_cleanup": "keep=",
    }
    assert refused.keys() == words.keys()
    assert all(word in refused[name] for name, word in words.items())


def test_the_code_calls_the_tasks_by_their_names(url: str) -> None:
    code = write_code(read(url))
    assert "import shop.tasks\n" in code
    assert "    shop.tasks.add(2, 3, tax=True)\n" in code
    assert "raise NotImplementedError('call what Celery calls short')" in code.replace('"', "'")
    compile(code, "jobs.py", "exec")


def test_django_settings_say_where_the_tables_are(url: str, tmp_path: Path) -> None:
    default = {"ENGINE": "django.db.backends.sqlite3", "NAME": tmp_path / "beat.db"}
    assert len(of_django(SimpleNamespace(DATABASES={"default": default})).read(QUERY)) == len(ROWS)
    with pytest.raises(InvalidOptions, match="mysql"):
        of_django(SimpleNamespace(DATABASES={"default": {"ENGINE": "django.db.backends.mysql"}}))
    with pytest.raises(InvalidOptions, match="unable to open"):
        by_url(f"sqlite:///{tmp_path}/nothing.db").read(QUERY)
    assert not (tmp_path / "nothing.db").exists()


PARTS = [
    "*",
    "*/5",
    "*/0",
    "*/x",
    "3",
    "3-5",
    "22-2",
    "22-2/2",
    "5/15",
    "mon",
    "monday-fri",
    "jan",
    "dec-feb",
    "sat-mon",
    "7",
]
PARTS += [
    "",
    "1,,2",
    "1,3-4",
    "60",
    "-1",
    "1-",
    "1-5-9",
    "*/5-10",
    "3-3/2",
    "0-6",
    "31",
    "12",
    "mar",
    "*5",
    "a-b",
    "1_0",
]


@pytest.mark.parametrize("field", FIELDS)
def test_fields_are_read_as_celery_reads_them(field: str) -> None:
    for text in PARTS:
        try:
            theirs: frozenset[int] | None = frozenset(crontab_parser(*FIELDS[field]).parse(text))
        except Exception:
            theirs = None
        try:
            ours: frozenset[int] | None = read_field(field, text)
        except ValueError:
            ours = None
        assert ours == theirs, text


def test_arguments_are_json_as_beat_wrote_them(url: str) -> None:
    assert json.loads(json.dumps([row.kwargs for row in read(url).rows if row.name == "nightly"])) == [{"tax": True}]


def test_postgresql_is_read_too(postgres: PostgresServer, namespace: str) -> None:
    async def fill() -> None:
        connection = await asyncpg.connect(postgres.url)
        await connection.execute(f"CREATE SCHEMA {namespace}; SET search_path = {namespace}")
        await connection.execute(SCHEMA.replace("TIMESTAMP", "timestamptz") + "".join(ROWS[:10]))
        await connection.close()

    asyncio.run(fill())
    rows = by_name(read(f"{postgres.url}&search_path={namespace}"))
    assert str(rows["often"].trigger) == "every 5m anchor 2026-11-17T09:27:30Z"
    assert len(rows) == 10
    stopped(read(f"{postgres.url}&search_path={namespace}"))
    assert by_name(read(f"{postgres.url}&search_path={namespace}"))["often"].timed.end == CUT - timedelta(
        milliseconds=1
    )
    with pytest.raises(InvalidOptions, match="periodictask"):
        read(postgres.url)


CUT = datetime(2026, 11, 20, 4, tzinfo=UTC)


def stopped(source: Source) -> None:
    assert source.stop_at is not None
    assert "dropped by Celery" in source.stop_at(CUT)[0]


def test_stopped_rows_end_at_the_cut_over_and_beat_notices(url: str) -> None:
    before = by_name(read(url))
    stopped(read(url))
    after = by_name(read(url))
    for name, row in after.items():
        if before[name].refused:
            assert row.refused == before[name].refused
        else:
            assert row.timed.end == CUT - timedelta(milliseconds=1), name
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        read_at = "SELECT last_update FROM django_celery_beat_periodictasks"
        assert connection.execute(read_at).fetchall() == [("2026-11-17 09:30:00",)]
        stopped(read(url))
        assert connection.execute(read_at).fetchall() == [("2026-11-17 09:30:00",)], "one row, however often"
        ended = "SELECT expires FROM django_celery_beat_periodictask WHERE name = 'ended'"
        assert connection.execute(ended).fetchall() == [("2020-02-01 00:00:00",)]


def test_a_database_that_cannot_be_written_is_named(url: str) -> None:
    source = read(url)
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("DROP TABLE django_celery_beat_periodictasks")
    with pytest.raises(InvalidOptions, match="no such table"):
        stopped(source)
    assert {row.timed.end for row in read(url).rows} == {row.timed.end for row in source.rows}, "all or nothing"
