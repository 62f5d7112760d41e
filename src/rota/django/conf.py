"""The setting `ROTA` of a Django project, checked."""

import sys
from collections.abc import Mapping
from typing import Literal, cast

import msgspec
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from rota.domain.text import did_you_mean

Transactions = Literal["auto", "outbox", "on_commit", "off"]


class TestConf(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="upper"):
    """What holds while Django's test environment is set up."""

    __test__ = False  # for pytest

    url: str = "memory://"


class Conf(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="upper"):
    """The setting `ROTA`. Everything that it does not say comes from `ROTA_*` variables and rota.toml."""

    url: str | None = None
    """The store. By default `ROTA_URL`, then SQLite in `.rota/` beside manage.py."""
    embedded: Literal["auto"] | bool = "auto"
    """Whether the serving process runs the engine."""
    transactions: Transactions = "auto"
    """How a run is enqueued while a transaction is open."""
    task_modules: tuple[str, ...] = ("tasks",)
    """The modules of each installed app that define tasks."""
    database: str = "default"
    """The alias of the database whose transactions `enqueue` takes part in."""
    test: TestConf = TestConf()


_read: tuple[object, Conf] = (None, Conf())


def conf() -> Conf:
    """Return the setting `ROTA` as it is now; raise ImproperlyConfigured if it is wrong."""
    global _read
    raw: object = getattr(settings, "ROTA", None)
    if raw is None:
        return Conf()
    if _read[0] is not raw:  # another object after `override_settings`
        _read = (raw, _checked(raw))
    return _read[1]


def _checked(raw: object) -> Conf:
    if not isinstance(raw, Mapping):
        raise ImproperlyConfigured(f"ROTA = {raw!r:.80}: expected a dictionary")
    known = [name.upper() for name in Conf.__struct_fields__]
    given = cast("Mapping[object, object]", raw)
    for name in given:
        if name not in known:
            hint = did_you_mean(str(name), known, f"; there are: {', '.join(known)}")
            raise ImproperlyConfigured(f"ROTA has no key {name!r}{hint}")
    try:
        return msgspec.convert(dict(given), Conf)
    except msgspec.ValidationError as error:
        raise ImproperlyConfigured(f"ROTA: {error}") from None


def in_tests() -> bool:
    """Return whether Django's test environment is set up in this process."""
    utils = sys.modules.get("django.test.utils")
    return utils is not None and hasattr(getattr(utils, "_TestState", None), "saved_data")
