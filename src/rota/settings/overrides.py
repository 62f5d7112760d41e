"""Overrides: what an operator changes of a task without touching its code."""

from typing import Any, TypeVar

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from rota.domain.intake import check_priority
from rota.domain.policy import Backoff, Limit, Lost, Policy, Rate, Retry
from rota.domain.schedule import CatchUp, Overlap
from rota.domain.triggers import Trigger
from rota.errors import InvalidOptions
from rota.settings.reading import Seconds

S = TypeVar("S", bound=Struct)


def said_in(part: Struct) -> dict[str, Any]:
    """The fields that say something."""
    fields = ((name, getattr(part, name)) for name in part.__struct_fields__)
    return {name: value for name, value in fields if value is not UNSET}


class RetryOverride(Struct, frozen=True, kw_only=True):
    limit: int | UnsetType = UNSET
    backoff: Backoff | UnsetType = UNSET
    delay: Seconds | UnsetType = UNSET
    max_delay: Seconds | UnsetType = UNSET
    jitter: float | UnsetType = UNSET

    def __post_init__(self) -> None:
        Retry(**said_in(self))


class LimitOverride(Struct, frozen=True, kw_only=True):
    total: int | UnsetType = UNSET
    per_key: int | UnsetType = UNSET

    def __post_init__(self) -> None:
        Limit(**said_in(self))


class RateOverride(Struct, frozen=True, kw_only=True):
    n: int | UnsetType = UNSET
    per: Seconds | UnsetType = UNSET
    burst: int | UnsetType = UNSET
    per_key: bool | UnsetType = UNSET

    def __post_init__(self) -> None:
        said: dict[str, Any] = {"n": 1} | said_in(self)
        Rate(**said)


PARTS: dict[str, tuple[type[Struct], type[Struct]]] = {
    "retry": (RetryOverride, Retry),
    "limit": (LimitOverride, Limit),
    "rate": (RateOverride, Rate),
}
"""The fields that are tables. A bare number is their first field, as in `Retry(5)`, `Limit(10)`, `Rate(100)`."""


class TaskOverride(Struct, frozen=True, kw_only=True):
    """`[tasks.NAME]`: what is UNSET stays as the code says it."""

    enabled: bool | UnsetType = UNSET
    timeout: Seconds | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    description: str | UnsetType = UNSET
    max_pending: int | UnsetType = UNSET
    retry: RetryOverride | UnsetType = UNSET
    limit: LimitOverride | UnsetType = UNSET
    rate: RateOverride | UnsetType = UNSET
    max_losses: int | UnsetType = UNSET
    lost: Lost | UnsetType = UNSET
    schedule: str | UnsetType = UNSET
    overlap: Overlap | UnsetType = UNSET
    catch_up: CatchUp | UnsetType = UNSET
    grace: Seconds | UnsetType = UNSET

    def __post_init__(self) -> None:
        said = said_in(self)
        Policy(**{name: said[name] for name in ("timeout", "max_losses", "lost") if name in said})
        check_priority(said.get("priority", 0))
        if "schedule" in said:
            Trigger.parse(said["schedule"])
        if said.get("max_pending", 1) < 1:
            raise ValueError(f"max_pending={self.max_pending!r}: at least 1")

    def over(self, options: S) -> S:
        """The options of a task, a Struct with the fields of this one, with what is said here instead of theirs."""
        changes = said_in(self)
        try:
            for name in PARTS.keys() & changes.keys():
                changes[name] = _combined(name, getattr(options, name), changes[name])
        except ValueError as error:
            raise InvalidOptions(str(error)) from None
        return replace(options, **changes) if changes else options


def _combined(name: str, base: object, part: Struct) -> object:
    said, kind = said_in(part), PARTS[name][1]
    if isinstance(base, Struct):
        return replace(base, **said)
    if base is not None:
        return base  # a slip in the code, whose own refusal says more
    if kind is Rate and "n" not in said:
        raise ValueError("the settings change a rate and the code has none; say its n as well")
    return kind(**said)
