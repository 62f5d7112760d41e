"""Sizes of memory, as people type them."""

import re

from rota.errors import InvalidOptions

UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def bytes_of(text: str | None, option: str) -> int | None:
    """Return `500M` or `2GB` in bytes; None stays None. A number without a unit is refused: it could mean anything."""
    if text is None:
        return None
    found = re.fullmatch(r"([1-9]\d{0,5}(?:\.\d{1,3})?) ?([kmgt])(?:i?b)?", text.strip(), re.IGNORECASE | re.ASCII)
    if found is None:
        raise InvalidOptions(f"{option} {text}: a number and a unit, such as 500M or 2G")
    return int(float(found[1]) * UNITS[found[2].lower()])
