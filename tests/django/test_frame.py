"""The frame of rota.django: its settings, its app, and the discovery of tasks."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from django.test.utils import setup_test_environment, teardown_test_environment

import rota.django
from rota.django import discovery
from rota.django.conf import Conf, conf
from rota.django.project import store_url

ROOT = Path(__file__).parents[2]


def test_the_setting_is_read_as_it_is_now() -> None:
    assert conf() == Conf()
    with override_settings(ROTA={"URL": "redis://queue", "EMBEDDED": False, "TASK_MODULES": ["tasks", "jobs"]}):
        assert conf() == Conf(url="redis://queue", embedded=False, task_modules=("tasks", "jobs"))
    assert conf() == Conf()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"URI": "memory://"}, "ROTA has no key 'URI'; did you mean URL"),
        ({"EMBEDDED": "yes"}, "ROTA: Invalid enum value 'yes' - at `$.EMBEDDED`"),
        ({"TEST": {"url": "memory://"}}, "ROTA: Object contains unknown field `url` - at `$.TEST`"),
        ("memory://", "ROTA = 'memory://': expected a dictionary"),
    ],
)
def test_a_wrong_setting_says_what_is_wrong(wrong: object, says: str) -> None:
    with override_settings(ROTA=wrong), pytest.raises(ImproperlyConfigured) as told:
        conf()
    assert says in str(told.value)


def test_the_app_of_the_project_is_one_object_in_its_time_zone() -> None:
    assert rota.django.app is rota.django.app
    assert rota.django.app.settings.tz == "UTC"


def test_the_store_is_where_the_settings_say_when_it_is_needed() -> None:
    assert store_url().endswith("/.rota/rota.db")
    with override_settings(ROTA={"URL": "redis://queue"}):
        assert rota.django.app.backend.url == "redis://queue"
        setup_test_environment()
        try:
            assert rota.django.app.backend.url == "memory://"
            assert rota.django.app.backend is rota.django.app.backend
        finally:
            teardown_test_environment()
    assert rota.django.app.backend.url.endswith("/.rota/rota.db")


def test_a_module_that_does_not_import_is_told_and_the_others_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broken_app").mkdir()
    (tmp_path / "broken_app" / "__init__.py").write_text("")
    (tmp_path / "broken_app" / "tasks.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    with override_settings(INSTALLED_APPS=["broken_app", "tests.django.shop"]):
        discovery.discover()
    assert discovery.problems.pop("broken_app.tasks") == "ModuleNotFoundError: No module named 'no_such_module'"
    assert "the tasks of broken_app.tasks are unknown" in caplog.text
    assert "tests.django.shop.tasks" in discovery.modules


def test_a_set_up_project_has_loaded_neither_the_app_nor_the_engine() -> None:
    program = "import django, sys; django.setup(); print(*sys.modules)"
    environment = {"DJANGO_SETTINGS_MODULE": "tests.django.settings", "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    assert not {"rota.app.app", "rota.engine.worker", "rota.stores"} & set(done.stdout.split())
