"""Periods in an app's own format."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota import Period
from rota.domain.period_formats import Formats


def formats(*periods: Period) -> Formats:
    learnt = Formats()
    for period in periods:
        learnt.learn(period)
    return learnt


@given(st.dates(date(1970, 1, 1), date(9999, 12, 31)), st.sampled_from(["%d%m%Y", "%d.%m.%Y", "%d %b %Y", "%Y%j"]))
def test_every_day_is_read_as_it_is_written(day: date, shape: str) -> None:
    ours = formats(Period.day(format=shape))

    assert ours.written(day.isoformat()) == day.strftime(shape)
    assert ours.read(day.strftime(shape)) == ours.read(day.isoformat()) == day.isoformat()


def test_months_have_their_own() -> None:
    ours = formats(Period.day(format="%d%m%Y"), Period.month(format="%m/%Y"), Period.week())

    assert [ours.written(name) for name in ("2026-11", "2026-11-15", "2026-W46", "race 7")] == [
        "11/2026",
        "15112026",
        "2026-W46",
        "race 7",
    ]
    assert ours.read("11/2026") == "2026-11"


def test_what_is_no_day_in_that_format_is_left_as_it_is() -> None:
    ours = formats(Period.day(format="%d%m%Y"))

    assert [ours.read(text) for text in ("1112025", "99112026", "race 7", "")] == ["1112025", "99112026", "race 7", ""]
    assert ours.written("2026-99-99") == "2026-99-99"


@pytest.mark.parametrize(
    ("period", "why"),
    [
        (Period.day(format="%d%m"), "does not tell one day from another"),
        (Period.day(format="%d%m%y@"), "does not tell one day from another"),
        (Period.day(format="%Y-%d-%m"), "usual name of another period"),
        (Period.day(format="%m-%Q"), "cannot be read back"),
        (Period("week", None, "%G%V"), "weeks have only their usual names"),
        (Period("hour", None, "%d%m%Y%H"), "hours have only their usual names"),
    ],
)
def test_a_format_that_could_mislead_is_refused(period: Period, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Formats().learn(period)
