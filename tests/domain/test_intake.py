"""Intake: what a caller may ask for, and what is said about the rest."""

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from rota.domain import codec
from rota.domain.decision import Decision, Reason
from rota.domain.ids import retry_id
from rota.domain.intake import Options, Span, new_run, retry_of
from rota.domain.policy import Policy, Retry
from rota.domain.run import NewRun, Origin, Run, State, after

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
PARIS = timezone(timedelta(hours=1))


def new(args: bytes = b"{}", /, **options: Any) -> NewRun:
    return new_run("id", "greet", args, Policy(), Options(**options), priority=3)


def test_a_plain_submit_is_due_at_once_with_the_priority_of_its_task() -> None:
    assert new() == NewRun(id="id", task="greet", body=b'{"v":1,"args":{}}', priority=3)


def test_options_go_before_the_task() -> None:
    assert new(priority=0).priority == 0


@pytest.mark.parametrize("span", [90, 90.0, timedelta(seconds=90)])
def test_a_span_is_seconds_or_a_timedelta(span: Span) -> None:
    asked = new(delay=span, expires=span)
    assert (asked.delay, asked.expires_after, asked.expires_at) == (90.0, 90.0, None)
    assert (asked.due_at(1000.0), asked.expiry(1000.0)) == (1090.0, 1180.0)


def test_an_instant_is_the_same_in_any_zone() -> None:
    asked = new(at=NOON.astimezone(PARIS), expires=NOON)
    assert (asked.at, asked.expires_at) == (NOON.timestamp(), NOON.timestamp())
    assert (asked.due_at(5.0), asked.expiry(5.0)) == (NOON.timestamp(), NOON.timestamp())


def test_a_run_expires_after_it_is_due_even_if_that_is_past() -> None:
    assert new(at=NOON, expires=60).expiry(0.0) == NOON.timestamp() + 60
    late = NOON.timestamp() + 1000
    assert new(at=NOON, expires=60).expiry(late) == late + 60


@pytest.mark.parametrize("name", ["delay", "expires"])
@pytest.mark.parametrize("span", [-1, -0.001, math.nan, math.inf, -math.inf, 1e12, timedelta(days=-1)])
def test_a_span_is_from_now_to_ten_years(name: str, span: Span) -> None:
    with pytest.raises(ValueError, match=f"^{name}=.*from 0 seconds to ten years"):
        new(**{name: span})


@pytest.mark.parametrize("span", ["60", True, [60], b"1", 1j])
def test_a_span_is_a_number(span: object) -> None:
    with pytest.raises(TypeError, match=r"^delay=.*a number of seconds or a timedelta"):
        new(delay=span)


@pytest.mark.parametrize("name", ["at", "expires"])
def test_an_instant_without_a_zone_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}=.*has no time zone; use"):
        new(**{name: NOON.replace(tzinfo=None)})


@pytest.mark.parametrize("at", [NOON.timestamp(), "2026-11-15", NOON.date()])
def test_an_instant_is_a_datetime(at: object) -> None:
    with pytest.raises(TypeError, match=r"^at=.*an aware datetime"):
        new(at=at)


@pytest.mark.parametrize("at", [datetime(1969, 1, 1, tzinfo=UTC), datetime.min.replace(tzinfo=UTC)])
def test_an_instant_is_no_earlier_than_unix_time(at: datetime) -> None:
    with pytest.raises(ValueError, match=r"^at=.*from 1970 to 9999"):
        new(at=at)


def test_a_run_is_due_by_one_rule() -> None:
    with pytest.raises(ValueError, match="delay= and at= both say"):
        new(at=NOON, delay=0)


@pytest.mark.parametrize("priority", [-100, 0, 100])
def test_a_priority_is_from_minus_to_plus_a_hundred(priority: int) -> None:
    assert new(priority=priority).priority == priority


@pytest.mark.parametrize("priority", [-101, 101, 1.5, "1", True, math.nan])
def test_any_other_priority_is_refused(priority: object) -> None:
    with pytest.raises(ValueError, match=r"^priority=.*a whole number from -100 to 100"):
        new(priority=priority)


def test_arguments_may_take_a_quarter_of_a_mebibyte() -> None:
    fits = b'"' + b"x" * (codec.ARGS_LIMIT - 2) + b'"'
    assert bytes(codec.decode(new(fits).body).args) == fits
    with pytest.raises(ValueError, match=r"^the arguments of greet take 262,145 bytes, more than the 262,144"):
        new(fits + b" ")


def test_an_instant_is_never_rounded_to_an_earlier_one() -> None:
    for now in (0.0, 1763200000.123455, 1763200000.1234549, 9e9 + 1e-5 / 3):
        later = after(now, 1 / 3)
        assert 0 <= later - (now + 1 / 3) <= 2e-5
        assert after(later, 0) == later


def test_a_retry_does_the_same_again_under_its_own_id() -> None:
    body = codec.encode(b'{"a":1}', Origin(), Policy(retry=Retry(2)))
    old = Run(id="old", task="greet", key="k", priority=7, state=State.FAILED, failures=3, body=body)
    again = retry_of(old)
    assert again == NewRun(
        id=retry_id("old"), task="greet", key="k", priority=7, body=codec.amend(body, Origin("retry", "old"))
    )
    assert retry_of(old) == again


def test_a_decision_is_true_when_there_is_a_run() -> None:
    assert Decision("id", Reason.ACCEPTED)
    assert not Decision("id", Reason.QUEUE_FULL)
