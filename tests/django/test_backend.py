"""RotaBackend: what Django documents of a task backend, on four stores."""

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import SynchronousOnlyOperation
from django.test import override_settings

from rota import Rota
from rota.django.tasks import RotaBackend
from rota.django.tasks_api import (
    AnyResult,
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from tests.django.shop import tasks as shop

READY, RUNNING, FAILED, SUCCESSFUL = TaskResultStatus


@pytest.fixture
def app(store: Rota) -> Rota:
    return store


def ended(app: Rota, result: AnyResult) -> AnyResult:
    """Run the engine until the task has ended, and return its result."""
    with app.running(grace=5):
        app.portal.call(lambda: app.client().ended(result.id, 20))
    return task_backends["default"].get_result(result.id)


def test_all_four_capabilities_are_there() -> None:
    backend = task_backends["default"]
    assert isinstance(backend, RotaBackend)
    assert backend.supports_defer
    assert backend.supports_async_task
    assert backend.supports_get_result
    assert backend.supports_priority


def test_a_task_is_enqueued_run_and_read(app: Rota) -> None:
    before = datetime.now(UTC)
    result = shop.add.enqueue(1, b=3)
    assert (result.status, result.args, result.kwargs, result.backend) == (READY, [1], {"b": 3}, "default")
    assert result.enqueued_at is not None
    assert result.enqueued_at >= before
    assert result.task == shop.add
    assert 0 < len(result.id) < 64
    with pytest.raises(ValueError, match="Task has not finished yet"):
        _ = result.return_value

    after = ended(app, result)

    assert (after.status, after.return_value, after.args, after.kwargs) == (SUCCESSFUL, 4, [1], {"b": 3})
    assert after.attempts == 1
    assert len(after.worker_ids) == 1
    assert after.errors == []
    assert after.started_at is not None
    assert after.finished_at is not None
    assert before <= after.started_at <= after.finished_at
    assert after.last_attempted_at == after.started_at
    result.refresh()
    assert result.return_value == 4
    assert result.is_finished
    assert shop.add.get_result(result.id).return_value == 4


async def test_the_same_from_coroutines(app: Rota) -> None:
    result = await shop.add_async.aenqueue(1, 2)
    async with app:
        await app.client().ended(result.id, 20)
    await result.arefresh()
    value: object = result.return_value
    assert value == 3
    assert (await shop.add_async.aget_result(result.id)).status == SUCCESSFUL


async def test_a_blocking_call_on_an_event_loop_is_refused_with_the_way_out(app: Rota) -> None:
    with pytest.raises(SynchronousOnlyOperation, match="aenqueue"):
        shop.add.enqueue(1)


def test_arguments_by_position_and_by_name_come_back_as_they_were_given(app: Rota) -> None:
    result = shop.anything.enqueue(1, (2, 3), a=b"text", b={"c": None})
    after = ended(app, result)
    assert (after.args, after.kwargs) == ([1, [2, 3]], {"a": "text", "b": {"c": None}})
    assert after.return_value == [after.args, after.kwargs]


def test_values_without_json_are_refused_and_annotations_change_none(app: Rota) -> None:
    with pytest.raises(TypeError, match="Unsupported type"):
        shop.anything.enqueue(datetime.now(UTC))
    assert ended(app, shop.mail.enqueue("2026-11-17T00:00:00Z")).return_value == "str"  # type: ignore[arg-type]


def test_a_failed_task_has_its_exception_and_traceback(app: Rota) -> None:
    after = ended(app, shop.fail.enqueue("no data"))
    assert after.status == FAILED
    (error,) = after.errors
    assert error.exception_class is ValueError
    assert "raise ValueError(message)" in error.traceback
    with pytest.raises(ValueError, match="Task failed"):
        _ = after.return_value


def test_an_exception_of_the_project_is_found_by_its_path(app: Rota) -> None:
    (error,) = ended(app, shop.print_receipt.enqueue()).errors
    assert error.exception_class is shop.OutOfPaper
    assert "OutOfPaper: tray 2" in error.traceback


def test_each_attempt_is_counted_and_the_context_knows_its_number(app: Rota, tmp_path: Path) -> None:
    log = tmp_path / "attempts"
    after = ended(app, shop.third_time.enqueue(str(log)))
    assert log.read_text().split() == ["1", "2", "3"]
    assert after.return_value == [3, after.id]
    assert after.attempts == 3
    assert [error.exception_class for error in after.errors] == [KeyError, KeyError]


def test_a_value_that_has_no_json_fails_the_task(app: Rota) -> None:
    after = ended(app, shop.unsuitable.enqueue())
    assert after.status == FAILED
    assert after.errors[0].exception_class is TypeError


def test_system_exit_fails_the_run_and_not_the_worker(app: Rota) -> None:
    left, result = shop.leave.enqueue(), shop.add.using(priority=-1).enqueue(1)
    assert ended(app, result).return_value == 3
    assert task_backends["default"].get_result(left.id).errors[0].exception_class is SystemExit


def test_a_context_in_a_coroutine(app: Rota) -> None:
    result = shop.who.enqueue()
    assert ended(app, result).return_value == result.id


def test_queue_priority_and_run_after_are_those_of_the_run(app: Rota) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    result = shop.mail.using(run_after=later, priority=-7).enqueue("ada")  # type: ignore[arg-type]
    after = task_backends["default"].get_result(result.id)
    assert (after.task.queue_name, after.task.priority, after.status) == ("mail", -7, READY)
    assert after.task.run_after is not None
    assert abs(after.task.run_after - later) < timedelta(milliseconds=1)
    run = app.handle(result.id).refresh_sync()
    assert (run.queue, run.priority, run.task) == ("mail", -7, "tests.django.shop.tasks.mail")


def test_a_cancelled_run_is_failed_and_a_paused_one_ready(app: Rota) -> None:
    paused, cancelled = shop.add.enqueue(1), shop.add.enqueue(2)
    app.handle(paused.id).pause_sync()
    app.handle(cancelled.id).cancel_sync("not now")
    paused.refresh()
    cancelled.refresh()
    assert paused.status == READY
    assert cancelled.status == FAILED
    assert cancelled.errors[0].exception_class.__name__ == "RunCancelled"


def test_what_is_no_run_of_a_task_here_does_not_exist(app: Rota) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        shop.add.get_result("nope")
    handle = app.portal.call(lambda: app.submit("subprocess.check_output", args=["touch", "/tmp/never"]))
    with pytest.raises(TaskResultDoesNotExist, match=r"is a run of subprocess\.check_output"):
        task_backends["default"].get_result(handle.id)
    assert "nobody has published subprocess.check_output" in str(app.portal.call(lambda: app.why(handle.id)))


def test_an_impossible_task_is_refused_when_it_is_made() -> None:
    def inside() -> None: ...

    from rota.django import task

    for wrong in (
        lambda: task(inside),
        lambda: task(takes_context=True)(shop.add.func),
        lambda: shop.add.using(priority=101),
        lambda: shop.add.using(priority=-101),
        lambda: shop.add.using(run_after=datetime(2026, 1, 1)),
        lambda: shop.add.using(queue_name="two words"),
    ):
        with pytest.raises(InvalidTask):
            wrong()
    only = {"default": {"BACKEND": "rota.django.tasks.RotaBackend", "QUEUES": ["default"]}}
    with override_settings(TASKS=only), pytest.raises(InvalidTask, match="Queue 'other' is not valid for backend"):
        shop.add.using(queue_name="other")


def test_signals_are_sent_and_the_log_has_the_traceback(app: Rota, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[tuple[str, str, type]] = []

    def receiver(name: str) -> Any:
        def hear(sender: type, task_result: AnyResult, **_: Any) -> None:
            heard.append((name, str(task_result.status), sender))

        return hear

    receivers = [
        (signal, receiver(name))
        for name, signal in (("enqueued", task_enqueued), ("started", task_started), ("finished", task_finished))
    ]
    for signal, each in receivers:
        signal.connect(each)
    try:
        with caplog.at_level(logging.INFO):
            ended(app, shop.fail.enqueue("x"))
    finally:
        for signal, each in receivers:
            signal.disconnect(each)
    assert heard == [
        ("enqueued", "READY", RotaBackend),
        ("started", "RUNNING", RotaBackend),
        ("finished", "FAILED", RotaBackend),
    ]
    (record,) = [
        one for one in caplog.records if one.name in ("django.tasks", "django_tasks") and one.levelname == "ERROR"
    ]
    assert record.exc_info
    assert record.exc_info[0] is ValueError
