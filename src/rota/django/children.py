"""The functions of Django tasks with `executor="process"`, for the child processes that call them.

A child imports this module, which sets Django up, and then asks it for the name of the task. The name is looked up
among the tasks that the project defines; nothing is imported by it.
"""

from collections.abc import Callable
from typing import Any

import django
from django.apps import apps

if not apps.ready:
    django.setup()


class Path:
    """The beginning of the name of a task."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, part: str) -> "Path | Callable[..., Any]":
        return _found(f"{self._name}.{part}")


def _found(name: str) -> "Path | Callable[..., Any]":
    from rota.django.adoption import adopted
    from rota.django.project import app

    app()  # adopts the tasks
    known = adopted(name)
    return Path(name) if known is None else known.own.fn


def __getattr__(part: str) -> object:
    if part.startswith("__"):
        raise AttributeError(part)
    return _found(part)
