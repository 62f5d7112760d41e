"""The command line of rota for the app of a Django project."""

import os
import sys
from collections.abc import Sequence

from django.core.management.base import CommandError

APP = "rota.django.entry:app"


def run(*words: str) -> None:
    """Run a command of rota in this process; raise CommandError, with its exit code, if the command fails."""
    from rota import cli
    from rota.app.core import core_of
    from rota.cli.options.target import forget
    from rota.django.project import app
    from rota.stores.sqlite import SqliteBackend

    _lead_children_here()
    forget(app())
    backend = app().backend
    try:
        with core_of(app()).borrowed():
            code = cli.run(words if _names_app(words) else ("-A", APP, *words))
    finally:
        forget(app())
        if isinstance(backend, SqliteBackend):
            backend.create = True  # a command that only reads has asked it not to make its file
    if code:
        raise Failed(code)


class Failed(CommandError):
    """The command has written what went wrong."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the command ended with {code}", returncode=code)


def _names_app(words: Sequence[str]) -> bool:
    return any(word == "-A" or word.startswith("--app") for word in words)


def _lead_children_here() -> None:
    """Let the processes that rota starts import the project, wherever manage.py was called from."""
    path = [os.path.abspath(sys.path[0]), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(path))
