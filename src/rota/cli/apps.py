"""Finding the app and the store that a command is about."""

import importlib
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from rota.app import Rota
from rota.client import Client
from rota.errors import InvalidOptions, RotaError
from rota.settings import app_reference, default_url, lacks_namespace, project_folder
from rota.settings import load as settings
from rota.store import Backend
from rota.stores import connect


class Target:
    """What `-A` and `--url` point at; the app is imported only for commands that need it."""

    def __init__(self, reference: str | None = None, url: str | None = None) -> None:
        self.given = reference
        self.url = url

    @property
    def reference(self) -> str | None:
        """-A, else ROTA_APP, else the project file's."""
        return self.given or app_reference()

    def app(self) -> Rota:
        """The app, on the store that `--url` names if it is given."""
        if self.reference is None:
            raise InvalidOptions(
                'no app: say which with -A module:attribute, ROTA_APP, or app = "module:attribute" '
                "under [tool.rota] in pyproject.toml"
            )
        app = load(self.reference)
        if self.url is not None:
            app.store_url = self._store_url(self.url)
            app.backend = app.client().backend = connect(app.store_url)
        return app

    def backend(self) -> Backend:
        """The store alone: of `--url`, else of the app, else of ROTA_URL or the project folder.

        `--url` names a server, and the app its place there, unless the URL names that too.
        """
        if self.url is not None:
            return connect(self._store_url(self.url))
        return self.app().backend if self.reference else connect(default_url())

    def _store_url(self, url: str) -> str:
        app = load(self.reference) if self.reference and lacks_namespace(url) else None
        return settings(url=url, namespace=app and app.settings.namespace).store_url

    def tz(self) -> str:
        """The zone of what names none: as the app has it, where it says which store; else as the project has it."""
        return load(self.reference).settings.tz if self.reference and self.url is None else settings().tz

    def said_tz(self) -> str | None:
        """The zone that the app or the project gives for what names none; None if neither gives one.

        An app that cannot be imported gives none: this is for commands that work without one.
        """
        try:
            found = load(self.reference).settings if self.reference else settings()
        except RotaError:
            found = settings()
        return None if found.source("tz") == "default" else found.tz

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[Client, None]:
        """A client of that store, closed at the end."""
        client = Client(self.backend())
        try:
            yield client
        finally:
            await client.close()


def check_shared(backend: Backend) -> None:
    """What is put has to outlast the command."""
    if backend.url.startswith("memory:"):
        raise InvalidOptions("memory:// ends with this command; name a store that a worker shares (--url, ROTA_URL)")


def load(reference: str) -> Rota:
    """The app that `module:attribute` names; the attribute is `app` if none is named."""
    module_name, _, attribute = reference.partition(":")
    attribute = attribute or "app"
    if not module_name or module_name.startswith("."):
        raise InvalidOptions(f"{reference!r} names no app; write module:attribute, for example tasks:app")
    _make_importable()
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise InvalidOptions(_import_failed(reference, error)) from error
    app: object = module
    for part in attribute.split("."):
        app = getattr(app, part, None)
    if isinstance(app, Rota):
        return app
    raise InvalidOptions(f"{reference!r}: {attribute} in {module_name} is {_kind(app)}; {_apps_of(module)}")


def _make_importable() -> None:
    """As with `python -m`: what lies here can be imported, and what lies beside the project file."""
    for folder in (str(project_folder()), str(Path.cwd())):
        if folder not in sys.path:
            sys.path.insert(0, folder)


def _import_failed(reference: str, error: BaseException) -> str:
    """What went wrong and in which line of the user's code."""
    place = ""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith("<frozen") and file not in (__file__, importlib.__file__):
            place = f" ({file}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return f"{reference!r} cannot be imported: {type(error).__name__}: {error}{place}"


def _kind(found: object) -> str:
    return "missing" if found is None else f"a {type(found).__name__}, not a Rota"


def _apps_of(module: object) -> str:
    names = [name for name, value in vars(module).items() if isinstance(value, Rota)]
    return f"its apps are: {', '.join(names)}" if names else "it holds no Rota at all"
