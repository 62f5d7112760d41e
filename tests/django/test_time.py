"""Time in a project: TIME_ZONE is the zone of schedules, and with USE_TZ=False also that of plain datetimes."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from django.test import override_settings

from rota import Rota
from rota.django.tasks_api import task_backends
from tests.django.shop import tasks as shop
from tests.requirement import requirement

ROOT = Path(__file__).parents[2]
PARIS = ZoneInfo("Europe/Paris")
NIGHTS = """
import django
django.setup()
from datetime import datetime, timedelta, timezone
from django.test.utils import setup_test_environment
from rota import DailyAt
from rota.django import app
from rota.django.testing import run_tasks, travel

setup_test_environment()


@app.task(name="nightly", schedule=DailyAt(3))
def nightly() -> None: ...


run_tasks()
for month, day in ((3, 26), (10, 29)):
    travel(to=datetime(2027, month, day, 12, tzinfo=timezone.utc))
    run_tasks()
    for run in run_tasks(until=timedelta(days=4)):
        if run.task == "nightly":
            print(datetime.fromtimestamp(run.origin.nominal, timezone.utc).isoformat())
"""


@requirement("2.1")
@requirement("2.c")
def test_three_o_clock_in_paris_comes_once_in_each_night_of_both_clock_changes() -> None:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.django.settings", "SHOP_TIME_ZONE": "Europe/Paris"}
    done = subprocess.run(
        [sys.executable, "-c", NIGHTS], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    instants = [datetime.fromisoformat(line).astimezone(PARIS) for line in done.stdout.splitlines()]
    assert [f"{at:%m-%d %H:%M %z}" for at in instants] == [
        *("03-27 03:00 +0100", "03-28 03:00 +0200", "03-29 03:00 +0200", "03-30 03:00 +0200"),
        *("10-30 03:00 +0200", "10-31 03:00 +0100", "11-01 03:00 +0100", "11-02 03:00 +0100"),
    ], done.stderr


@pytest.mark.parametrize("month", [1, 7])
def test_without_use_tz_datetimes_are_plain_and_in_the_time_zone_of_the_project(app: Rota, month: int) -> None:
    local = datetime(datetime.now(UTC).year + 1, month, 15, 3)
    with override_settings(USE_TZ=False, TIME_ZONE="Europe/Paris"):
        before = datetime.now(PARIS).replace(tzinfo=None)
        result = shop.add.using(run_after=local).enqueue(1)
        after = task_backends["default"].get_result(result.id)
        assert after.task.run_after == local
        assert after.enqueued_at is not None
        assert after.enqueued_at.tzinfo is None
        assert before - timedelta(seconds=1) <= after.enqueued_at <= before + timedelta(seconds=60)
        assert result.enqueued_at is not None
        assert result.enqueued_at.tzinfo is None
    assert app.handle(result.id).refresh_sync().due_at == local.replace(tzinfo=PARIS).timestamp()
