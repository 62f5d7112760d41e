"""Policies on Django tasks, under rota and under the backends of tests."""

import importlib
import sys
from pathlib import Path
from typing import Any

import django
import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import override_settings

from rota import Rota
from rota.django import adoption, discovery, task
from rota.django.rota_task import POLICIES, Policies, RotaTask
from rota.django.tasks_api import Task, TaskResultStatus, task_backends
from rota.task import TaskOptions, definition_of
from tests.django.shop import tasks as shop

OF_DJANGO = Task.__module__.partition(".base")[0]  # django.tasks, or the backport


def test_the_policies_are_the_options_of_a_task() -> None:
    own = {"name", "priority", "queue"}  # module_path, priority and queue_name of a Django task
    assert set(POLICIES) == (set(TaskOptions.__annotations__) - own) | {"max_attempts", "backoff"}
    assert set(POLICIES) == set(Policies.__annotations__)


@pytest.mark.parametrize(
    "backend",
    [
        "rota.django.tasks.RotaBackend",
        "rota.django.tasks.ImmediateBackend",
        "rota.django.tasks.DummyBackend",
        f"{OF_DJANGO}.backends.immediate.ImmediateBackend",
        f"{OF_DJANGO}.backends.dummy.DummyBackend",
    ],
)
def test_a_module_with_policies_imports_under_every_backend(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, shop.__name__)
    with override_settings(TASKS={"default": {"BACKEND": backend, "QUEUES": []}}):
        again = importlib.import_module(shop.__name__)
        if "Rota" not in backend:
            result = again.report.enqueue("ada")
            wanted = TaskResultStatus.READY if "Dummy" in backend else TaskResultStatus.SUCCESSFUL
            assert result.status == wanted


@pytest.mark.skipif(django.VERSION[:2] == (6, 0), reason="the decorator of Django 6.0 takes no policies")
@pytest.mark.parametrize("backend", ["RotaBackend", "ImmediateBackend", "DummyBackend"])
def test_the_decorator_of_django_takes_policies_too(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"theirs_{backend.lower()}"
    (tmp_path / f"{name}.py").write_text(
        f"from {OF_DJANGO} import task\n\n@task(timeout=5, max_attempts=2)\ndef f():\n    return 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with override_settings(TASKS={"default": {"BACKEND": f"rota.django.tasks.{backend}"}}):
        found = importlib.import_module(name).f
    assert isinstance(found, RotaTask)
    assert (found.timeout, found.max_attempts) == (5, 2)


def test_the_app_has_the_tasks_with_their_policies(app: Rota) -> None:
    known = app.tasks["tests.django.shop.tasks.report"]
    definition = definition_of(known)
    assert (definition.spec.policy.timeout, definition.spec.guards.unique, definition.spec.key) == (
        30,
        "active",
        "{user}",
    )
    assert known.aliases == ("shop.old_report",)
    assert [schedule.id for schedule in definition.schedules("UTC", "")] == [known.name]
    assert definition_of(app.tasks["tests.django.shop.tasks.mail"]).spec.queue == "mail"
    assert app.tasks["tests.django.shop.tasks.mail"].description == "Send a mail."


def test_using_gives_policies_to_one_run_and_unique_joins(app: Rota) -> None:
    first, again = shop.report.enqueue("ada"), shop.report.enqueue("ada")
    other = shop.report.using(key="eve", timeout=7, max_attempts=4).enqueue("ada")
    assert first.id == again.id != other.id
    run = app.handle(other.id).refresh_sync()
    assert (run.key, run.policy.timeout, run.policy.retry.limit) == ("eve", 7.0, 3)
    with pytest.raises(TypeError, match=r"using\(limit=...\): give it to the task"):
        shop.report.using(limit=None)


def test_a_former_name_finds_the_task(app: Rota) -> None:
    handle = app.portal.call(lambda: app.submit("shop.old_report", user="ada"))
    result = task_backends["default"].get_result(handle.id)
    assert result.task.func is shop.report.func


def test_a_task_with_wrong_options_is_told_by_the_check_and_the_others_work(
    app: Rota, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wrong_options.py").write_text(
        "from rota.django import task\nfrom rota import Retry\n\n"
        "@task(key='{nobody}')\ndef keyed(a): ...\n\n@task(retry=Retry(1), max_attempts=2)\ndef both(): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(discovery.modules, "wrong_options", importlib.import_module("wrong_options"))
    monkeypatch.setattr(adoption, "mistakes", {})
    adoption.adopt_found(app)
    with pytest.raises(SystemCheckError) as told:
        call_command("check")
    assert "(rota.E004) wrong_options.keyed: task wrong_options.keyed: key='{nobody}'" in str(told.value)
    assert "(rota.E004) wrong_options.both: task wrong_options.both: give retry=, or max_attempts=" in str(told.value)


def test_the_system_check_is_silent_for_a_good_project(app: Rota) -> None:
    call_command("check")


def test_run_after_does_not_belong_to_a_task() -> None:
    options: dict[str, Any] = {"run_after": None}
    with pytest.raises(TypeError, match="using"):
        task(**options)


def test_a_task_shows_what_it_was_given_and_not_the_rest() -> None:
    assert repr(shop.add.using(timeout=30)) == (
        "RotaTask(tests.django.shop.tasks.add, priority=0, backend='default', queue_name='default', run_after=None, "
        "takes_context=False, timeout=30)"
    )
