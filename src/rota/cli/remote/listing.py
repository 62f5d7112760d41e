"""Lists of a service, page by page, and filters as its queries."""

import re
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from zoneinfo import ZoneInfo

from rota.cli.options.times import read_instant, seconds_of
from rota.cli.runs.filters import Filter
from rota.client.service import Query, Service

MOST = 10_000
"""Things of one list."""


def listed(service: Service, path: str, query: Query) -> list[dict[str, Any]]:
    """Return all things of a list, at most MOST."""
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while len(found) < MOST:
        page = service.send("GET", path, query={**query, **({"cursor": cursor} if cursor else {})}).json()
        found += page["items"]
        cursor = page.get("next")
        if not cursor:
            break
    return found


def filter_query(filter: Filter) -> dict[str, Any]:
    """Return the conditions that were given. `2h` is 2 hours ago by this machine's clock."""
    given: dict[str, Any] = {}
    for field in fields(filter):
        value = getattr(filter, field.name)
        if value != field.default:
            given[field.name] = list(map(str, cast("tuple[object, ...]", value))) if isinstance(value, tuple) else value
    for name in ("since", "until"):
        if name in given:
            given[name] = instant_text(str(given[name]), f"--{name}")
    return given


def instant_text(text: str, option: str) -> str:
    if re.fullmatch(r"[\d.]+\s*[a-z]*", text):
        at = datetime.now(UTC) - timedelta(seconds=seconds_of(text, option) or 0.0)
    else:
        at = read_instant(text, option, ZoneInfo("UTC"))
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
