"""rota for Django: add "rota.django" to INSTALLED_APPS.

`rota.django.app` is the project's `Rota`, `rota.django.task` is `@task` of django.tasks with rota's policies. A name is
loaded when code first uses it: the settings of a project are not read while they are being imported.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.app.app import Rota
    from rota.django.lifespan import asgi
    from rota.django.rota_task import task
    from rota.django.transactions import enqueue_on_commit

    app: Rota

__all__ = ["app", "asgi", "enqueue_on_commit", "task"]


if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts every name, also a misspelt one

    def __getattr__(name: str) -> object:
        if name == "app":
            from rota.django.project import app

            return app()
        if name == "asgi":
            from rota.django.lifespan import asgi

            return asgi
        if name == "task":
            from rota.django.rota_task import task

            return task
        if name == "enqueue_on_commit":
            from rota.django.transactions import enqueue_on_commit

            return enqueue_on_commit
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
