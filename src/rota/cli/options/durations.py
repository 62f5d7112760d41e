"""Durations as people type them."""

from rota.domain.triggers.durations import parse_duration
from rota.errors import InvalidOptions


def seconds_of(text: str | None, option: str) -> float | None:
    """`90`, `90s`, `5m`, `2h` or `1d` in seconds; None stays None."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return parse_duration(text).total_seconds()
    except ValueError as error:
        raise InvalidOptions(f"{option}: {error}") from None
