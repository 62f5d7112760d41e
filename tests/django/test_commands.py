"""The commands of manage.py, and what `manage.py check` says."""

import json
import os
import signal
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.test import override_settings

from rota import DailyAt
from rota.app.core import core_of
from rota.app.leases import Leases
from rota.client.client import Client
from rota.django import app, discovery
from rota.django.management.commands import run_task
from rota.domain.run import State
from rota.store import ClaimRequest
from tests.django.served.site import MANAGE, Site
from tests.requirement import requirement

ADDED = """
from rota.django import app


@app.task(name="added")
def added() -> str:
    return "new"
"""


@pytest.fixture(autouse=True)
def tasks() -> None:
    if "reports.nightly" not in app.tasks:

        @app.task(name="reports.nightly", schedule=DailyAt(3, 0))
        def nightly(day: str = "today", pages: int = 1) -> dict[str, object]:
            return {"day": day, "pages": pages}

        @app.task(name="reports.broken")
        def broken() -> None:
            raise ValueError("no paper")


@requirement("2.7")
def test_list_tasks_names_every_task(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("list_tasks", "--json")
    listed = {each["task"]: each for each in json.loads(capsys.readouterr().out)}
    assert listed["reports.nightly"]["parameters"] == "day: str = 'today', pages: int = 1"


@requirement("2.7")
@requirement("2.12")
def test_run_task_calls_the_function_here_and_prints_its_result(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("run_task", "reports.nightly", "day=2026-11-17", "pages=2")
    assert json.loads(capsys.readouterr().out) == {"day": "2026-11-17", "pages": 2}
    with pytest.raises(CommandError) as failed:
        call_command("run_task", "reports.broken")
    assert failed.value.returncode == 1
    assert "no paper" in capsys.readouterr().err
    with pytest.raises(CommandError) as failed:
        call_command("run_task", "reports.nigthly")
    assert failed.value.returncode == 2
    assert "did you mean reports.nightly" in capsys.readouterr().err


@requirement("2.12")
def test_run_task_calls_no_task_that_is_running_unless_it_is_forced(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def called(*words: str) -> str:
        call_command("run_task", "reports.nightly", *words)
        out, err = capsys.readouterr()
        return err.partition(";")[0] or str(json.loads(out)["day"])

    async def claimed() -> list[str]:
        store = await app.client().store()
        claim = await store.claim(ClaimRequest("other", 1, ["reports.nightly"], 1, 60.0))
        return [run.id for run in claim.runs]

    monkeypatch.setattr(run_task, "PATIENCE", 0.05)
    with app.bound_to("memory://"):
        assert called() == "today"
        other = Client(app.backend)
        with Leases(lambda: other).lease_sync("run_task:reports.nightly", 60, None):
            assert called() == "reports.nightly was not called: another run_task calls it"
            assert called("--force") == "today"
        assert called() == "today", "the lease is free again"
        handle = app.portal.call(lambda: app.submit("reports.nightly"))
        assert app.portal.call(claimed) == [handle.id]
        assert called() == f"reports.nightly was not called: the run {handle.id} is running"
        assert called("day=monday", "--force") == "monday"
        other.portal.close(other.close)


@requirement("2.12")
def test_run_task_takes_its_options_before_between_and_after_the_values(capsys: pytest.CaptureFixture[str]) -> None:
    with app.bound_to("memory://"):
        for words in (
            ("--force", "reports.nightly", "day=mon", "pages=3"),
            ("reports.nightly", "--force", "day=mon", "pages=3"),
            ("reports.nightly", "day=mon", "--force", "pages=3"),
        ):
            run_task.Command().run_from_argv(["manage.py", "run_task", *words])
            assert json.loads(capsys.readouterr().out) == {"day": "mon", "pages": 3}


@requirement("2.12")
def test_run_task_says_what_to_do_while_the_store_is_away(tmp_path: Path) -> None:
    (tmp_path / "rota.db").mkdir()
    with app.bound_to(f"sqlite:///{tmp_path}/rota.db"):
        with pytest.raises(CommandError, match="--force calls the task without asking the store"):
            call_command("run_task", "reports.nightly")
        call_command("run_task", "reports.nightly", "--force")


@requirement("2.7")
def test_task_schedule_shows_the_next_times_without_a_store(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("task_schedule", "--days", "2", "--json")
    shown = json.loads(capsys.readouterr().out)
    fires = [each["at"] for each in shown["fires"] if each["task"] == "reports.nightly"]
    assert [at[11:16] for at in fires] == ["03:00", "03:00"]


def test_the_whole_command_line_is_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with app.bound_to(f"sqlite:///{tmp_path}/rota.db"):
        before = core_of(app).backend
        call_command("rota", "tasks", "--json")
        assert "reports.nightly" in capsys.readouterr().out
        assert core_of(app).backend is before, "a command leaves the app on its own store"
        assert not (tmp_path / "rota.db").exists(), "it only read"
        assert app.portal.call(lambda: app.submit("reports.nightly")).id, "and the app may make its file"


async def test_rota_worker_works_in_processes_and_with_queues(tmp_path: Path) -> None:
    async with Site(tmp_path, *MANAGE, "rota_worker", "--processes", "2", "--queues", "default") as site:
        await site.workers(2)
        run = await site.lingering()
        assert site.stop(signal.SIGTERM) == 0, site.log
        assert await site.state(run) is State.QUEUED, site.log


async def test_rota_worker_starts_again_when_code_changes_and_gives_its_runs_back(tmp_path: Path) -> None:
    extra = tmp_path / "apps" / "extra"
    extra.mkdir(parents=True)
    (extra / "__init__.py").touch()
    code = extra / "tasks.py"
    code.write_text("from rota.django import app\n")
    command = (*MANAGE, "rota_worker", "--reload", "--queues", "default", "--concurrency", "3")
    async with Site(tmp_path, *command, path=str(extra.parent), SERVED_APPS="extra") as site:
        run = await site.lingering()
        added = await site.submit("added")
        code.write_text(ADDED)
        while site.log.count("started on") < 2:  # saved again: the reloader may not have seen the file before
            os.utime(code)
            await site.news()
        assert await added.result(timeout=60) == "new", site.log
        while await site.state(run) is not State.RUNNING:  # it was given back, and the next process has it
            await site.news()
        assert (await site.client.run(run)).losses == 0
        site.stop(signal.SIGINT, group=True)
        assert await site.state(run) is State.QUEUED, site.log


@pytest.mark.parametrize("option", ["--burst", "--processes=2", "--tasks=a", "--grace=5"])
def test_a_worker_that_reloads_is_one_that_does_everything(option: str) -> None:
    with pytest.raises(CommandError, match="--reload starts one worker that does everything"):
        call_command("rota_worker", "--reload", option)


def test_a_broken_module_and_a_wrong_alias_are_named_by_check() -> None:
    discovery.problems["shop.tasks"] = "SyntaxError: invalid syntax"
    try:
        with override_settings(ROTA={"DATABASE": "replica"}):
            found = {message.id: message.msg for message in run_checks(tags=["rota"])}
    finally:
        del discovery.problems["shop.tasks"]
    assert found == {
        "rota.E001": "ROTA[\"DATABASE\"] is 'replica', and DATABASES has no such alias.",
        "rota.W001": "shop.tasks cannot be imported: SyntaxError: invalid syntax",
    }


def test_check_asks_the_store_only_under_deploy(unused_tcp_port: int) -> None:
    with override_settings(ROTA={"URL": f"redis://127.0.0.1:{unused_tcp_port}"}):
        assert run_checks(tags=["rota"]) == []
        found = run_checks(tags=["database"], include_deployment_checks=True, databases=[])
    assert [message.id for message in found if message.id and message.id.startswith("rota")] == ["rota.W003"]
    with override_settings(ROTA={"URL": "memory://"}):
        found = run_checks(tags=["database"], include_deployment_checks=True, databases=[])
    assert [message.id for message in found if message.id and message.id.startswith("rota")] == ["rota.W002"]
