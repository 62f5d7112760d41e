"""The target of a command: the app and the store."""

import asyncio
import importlib
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

import rota
from rota.app.app import Rota
from rota.app.core import core_of
from rota.cli.options.user import who
from rota.client.audit import Author, acting
from rota.client.client import Client
from rota.domain.text import did_you_mean
from rota.errors import InvalidOptions, RotaError
from rota.settings import (
    app_reference,
    default_url,
    from_environment,
    imports_first,
    lacks_namespace,
    project_folder,
)
from rota.settings import load as settings
from rota.store import Backend
from rota.stores import connect
from rota.stores.sqlite import SqliteBackend
from rota.stores.sqlite.files import no_store

T = TypeVar("T")

_own: WeakKeyDictionary[Rota, Backend] = WeakKeyDictionary()
"""The store of each app before `--url` replaced it."""


class Missing(Enum):
    """What a command does if the SQLite file does not exist yet."""

    REFUSED = "refused"
    """The command fails: it reads or changes what is stored."""
    EMPTY = "empty"
    """The command uses an empty store: it can show what the code declares."""
    CREATED = "created"
    """The command creates the file: it stores something."""


OURS = Path(rota.__file__).parent
"""Lines of tracebacks in this folder are not shown to users."""


class Target:
    """What `-A` and `--url` point at; the app is imported only for commands that need it."""

    def __init__(
        self, reference: str | None = None, url: str | None = None, missing: Missing = Missing.REFUSED
    ) -> None:
        self.given = reference
        self.url = url and from_environment(url, f"--url {url}")
        self.missing = missing
        self._absent: Backend | None = None

    @property
    def reference(self) -> str | None:
        """The app as `module:attribute`: of -A, else of ROTA_APP, else of the project file."""
        return self.given or app_reference()

    def app(self) -> Rota:
        """Return the app, on the store that `--url` names if it is given."""
        if self.reference is None:
            raise InvalidOptions(
                'no app: name it in rota.toml (app = "jobs:app"), with -A jobs:app, in ROTA_APP, '
                "or as app under [tool.rota] in pyproject.toml"
            )
        app = load(self.reference)
        own = _own.setdefault(app, app.backend)
        if self.url is not None:
            core_of(app).store_url = url = self._store_url(self.url)
            own = connect(url)
        core_of(app).use(self._found(own))
        return app

    def backend(self) -> Backend:
        """Return the store: of `--url`, else of the app, else of ROTA_URL or the project folder.

        A `--url` without a namespace takes the namespace of the app.
        """
        if self.url is not None:
            return self._found(connect(self._store_url(self.url)))
        return self.app().backend if self.reference else self._found(connect(default_url()))

    def takes_default(self, app: Rota | None) -> bool:
        """Return whether the store is the default one: no option, setting or code names it."""
        return self.url is None and (app.settings if app else settings()).source("url") == "default"

    def _store_url(self, url: str) -> str:
        app = load(self.reference) if self.reference and lacks_namespace(url) else None
        return settings(url=url, namespace=app and app.settings.namespace).store_url

    def tz(self) -> str:
        """Return the default time zone: the app's, unless `--url` names the store; else the project's."""
        return load(self.reference).settings.tz if self.reference and self.url is None else settings().tz

    def configured_tz(self) -> str | None:
        """Return the default time zone, if the app or the project sets one; else None.

        An app that cannot be imported is ignored, because some commands work without an app.
        """
        try:
            found = load(self.reference).settings if self.reference else settings()
        except RotaError:
            found = settings()
        return None if found.source("tz") == "default" else found.tz

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[Client, None]:
        """A client of the store, closed at the end."""
        client = Client(self.backend())
        if self.reference and self.url is None:
            client.signature_of = core_of(load(self.reference)).registry.signature_of
        try:
            yield client
        finally:
            await client.close()

    def run(self, work: Coroutine[Any, Any, T], code: bool = False) -> T:
        """Run a command's coroutine. The app is imported before the event loop runs, because its module may run one.

        `code` says that the command needs the app, if there is one, even if `--url` names the store.
        """
        try:
            if self.reference and (code or self.url is None or lacks_namespace(self.url)):
                load(self.reference)
        except BaseException:
            work.close()
            raise
        with acting(Author(who(), "cli")):
            return asyncio.run(work)

    def _found(self, backend: Backend) -> Backend:
        """Return `backend`, or an empty store if its file is missing and the command allows that."""
        if not isinstance(backend, SqliteBackend):
            return backend
        backend.create = self.missing is Missing.CREATED
        if self.missing is not Missing.EMPTY or backend.exists():
            return backend
        if self._absent is None:
            self._absent = connect("memory://")
            sys.stderr.write(f"rota: {no_store(backend.path)}\n")
        return self._absent


def forget(app: Rota) -> None:
    """The next command of this process asks the app for its store again."""
    _own.pop(app, None)


def check_shared(backend: Backend) -> None:
    """Refuse a store that ends with this command."""
    if backend.url.startswith("memory:"):
        raise InvalidOptions("memory:// ends with this command; name a store that a worker shares (--url, ROTA_URL)")


_lent: dict[str, Rota] = {}
"""Apps by references that no import answers: those of factories, and those that a caller has in hand."""


@contextmanager
def lend(app: Rota) -> Generator[str]:
    """Give a reference to `app` until the block ends, for code that has an app and runs a command for it."""
    reference = f"app-in-hand:{id(app):x}"
    _lent[reference] = app
    try:
        yield reference
    finally:
        del _lent[reference]


def _made(reference: str, factory: Callable[[], object]) -> object:
    """Return what the factory of `module:create_app()` makes."""
    try:
        return factory()
    except Exception as error:
        raise InvalidOptions(_import_failed(reference, error)) from error


def _rota_of(found: object) -> object:
    """Return the app of rota in a Flask or FastAPI app that it was installed in."""
    extensions = getattr(found, "extensions", None)
    if isinstance(extensions, dict) and "rota" in extensions:
        return cast("dict[str, object]", extensions)["rota"]
    return getattr(getattr(found, "state", None), "rota", found)


def load(reference: str) -> Rota:
    """Return the app that `module:attribute` names; the attribute is `app` if none is named.

    The first import must not happen inside a running event loop: see `Target.run`.
    """
    if reference in _lent:
        return _lent[reference]
    module_name, _, attribute = reference.partition(":")
    attribute = attribute or "app"
    if module_name.endswith(".py") or "/" in module_name:
        dotted = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise InvalidOptions(f"{reference!r} is a file; write {dotted}:{attribute}")
    if not module_name or module_name.startswith("."):
        raise InvalidOptions(f"{reference!r} names no app; write module:attribute, for example tasks:app")
    if module_name not in sys.modules and _in_a_loop():
        raise AssertionError(f"{reference} must be imported before the event loop runs: use Target.run")
    make_importable()
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise InvalidOptions(_import_failed(reference, error)) from error
        raise InvalidOptions(_not_found(reference, error.name)) from error
    except (Exception, SystemExit) as error:
        raise InvalidOptions(_import_failed(reference, error)) from error
    app: object = module
    for part in attribute.removesuffix("()").split("."):
        app = getattr(app, part, None)
    if attribute.endswith("()") and callable(app):
        app = _made(reference, app)
    app = _rota_of(app)
    if isinstance(app, Rota):
        if attribute.endswith("()"):
            _lent[reference] = app  # a factory is called once
        return app
    raise InvalidOptions(f"{reference!r}: {attribute} in {module_name} is {_kind(app)}; {_apps_of(module)}")


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def make_importable() -> None:
    """Add the working directory and the project folder to `sys.path`, as `python -m` does.

    If the project folder is above the working directory, the latter may belong to another user. Its modules then come
    last, so that they replace no module of the project.
    """
    here, project = Path.cwd(), project_folder()
    for folder in (project, here):
        if str(folder) not in sys.path:
            first = folder == project or imports_first(folder)
            sys.path.insert(0 if first else len(sys.path), str(folder))


def _not_found(reference: str, missing: str) -> str:
    """Return the message for a missing module: where it was looked for, with a suggestion."""
    here = dict.fromkeys((Path.cwd(), project_folder()))
    names = [file.stem for folder in here for file in folder.glob("*.py")]
    where = " or ".join(map(str, here))
    hint = did_you_mean(missing, names)
    return f"{reference!r}: there is no module {missing} in {where}, nor is one installed{hint}"


def _import_failed(reference: str, error: BaseException) -> str:
    """Return the message for a failed import: the error, and the line of the user's code, unless settings are wrong."""
    place, trace, last = "", error.__traceback__, ""
    while trace is not None:
        file, last = trace.tb_frame.f_code.co_filename, str(trace.tb_frame.f_globals.get("__name__", ""))
        if not file.startswith("<frozen") and file != importlib.__file__ and not Path(file).is_relative_to(OURS):
            place = f" ({file}, line {trace.tb_lineno})"
        trace = trace.tb_next
    if isinstance(error, InvalidOptions) and last.startswith("rota.settings."):
        return str(error)
    return f"{reference!r} cannot be imported: {type(error).__name__}: {error}{place}"


def _kind(found: object) -> str:
    return "missing" if found is None else f"a {type(found).__name__}, not a Rota"


def _apps_of(module: object) -> str:
    names = [name for name, value in vars(module).items() if isinstance(value, Rota)]
    return f"its apps are: {', '.join(names)}" if names else "it holds no Rota at all"
