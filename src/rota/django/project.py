"""The `Rota` of a Django project, made when it is first used."""

import threading
from pathlib import Path
from urllib.parse import quote

from django.conf import settings

from rota.app.app import Rota
from rota.app.core import core_of
from rota.client.late_store import LateStore
from rota.django import connections, databases, discovery, outbox_checks
from rota.django.adoption import adopt_found
from rota.django.conf import Conf, conf, in_tests
from rota.django.outbox import sweeping
from rota.engine.world import World
from rota.settings import load
from rota.settings.project import DATABASE

_lock = threading.RLock()
_made: list[Rota] = []
_adopted_from = [0]  # the number of modules whose tasks the app has
_known: tuple[tuple[bool, Conf], str] | None = None  # what the URL was made of, and the URL


def app() -> Rota:
    """Return the app of this project: one for each process, whatever thread asks."""
    with _lock:
        if not _made:
            made = Rota(store_url, tz=settings.TIME_ZONE, resources=sweeping)
            core_of(made).use(LateStore(store_url, databases.connect))
            core_of(made).registry.around.append(connections.cared_for)
            core_of(made).more_checks.append(outbox_checks.of_outbox)
            core_of(made).world = World(thread_ends=connections.close_all)
            _made.append(made)
        if _adopted_from[0] != len(discovery.modules):
            _adopted_from[0] = len(discovery.modules)
            adopt_found(_made[0])
        return _made[0]


def store_url() -> str:
    """Return the URL of the project's store: in tests that of `ROTA["TEST"]`, else `ROTA["URL"]`, `ROTA_URL` or
    rota.toml, else SQLite in the project's folder."""
    global _known
    asked = in_tests(), conf()
    if _known is None or _known[0] != asked:  # files and variables are read once; settings change in tests
        _known = asked, _found_url(*asked)
    return databases.current(_known[1])


def _found_url(tested: bool, found: Conf) -> str:
    if tested:
        return found.test.url
    if found.url is not None:
        return load(url=found.url).store_url
    loaded = load()
    return loaded.store_url if loaded.source("url") != "default" else _beside_the_project()


def _beside_the_project() -> str:
    folder = Path(getattr(settings, "BASE_DIR", None) or Path.cwd())
    return f"sqlite:///{quote(str(folder / DATABASE))}"
