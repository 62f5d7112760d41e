"""What docs/django-site.md shows runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SETTINGS = """
SECRET_KEY = "x"
USE_TZ = True
TIME_ZONE = "Europe/Paris"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
"""


def test_the_page_of_django_runs(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "django-site.md").read_text()
    settings, tasks, tests = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "shop").mkdir()
    for name, content in {
        "settings.py": SETTINGS + settings + 'INSTALLED_APPS += ["shop"]\n',
        "shop/__init__.py": "",
        "shop/tasks.py": tasks,
        "shop/tests.py": tests,
    }.items():
        (tmp_path / name).write_text(content)
    done = subprocess.run(
        [sys.executable, "-m", "django", "test", "shop"],
        cwd=tmp_path,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "settings", "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "Ran 2 tests" in done.stderr, done.stderr
    assert done.returncode == 0, done.stderr
