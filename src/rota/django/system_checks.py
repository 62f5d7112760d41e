"""What `manage.py check` says of rota: E for what cannot work, W for what may surprise."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register

from rota.django import discovery
from rota.django.conf import conf


@register("rota")
def check_settings(app_configs: object, **kwargs: Any) -> list[CheckMessage]:
    """Look at the settings and at the modules of tasks; open nothing."""
    found: list[CheckMessage] = []
    alias = conf().database
    if alias not in settings.DATABASES:
        known = ", ".join(sorted(settings.DATABASES))
        hint = f"Name one of: {known}."
        found.append(Error(f'ROTA["DATABASE"] is {alias!r}, and DATABASES has no such alias.', hint, id="rota.E001"))
    if (problem := _url_problem()) is not None:
        found.append(Error(f"The URL of the store is wrong: {problem}", 'Correct ROTA["URL"].', id="rota.E002"))
    for module, why in sorted(discovery.problems.items()):
        hint = "Its tasks are unknown in every process until it can be imported."
        found.append(checks.Warning(f"{module} cannot be imported: {why}", hint, id="rota.W001"))
    return found


@register(Tags.database, deploy=True)
def check_store(app_configs: object, databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """With --deploy: does the store answer?"""
    from rota.django.project import app
    from rota.errors import RotaError
    from rota.stores.sqlite import SqliteBackend

    if _url_problem() is not None:
        return []
    rota = app()
    if rota.backend.url.startswith("memory:"):
        hint = "Name a store that other processes share: SQLite, Redis or PostgreSQL."
        return [
            checks.Warning("The store is memory://, which each process has alone and forgets.", hint, id="rota.W002")
        ]
    if isinstance(rota.backend, SqliteBackend) and not rota.backend.exists():
        return []  # the engine will make the file
    try:
        rota.portal.call(_answers)
    except (RotaError, OSError) as error:
        return [checks.Warning(f"The store does not answer: {error}", f"It is {rota.backend.url}.", id="rota.W003")]
    return []


async def _answers() -> None:
    """Open the store for one question, without the patience of a client that has work to submit."""
    from rota.django.project import app

    async with app().backend.open() as store:
        await store.depths()


def _url_problem() -> str | None:
    from rota.django.project import app
    from rota.errors import RotaError

    try:
        assert app().backend.url
    except (RotaError, ValueError) as error:
        return str(error)
    return None
