"""Headers: names and texts that travel with a run, with its retries and with the runs that its handler submits."""

from collections.abc import Mapping
from typing import cast

HEADERS = 32
"""The most headers that a run may have."""
HEADERS_LIMIT = 8 * 1024
"""The most bytes of all names and values together."""
NAME_LIMIT = 100


def merged(inherited: Mapping[str, str], own: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """Return the headers of a run that has `own` headers and gets `inherited` ones; its own go first."""
    return {**inherited, **(own or {})} if inherited else own


def check_headers(headers: object) -> dict[str, str]:
    """Return `headers` if every store can keep them; else raise TypeError or ValueError."""
    if not isinstance(headers, Mapping):
        raise TypeError(f'headers={headers!r}: names with texts, e.g. headers={{"tenant": "acme"}}')
    found: dict[str, str] = {}
    for name, value in cast("Mapping[object, object]", headers).items():
        if not isinstance(name, str) or not 0 < len(name) <= NAME_LIMIT or not name.isprintable():
            raise ValueError(f"headers: the name {name!r} is not 1 to {NAME_LIMIT} printable characters")
        if not isinstance(value, str):
            raise ValueError(f"headers: {name}={value!r} is not a text")
        found[name] = value
    if len(found) > HEADERS:
        raise ValueError(f"headers: {len(found)} names, more than the {HEADERS} that a run may carry")
    try:
        size = sum(len(name.encode()) + len(value.encode()) for name, value in found.items())
    except UnicodeEncodeError:
        raise ValueError("headers: a value has half a surrogate pair, which is no text") from None
    if size > HEADERS_LIMIT:
        raise ValueError(f"headers: {size:,} bytes, more than the {HEADERS_LIMIT:,} that a run may carry")
    return found
