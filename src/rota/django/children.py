"""The functions of Django tasks with `executor="process"`, for the child processes that call them.

A child imports this module, which sets Django up, and then asks it for the name of the task. The name is looked up
among the tasks that the project defines; nothing is imported by it.
"""

from typing import Any

import django
from django.apps import apps

from rota.task import Task

if not apps.apps_ready:  # `ready` is False while the apps of a project get ready, and they may ask for tasks
    django.setup()


class Path:
    """The beginning of the name of a task."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, part: str) -> "Path | Task[..., ..., Any, Any]":
        return _found(f"{self._name}.{part}")


def _found(name: str) -> "Path | Task[..., ..., Any, Any]":
    from rota.django.adoption import adopted
    from rota.django.project import app

    app()  # adopts the tasks
    known = adopted(name)
    return Path(name) if known is None else known.own


def __getattr__(part: str) -> object:
    if part.startswith("__"):
        raise AttributeError(part)
    return _found(part)
