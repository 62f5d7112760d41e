"""What `app.plan` takes as an instant."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from rota.schedules.plans import normalize_instant


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (1_763_211_600, 1_763_211_600.0),
        (1_763_211_600.5, 1_763_211_600.5),
        (1_763_211_600_000, 1_763_211_600.0),
        (datetime(2025, 11, 15, 13, 0, tzinfo=UTC), 1_763_211_600.0),
        (datetime(2025, 11, 15, 14, 0, tzinfo=ZoneInfo("Europe/Paris")), 1_763_211_600.0),
    ],
)
def test_seconds_milliseconds_and_datetimes_are_instants(value: object, seconds: float) -> None:
    assert normalize_instant(value) == seconds


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), None, "now", True, datetime(2026, 1, 1)])
def test_what_is_no_instant_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        normalize_instant(value)
