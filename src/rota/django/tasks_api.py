"""The tasks framework of the installed Django: `django.tasks` from 6.0 on, the backport `django_tasks` on 5.2.

No other module of rota imports either of them.
"""

# The stubs describe Django 6.1, and 5.2 may be installed.
# pyright: reportMissingModuleSource=false

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.tasks import (
        DEFAULT_TASK_BACKEND_ALIAS,
        DEFAULT_TASK_QUEUE_NAME,
        Task,
        TaskContext,
        TaskResult,
        TaskResultStatus,
        task_backends,
    )
    from django.tasks import checks as checks
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.backends.dummy import DummyBackend
    from django.tasks.backends.immediate import ImmediateBackend
    from django.tasks.base import TaskError
    from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist, TaskResultMismatch
    from django.tasks.signals import task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json

    AnyTask = Task[..., Any]
    AnyResult = TaskResult[Any, Any]
else:
    try:
        from django.tasks import (
            DEFAULT_TASK_BACKEND_ALIAS,
            DEFAULT_TASK_QUEUE_NAME,
            Task,
            TaskContext,
            TaskResult,
            TaskResultStatus,
            checks,
            task_backends,
        )
        from django.tasks.backends.base import BaseTaskBackend
        from django.tasks.backends.dummy import DummyBackend
        from django.tasks.backends.immediate import ImmediateBackend
        from django.tasks.base import TaskError
        from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist, TaskResultMismatch
        from django.tasks.signals import task_enqueued, task_finished, task_started
        from django.utils.json import normalize_json
    except ModuleNotFoundError:
        try:
            from django_tasks import (
                DEFAULT_TASK_BACKEND_ALIAS,
                DEFAULT_TASK_QUEUE_NAME,
                TaskContext,
                TaskResult,
                TaskResultStatus,
                task_backends,
            )
        except ModuleNotFoundError as error:
            if error.name != "django_tasks":
                raise
            from rota.errors import MissingExtra

            raise MissingExtra('Django 5.2 needs the backport of tasks: pip install "django-tasks>=0.12"') from None
        from django_tasks import checks
        from django_tasks.backends.base import BaseTaskBackend
        from django_tasks.backends.dummy import DummyBackend
        from django_tasks.backends.immediate import ImmediateBackend
        from django_tasks.base import Task, TaskError
        from django_tasks.exceptions import InvalidTaskError as InvalidTask
        from django_tasks.exceptions import TaskResultDoesNotExist, TaskResultMismatch
        from django_tasks.signals import task_enqueued, task_finished, task_started
        from django_tasks.utils import normalize_json

    AnyTask, AnyResult = Task, TaskResult  # at run time, not every version of these classes takes parameters

__all__ = [
    "DEFAULT_TASK_BACKEND_ALIAS",
    "DEFAULT_TASK_QUEUE_NAME",
    "AnyResult",
    "AnyTask",
    "BaseTaskBackend",
    "DummyBackend",
    "ImmediateBackend",
    "InvalidTask",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultMismatch",
    "TaskResultStatus",
    "checks",
    "normalize_json",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]
