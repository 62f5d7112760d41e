"""Once per period: one name says what a run is about and when, and is its key, its mark and its place in a flow."""

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
"""A kind of period, or a function that names the period of an (aware) instant."""
NAME_LIMIT = 100
NAMED_BY_CODE = 400 * 86_400.0
"""Seconds for which the marks of periods are kept that a function names: it may mean a year."""
NO_ARGUMENTS = b"{}"


def check_once(once: object) -> Once:
    if isinstance(once, Period):
        return once
    if not callable(once):
        raise TypeError(f"once={once!r}: a period such as Period.day(tz='Europe/Paris'), or a function that names one")
    return cast("Once", once)


def check_storable(once: Once) -> Period:
    """Of a schedule: it may fire where the code is not."""
    if not isinstance(once, Period):
        raise ValueError("schedules fire where this code may not be: let once= be a Period instead of a function")
    return once.stored()


def memory_of(once: Once) -> float:
    """Seconds for which a mark may still be read after it was written, because its period goes on."""
    return once.longest if isinstance(once, Period) else NAMED_BY_CODE


def period_at(once: Once, at: float) -> str:
    """The name of the period that holds this instant."""
    instant = datetime.fromtimestamp(at, UTC)
    if isinstance(once, Period):
        return once.name(instant)
    return check_period(once(instant))


def check_period(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= NAME_LIMIT or not name.isprintable() or "@" in name:
        raise ValueError(f"{name!r} is no name of a period: 1 to {NAME_LIMIT} printable characters without @")
    return name


def named(about: str | None, period: str) -> str:
    """What is done once: the period alone where it is about nothing else."""
    return check_key(f"{about}@{period}" if about else period)


def period_of(name: str) -> str:
    """The period in such a name."""
    return name.rpartition("@")[2]


def once_in(run: NewRun, once: Once, now: float, defaults: Mapping[str, Any] = MappingProxyType({})) -> NewRun:
    """The run as one that may succeed once in the period of its due time. What is given as its parameter's default is
    as good as not given."""
    period = period_at(once, max(now, run.due_at(now)))
    body = codec.decode(run.body)
    given = msgspec.json.decode(body.args, type=dict[str, Any])
    unusual = {name: value for name, value in given.items() if name not in defaults or defaults[name] != value}
    name = named(run.key or (digest(msgspec.json.encode(unusual, order="sorted")) if unusual else None), period)
    origin = replace(body.origin or Origin(), period=period)
    guards = replace(run.guards, unique="done")
    return replace(run, key=run.key or name, unique_key=name, guards=guards, body=codec.amend(run.body, origin))
