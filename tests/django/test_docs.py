"""docs/django.md, followed in a project of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

from rota.django.conf import Conf

ROOT = Path(__file__).parents[2]
REST = """
SECRET_KEY = "x"
TIME_ZONE = "Europe/Paris"
USE_TZ = True
INSTALLED_APPS += ["shop"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}}
BASE_DIR = "."
"""
BEGIN = """
import django

django.setup()
from django.core.management import call_command
from django.db import transaction

import rota.django
from shop.tasks import send_receipt

call_command("migrate", verbosity=0)
"""
END = """
with transaction.atomic():
    other = send_receipt.enqueue(order=8)
with rota.django.app.running():
    for each in (result, other):
        rota.django.app.handle(each.id).result_sync(20)
        each.refresh()
        print(each.return_value)
print(rota.django.app.tasks["shop.tasks.clean_up"].description, rota.django.app.settings.tz)
"""


def test_the_page_names_every_key_of_the_setting() -> None:
    _, _, page = (ROOT / "docs/django.md").read_text().partition("## Settings")
    assert re.findall(r"^\| `(\w+)` \|", page, re.M) == [name.upper() for name in Conf.__struct_fields__]


def test_the_page_works_in_a_new_project(tmp_path: Path) -> None:
    settings, tasks, use = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/django.md").read_text(), re.M | re.S)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / "tasks.py").write_text(tasks)
    (tmp_path / "settings.py").write_text(settings + REST)
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "settings", "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + use + END],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "receipt 7",
        "receipt 8",
        "Remove old carts, every night at three in TIME_ZONE. Europe/Paris",
    ], done.stderr
    worker = subprocess.run(
        [sys.executable, "-m", "django", "rota_worker", "--burst"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert worker.stderr.count("started on sqlite:") == 1, "the page's LOGGING and the worker's log are one"
