"""What a finding says is what the trigger does, and what a hint proposes does what it promises."""

import itertools
import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rota.domain.lint import LintTarget, lint
from rota.domain.triggers import Cron, Trigger
from tests.domain.lint.cases import NOW, findings
from tests.domain.triggers.strategies import ZONES


def proposed(text: str, code: str) -> Trigger:
    """What the hint says to write: its last text in quotes."""
    return Trigger.parse(re.findall(r"'([^']+)'", findings(text)[code].hint)[-1])


def local_days(trigger: Trigger, count: int) -> list[datetime]:
    return trigger.upcoming(NOW, count)


def test_both_day_fields_at_once() -> None:
    fires = local_days(proposed("0 9 13 * fri", "day-or-weekday"), 20)

    assert {(fire.day, fire.isoweekday(), fire.hour) for fire in fires} == {(13, 5, 9)}


def test_the_second_monday() -> None:
    fires = local_days(proposed("0 9 8-14 * mon", "day-or-weekday"), 24)

    assert all(8 <= fire.day <= 14 and fire.isoweekday() == 1 for fire in fires)
    assert len({(fire.year, fire.month) for fire in fires}) == 24


def test_the_last_day_instead_of_the_31st() -> None:
    assert str(proposed("0 0 31 * *", "short-months")) == "cron 0 0 L * *"
    assert str(proposed("0 0 31W * *", "short-months")) == "cron 0 0 LW * *"
    assert str(proposed("monthly 31 08:30 Europe/Paris", "short-months")) == "monthly -1 08:30 Europe/Paris"


def test_working_days_by_name() -> None:
    assert {fire.isoweekday() for fire in local_days(proposed("0 9 * * 0-4", "weekday-numbers"), 10)} == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(("text", "pace"), [("*/7 * * * *", 420), ("0 */5 * * *", 18_000), ("0 0 */2 * *", 172_800)])
def test_an_even_pace(text: str, pace: float) -> None:
    fires = proposed(text, "uneven-step").anchored(NOW).upcoming(NOW, 50)

    assert {(b - a).total_seconds() for a, b in itertools.pairwise(fires)} == {pace}


def test_a_time_of_day_for_a_number_of_days() -> None:
    found = findings("every 1d", zone="Europe/Paris")["drift"]

    assert found.hint == "For a time of day write 'daily 09:00 Europe/Paris'."


FIXED = st.tuples(st.integers(0, 59), st.integers(0, 4), st.sampled_from(["vixie", "skip", "twice", "each"]))


@settings(max_examples=100, deadline=None)
@given(time=FIXED, zone=st.sampled_from(ZONES))
def test_what_is_said_of_a_clock_change_is_what_happens(time: tuple[int, int, str], zone: str) -> None:
    """Of every day of the coming years: it fires once, at its time, but on the days that a finding may name."""
    minute, hour, dst = time
    cron = Cron(f"{minute} {hour} * * *", zone, dst)
    said = {finding.code: finding.message for finding in lint(LintTarget(trigger=cron), NOW)}
    fires = [fire.astimezone(ZoneInfo(zone)) for fire in cron.upcoming(NOW, 4 * 365)]
    moved = [fire for fire in fires if (fire.hour, fire.minute) != (hour, minute)]
    days = [fire.date() for fire in fires]
    missing = [a + timedelta(days=1) for a, b in itertools.pairwise(days) if b - a > timedelta(days=1)]
    twice = [a for a, b in itertools.pairwise(days) if a == b]

    assert bool(moved or missing) == ("clock-gap" in said)
    if moved:
        assert f"On {moved[0]:%Y-%m-%d} the clock in {zone}" in said["clock-gap"]
        assert f"rota fires at {moved[0]:%H:%M} instead" in said["clock-gap"]
    if missing:
        assert f"On {missing[0]:%Y-%m-%d} the clock in {zone}" in said["clock-gap"]
        assert "rota does not fire then" in said["clock-gap"]
    if twice:
        assert f"On {twice[0]:%Y-%m-%d} the clock in {zone}" in said["clock-fold"]
    assert bool(twice) == ("rota fires both times" in said.get("clock-fold", ""))


@settings(max_examples=60, deadline=None)
@given(step=st.integers(2, 59), start=st.integers(0, 59))
def test_a_step_is_called_uneven_exactly_when_one_gap_is_shorter(step: int, start: int) -> None:
    assume(start + step < 60)
    cron = Cron(f"{start}/{step} * * * *", "UTC")
    fires = cron.upcoming(datetime(2027, 1, 1, tzinfo=UTC), 200)
    gaps = {(b - a) // timedelta(minutes=1) for a, b in itertools.pairwise(fires)}
    found = {finding.code: finding.message for finding in lint(LintTarget(trigger=cron), NOW)}

    assert ("uneven-step" in found) == (min(gaps) < step)
    if "uneven-step" in found:
        assert f"comes only {min(gaps)} minute" in found["uneven-step"]
