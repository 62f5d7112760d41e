"""What Django documents of a task backend, on four stores."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rota import Rota
from rota.django.results import NOT_KEPT
from rota.django.tasks_api import (
    AnyResult,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from tests.django.shop import tasks as shop

READY, RUNNING, FAILED, SUCCESSFUL = TaskResultStatus


def found(result: AnyResult) -> AnyResult:
    return task_backends["default"].get_result(result.id)


def times(result: AnyResult) -> list[datetime | None]:
    return [result.enqueued_at, result.started_at, result.last_attempted_at, result.finished_at]


def test_a_result_tells_what_became_of_its_task(store: Rota, tmp_path: Path) -> None:
    heard: list[tuple[str, str]] = []

    def hear(signal: Any, task_result: AnyResult, **_: Any) -> None:
        name = {id(task_enqueued): "enqueued", id(task_started): "started", id(task_finished): "finished"}[id(signal)]
        heard.append((name, task_result.id))

    for signal in (task_enqueued, task_started, task_finished):
        signal.connect(hear)
    later = datetime.now(UTC) + timedelta(days=1)
    try:
        good, bad = shop.add.enqueue(1, b=5), shop.fail.enqueue("no data")
        paused, cancelled = shop.add.enqueue(2), shop.add.enqueue(3)
        deferred = shop.mail.using(run_after=later, priority=-7, queue_name="slow").enqueue("x")  # type: ignore[arg-type]
        many = shop.fails_often.enqueue()
        assert [found(each).status for each in (good, bad, paused, cancelled, deferred, many)] == [READY] * 6
        assert times(found(good))[1:] == [None, None, None]
        store.handle(paused.id).pause_sync()
        store.handle(cancelled.id).cancel_sync("not now")
        with store.running(grace=5):
            for each in (good, bad, many):
                store.portal.call(lambda each=each: store.client().ended(each.id, 60))  # type: ignore[misc]
    finally:
        for signal in (task_enqueued, task_started, task_finished):
            signal.disconnect(hear)
    good.refresh()
    assert (good.status, good.return_value, good.args, good.kwargs) == (SUCCESSFUL, 6, [1], {"b": 5})
    enqueued, started, last, finished = (at or datetime.max.replace(tzinfo=UTC) for at in times(good))
    assert enqueued <= started == last <= finished < datetime.now(UTC) + timedelta(minutes=1)
    assert (good.attempts, len(good.worker_ids), good.errors) == (1, 1, [])
    assert [error.exception_class for error in found(bad).errors] == [ValueError]
    assert (found(paused).status, found(paused).attempts) == (READY, 0)
    assert (found(cancelled).status, found(cancelled).errors[0].exception_class.__name__) == (FAILED, "RunCancelled")
    task = found(deferred).task
    assert (task.queue_name, task.priority, found(deferred).status) == ("slow", -7, READY)
    assert task.run_after is not None
    assert abs(task.run_after - later) < timedelta(milliseconds=1)
    after = found(many)
    assert (after.status, after.attempts, len(after.worker_ids)) == (FAILED, 23, 23)
    assert after.worker_ids[:3] == [NOT_KEPT] * 3
    assert NOT_KEPT not in after.worker_ids[3:]
    assert [name for name, id in heard if id == good.id] == ["enqueued", "started", "finished"]
    assert [name for name, id in heard if id == many.id] == ["enqueued", *["started"] * 23, "finished"]


def test_a_result_of_another_task_or_of_none_is_refused(store: Rota) -> None:
    result = shop.add.enqueue(1)
    with pytest.raises(TaskResultMismatch):
        shop.fail.get_result(result.id)
    with pytest.raises(TaskResultDoesNotExist):
        shop.add.get_result("01a1ec7c-0000-7000-8000-000000000000")


async def test_the_same_from_coroutines(store: Rota) -> None:
    result = await shop.add_async.aenqueue(1, 2)
    assert (await task_backends["default"].aget_result(result.id)).status == READY
    async with store:
        await store.client().ended(result.id, 60)
    await result.arefresh()
    value: object = result.return_value
    assert (result.status, value) == (SUCCESSFUL, 3)
    with pytest.raises(TaskResultMismatch):
        await shop.fail.aget_result(result.id)
