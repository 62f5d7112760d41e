"""Kinds: of which kind an option must be. A value of the wrong kind is refused where the code gives it, because a
published one would have to be read by every process that shares the store."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, cast


class Kind(NamedTuple):
    """`fits` checks a value, `words` says what to write instead."""

    fits: Callable[[object], bool]
    words: str


def instance_of(*types: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, types)


def is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_text(value: object) -> bool:
    return isinstance(value, str)


def is_name(value: object) -> bool:
    return isinstance(value, str) and value != ""


def is_class_of_errors(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def members(value: object) -> Iterable[object]:
    return cast("Iterable[object]", value)


def optional(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or fits(value)


FLAG = Kind(instance_of(bool), "True or False")
NAMED = Kind(is_name, "a text that is not empty")

STRUCTS: dict[str, dict[str, Kind]] = {
    "Retry": {
        "rules": Kind(
            optional(lambda rules: instance_of(Mapping)(rules) and all(map(is_class_of_errors, members(rules)))),
            "exception classes with a Retry each, e.g. rules={ValueError: Retry(0)}",
        ),
        "after": Kind(optional(callable), "a function of (failures, failure) that returns seconds, or None"),
    },
    "Rate": {
        "per": Kind(is_number, "a number of seconds, e.g. Rate(100, per=60)"),
        "per_key": FLAG,
    },
    "Breaker": {
        "failures": Kind(is_whole, "a whole number of failed runs, at least 1"),
    },
    "Activity": {
        "after": Kind(is_number, "a number of seconds, e.g. Activity(after=60)"),
    },
    "UserKey": {
        "device": FLAG,
        "agent": FLAG,
        "default_device": NAMED,
        "default_agent": NAMED,
    },
}
"""The kinds of the options of each policy. The bounds of numbers are checked by the policy itself."""


def check_struct(policy: object, parts: Mapping[str, Kind] = MappingProxyType({})) -> None:
    """Raise ValueError if a field of `policy` is of the wrong kind. `parts` are the kinds of fields that hold other
    policies."""
    name = type(policy).__name__
    for option, kind in (STRUCTS[name] | dict(parts)).items():
        if not kind.fits(value := getattr(policy, option)):
            raise ValueError(f"{name}({option}={value!r}): {kind.words}")


def check_options(options: Mapping[str, object], kinds: Mapping[str, Kind]) -> None:
    """Raise TypeError if one of `options` is of the wrong kind."""
    for option, value in options.items():
        kind = kinds.get(option)
        if kind is not None and not kind.fits(value):
            raise TypeError(f"{option}={value!r}: {kind.words}")
