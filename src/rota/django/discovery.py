"""Discovery: the modules of the installed apps that define tasks, imported once in every process."""

import logging
from importlib import import_module
from types import ModuleType

from django.apps import apps
from django.utils.module_loading import module_has_submodule

from rota.django.conf import conf

log = logging.getLogger("rota.django")

OURS = "rota.django.tasks"
"""The module of the task backends, which defines no task."""
modules: dict[str, ModuleType] = {}
"""The modules that were imported, by name."""
problems: dict[str, str] = {}
"""The modules that could not be imported, and why. One broken module does not stop a project: the others work."""


def discover() -> None:
    """Import `tasks` (`ROTA["TASK_MODULES"]`) of every installed app. A second call looks again for what is missing."""
    for config in apps.get_app_configs():
        for submodule in conf().task_modules:
            name = f"{config.name}.{submodule}"
            if config.module is None or name in (*modules, OURS) or not module_has_submodule(config.module, submodule):
                continue
            try:
                modules[name] = import_module(name)
                problems.pop(name, None)
            except Exception as error:  # whatever the code of an app raises
                problems[name] = f"{type(error).__name__}: {error}"
                log.exception("the tasks of %s are unknown: the module cannot be imported", name)
