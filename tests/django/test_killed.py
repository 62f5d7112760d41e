"""A process that enqueues is killed: nothing that it committed is lost, and nothing runs twice."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENQUEUES = """
import django, os, signal, sys
django.setup()
from django.core.management import call_command
from django.db import transaction
from rota.django import outbox
from tests.django.shop.tasks import write

call_command("migrate", verbosity=0)
path, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


for number in range(first, last):
    if number == last - 1:
        # the last one is killed: before the put, or between the put and the delete
        if last % 2:
            outbox.hand_over = die
        else:
            from django.db.models import QuerySet
            QuerySet.delete = die
    with transaction.atomic():
        write.enqueue(path, str(number))
"""
WORKS = """
import django, sys, time
django.setup()
import rota.django
from rota.django.models import OutboxRun

app = rota.django.app
with app.running():
    while OutboxRun.objects.exists() or any(app.portal.call(app.depths).values()):
        time.sleep(0.05)
"""


def played(folder: Path, program: str, *words: str) -> int:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.django.settings", "SHOP_DIR": str(folder)}
    environment["PYTHONPATH"] = str(ROOT)
    return subprocess.run([sys.executable, "-c", program, *words], cwd=ROOT, env=environment, check=False).returncode


def killed(folder: Path, deaths: int, each: int) -> None:
    lines = folder / "lines"
    for death in range(deaths):
        first = death * each
        assert played(folder, ENQUEUES, str(lines), str(first), str(first + each)) == -9
    assert played(folder, WORKS) == 0
    assert sorted(map(int, lines.read_text().split())) == list(range(deaths * each))


def test_a_process_killed_after_its_commit_loses_nothing_and_runs_nothing_twice(tmp_path: Path) -> None:
    killed(tmp_path, 2, 3)


@pytest.mark.soak
def test_a_hundred_deaths_among_ten_thousand_commits(tmp_path: Path) -> None:
    killed(tmp_path, 100, 101)
