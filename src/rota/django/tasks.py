"""The task backends of rota, for the setting TASKS: `RotaBackend`, and two that take rota's policies in tests.

Nothing here opens a store, reads a database or needs Django's apps to be ready: Django builds a backend while modules
that define tasks are being imported.
"""

from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.core.checks import CheckMessage

from rota.django import tasks_api
from rota.django.rota_task import RotaTask
from rota.django.tasks_api import (
    AnyResult,
    AnyTask,
    BaseTaskBackend,
    InvalidTask,
    TaskResultDoesNotExist,
    task_enqueued,
)
from rota.domain.keys import check_queue

if TYPE_CHECKING:
    from rota.domain.run import Run


class RotaBackend(BaseTaskBackend):
    """Enqueues Django tasks as runs of `rota.django.app`."""

    task_class = RotaTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def validate_task(self, task: AnyTask) -> None:
        super().validate_task(task)
        try:
            check_queue(task.queue_name)
        except ValueError as error:
            raise InvalidTask(str(error)) from None

    def enqueue(self, task: AnyTask, args: Any, kwargs: Any) -> AnyResult:
        """Make a run of the task. Inside a transaction, the run exists once the transaction has committed."""
        self.validate_task(task)
        from rota.django.enqueueing import Enqueued, enqueue

        made = Enqueued(task, args, kwargs)
        enqueue(made)
        return self._announced(made.result(self.alias))

    async def aenqueue(self, task: AnyTask, args: Any, kwargs: Any) -> AnyResult:
        self.validate_task(task)
        from rota.django.enqueueing import Enqueued, aenqueue

        made = Enqueued(task, args, kwargs)
        await aenqueue(made)
        result = made.result(self.alias)
        if task_enqueued.has_listeners(type(self)):
            await sync_to_async(self._announced)(result)
        return result

    def get_result(self, result_id: str) -> AnyResult:
        """Return the run of this id. The store forgets ended runs as its retention says."""
        from rota.django.enqueueing import found_run

        return self._result_of(found_run(result_id), result_id)

    async def aget_result(self, result_id: str) -> AnyResult:
        from rota.django.enqueueing import afound_run

        return self._result_of(await afound_run(result_id), result_id)

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        from rota.django.checks import of_backend

        return list(of_backend(self))

    def _announced(self, result: AnyResult) -> AnyResult:
        task_enqueued.send_robust(sender=type(self), task_result=result)
        return result

    def _result_of(self, run: "Run | None", id: str) -> AnyResult:
        from rota.django.adoption import adopted
        from rota.django.results import moment, result_of

        known = None if run is None else adopted(run.task)
        if run is None or known is None:
            raise TaskResultDoesNotExist(
                id if run is None else f"{id} is a run of {run.task}, which this project lacks"
            )
        waits = not run.attempts and run.due_at > run.created_at
        task = known.task.using(
            priority=run.priority,
            queue_name=run.queue,
            backend=self.alias,
            run_after=moment(run.due_at) if waits else None,
        )
        return result_of(run, task, self.alias)


class ImmediateBackend(tasks_api.ImmediateBackend):
    """Django's ImmediateBackend, for tasks with rota's policies: it calls a task at once and ignores the policies."""

    task_class = RotaTask


class DummyBackend(tasks_api.DummyBackend):
    """Django's DummyBackend, for tasks with rota's policies: it calls nothing and ignores the policies."""

    task_class = RotaTask
