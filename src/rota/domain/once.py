"""Once per period: the name of what is done once, made of a key and a period. It is a key, a mark and a need."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from rota.domain import codec
from rota.domain.keys import check_key, digest
from rota.domain.period import Period
from rota.domain.run import NewRun, Origin

Once = Period | Callable[[datetime], str]
"""A kind of period, or a function that returns the name of the period of an aware datetime."""
NAME_LIMIT = 100
NAMED_BY_CODE = 400 * 86_400.0
"""Seconds for which marks of periods that a function names are kept: such a period may be a year."""
NO_ARGUMENTS = b"{}"


def check_once(once: object) -> Once:
    if isinstance(once, Period):
        return once
    if not callable(once):
        raise TypeError(f"once={once!r}: a period such as Period.day(tz='Europe/Paris'), or a function that names one")
    return cast("Once", once)


def check_storable(once: Once) -> Period:
    """Return `once` for a schedule, which may fire in a process without this code: so `once` must be a Period."""
    if not isinstance(once, Period):
        raise ValueError("schedules fire where this code may not be: let once= be a Period instead of a function")
    return once.stored()


def memory_of(once: Once) -> float:
    """Return for how many seconds a mark must be kept after it was written: as long as its period can last."""
    return once.longest if isinstance(once, Period) else NAMED_BY_CODE


def period_at(once: Once, at: float) -> str:
    """Return the name of the period of the instant `at`."""
    instant = datetime.fromtimestamp(at, UTC)
    if isinstance(once, Period):
        return once.name(instant)
    return check_period(once(instant))


def check_period(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= NAME_LIMIT or not name.isprintable() or "@" in name:
        raise ValueError(f"{name!r} is no name of a period: 1 to {NAME_LIMIT} printable characters without @")
    return name


def named(about: str | None, period: str) -> str:
    """Return `about@period`, or the period alone if `about` is empty."""
    return check_key(f"{about}@{period}" if about else period)


def period_of(name: str) -> str:
    """Return the period in a name that `named` made."""
    return name.rpartition("@")[2]


def once_in(run: NewRun, once: Once, now: float, defaults: Mapping[str, Any] = MappingProxyType({})) -> NewRun:
    """Return `run` as one that may succeed once in the period of its due time.

    Without a key, the arguments that differ from `defaults` are the key: an argument that is given as its default
    counts as not given.
    """
    period = period_at(once, max(now, run.due_at(now)))
    body = codec.decode(run.body)
    given = msgspec.json.decode(body.args, type=dict[str, Any])
    unusual = {name: value for name, value in given.items() if name not in defaults or defaults[name] != value}
    name = named(run.key or (digest(msgspec.json.encode(unusual, order="sorted")) if unusual else None), period)
    origin = replace(body.origin or Origin(), period=period)
    guards = replace(run.guards, unique="done")
    return replace(run, key=run.key or name, unique_key=name, guards=guards, body=codec.amend(run.body, origin))
