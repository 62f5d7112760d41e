"""croniter, if it can be imported, as a second opinion on cron lines. Cron itself is no library."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import Any
from zoneinfo import ZoneInfo

from rota.domain.triggers import Cron
from rota.movein.fires import clock_changes, fires_of
from rota.movein.plan import Fires

SINGLE = re.compile(r"\b(\w+)-\1(?:/\d+)?(?![\w-])")
"""`5-5`: croniter takes it for every value."""


def croniter_fires(expr: str, tz: str, dst: str = "vixie") -> Fires | None:
    """Return croniter's fires. On the days of a clock change, where croniter itself is wrong, they are rota's own."""
    if find_spec("croniter") is None:
        return None

    def fires(start: datetime, end: datetime) -> Iterator[datetime]:
        from croniter import croniter  # type: ignore[import-untyped]

        zone, made, plain = ZoneInfo(tz), Cron(expr, tz, dst), SINGLE.sub(r"\1", expr)
        changes = clock_changes(tz, start - timedelta(days=2), end + timedelta(days=2))
        at = start
        for change in [*changes, None]:
            before = end if change is None else min(end, change.at - timedelta(days=1))
            walk: Any = croniter(
                plain, at.astimezone(zone).replace(tzinfo=None), ret_type=datetime, implement_cron_bug=True
            )
            while at < before:
                reading: datetime = walk.get_next()
                fire = reading.replace(tzinfo=zone).astimezone(UTC)
                if fire > before:
                    break
                at = fire
                yield fire
            at = max(at, before)
            if change is not None and change.at - timedelta(days=1) < end:
                after = min(end, change.at + timedelta(days=1))
                yield from fires_of(made, at, after)
                at = max(at, after)

    return fires
