"""System checks of the task backend: what `manage.py check` says about the tasks of a project."""

from collections.abc import Iterator

from django.apps import apps
from django.core.checks import CheckMessage, Error

from rota.django.tasks_api import BaseTaskBackend


def of_backend(backend: BaseTaskBackend) -> Iterator[CheckMessage]:
    """Yield what is wrong with the tasks that this backend serves. No store is opened."""
    if not apps.is_installed("rota.django"):
        yield Error(
            f'TASKS["{backend.alias}"] is a RotaBackend, but "rota.django" is not installed',
            hint='Add "rota.django" to INSTALLED_APPS.',
            id="rota.E003",
        )
        return
    from rota.django.adoption import mistakes
    from rota.django.project import app

    app()  # adopts the tasks, and finds what is wrong with their options
    for name, why in sorted(mistakes.items()):
        yield Error(f"{name}: {why}", hint="No worker can run it.", id="rota.E004")
