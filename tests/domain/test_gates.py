"""Gates: how many may start, and when."""

from bisect import bisect_left
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.gates import Gate, Pass, RateState
from rota.domain.policy import Limit, Rate

# Times are multiples of 1/1024 s: sums and differences of them are exact.
TICK = 1 / 1024
rates = st.builds(
    lambda n, ticks, burst: Rate(n, per=n * ticks * TICK, burst=burst),
    st.integers(1, 8),
    st.integers(1, 4096),
    st.integers(1, 5),
)
lulls = st.lists(st.integers(0, 6000).map(lambda ticks: ticks * TICK), min_size=1, max_size=120)


def starts(rate: Rate, waits: list[float], now: float = 1024.0) -> list[float]:
    """Someone looks again and again, and starts what may start."""
    state, seen = RateState(), list[float]()
    for wait in waits:
        now += wait
        while state.opens_at(rate) <= now:
            state = state.taken(rate, now)
            seen.append(now)
    return seen


@given(rates, lulls)
def test_no_window_sees_more_starts_than_the_rate_and_its_burst(rate: Rate, waits: list[float]) -> None:
    seen = starts(rate, waits)
    for first, start in enumerate(seen):
        assert bisect_left(seen, start + rate.per) - first <= rate.n + rate.burst - 1


@given(rates, lulls)
def test_no_instant_sees_more_than_the_burst(rate: Rate, waits: list[float]) -> None:
    seen = starts(rate, waits)
    assert all(seen.count(start) <= rate.burst for start in seen)


@given(rates, lulls)
def test_whoever_waits_until_it_opens_loses_nothing(rate: Rate, waits: list[float]) -> None:
    """A worker that always looks at the very instant starts one every interval, for ever."""
    state, now = RateState(), 1024.0
    for _ in range(rate.burst + len(waits)):
        now = max(now, state.opens_at(rate))
        state = state.taken(rate, now)
    assert now == 1024.0 + len(waits) * rate.interval


@given(rates, lulls, st.integers(0, 20_000))
def test_the_tokens_of_an_instant_are_those_that_can_be_taken(rate: Rate, waits: list[float], later: int) -> None:
    state, now = RateState(), 1024.0
    for wait in waits:
        now += wait
        if state.opens_at(rate) <= now:
            state = state.taken(rate, now)
    now += later * TICK
    tokens, taken = state.tokens(rate, now), 0
    while state.opens_at(rate) <= now:
        state, taken = state.taken(rate, now), taken + 1
    assert tokens == taken


def test_a_lull_fills_the_burst_and_no_more() -> None:
    rate = Rate(1, per=10, burst=3)
    assert starts(rate, [0, 10, 1000, 5, 5]) == [1024.0] * 3 + [1034.0] + [2034.0] * 3 + [2044.0]


def gate(limit: Limit | None = None, rate: Rate | None = None, running: int = 0) -> Gate:
    return Gate(limit, rate, running, RateState())


def test_a_full_task_is_shut_and_a_full_key_is_parked() -> None:
    limited = gate(Limit(3, per_key=2), running=1)
    limited.know("k", 1, RateState())
    limited.know("l", 0, RateState())
    assert limited.try_key("k", 0.0) is Pass.OPEN
    limited.take("k", 0.0)
    assert [limited.try_key(key, 0.0) for key in "kl"] == [Pass.PARK, Pass.OPEN]
    limited.take(None, 0.0)
    assert [limited.try_key(key, 0.0) for key in "kl"] == [Pass.SHUT, Pass.SHUT]
    assert limited.shut(0.0)


def test_what_is_known_of_a_key_is_not_known_again() -> None:
    limited = gate(Limit(per_key=1))
    limited.know("k", 0, RateState())
    limited.take("k", 0.0)
    limited.know("k", 0, RateState())
    assert limited.try_key("k", 0.0) is Pass.PARK


def test_a_task_rate_shuts_all_keys_and_says_when_it_opens() -> None:
    paced = gate(rate=Rate(1, per=10))
    assert not paced.shut(100.0)
    paced.take("k", 100.0)
    assert paced.shut(109.0)
    assert not paced.shut(110.0)
    assert paced.opens_at() == 110.0
    assert paced.rates() == {"": RateState(110.0)}
    assert paced.key_opens_at("k") is None


def test_a_key_rate_parks_its_key_and_says_when_that_opens() -> None:
    paced = gate(rate=Rate(1, per=10, per_key=True))
    for key in "kl":
        paced.know(key, 0, RateState())
    paced.take("k", 100.0)
    paced.take(None, 100.0)
    assert [paced.try_key(key, 105.0) for key in "kl"] == [Pass.PARK, Pass.OPEN]
    assert paced.key_opens_at("k") == 110.0
    assert paced.opens_at() is None
    assert paced.rates() == {"k": RateState(110.0)}


def test_a_key_that_is_full_does_not_open_by_the_clock() -> None:
    both = gate(Limit(per_key=1), Rate(1, per=10, per_key=True))
    both.know("k", 1, RateState())
    assert both.key_opens_at("k") is None


@pytest.mark.parametrize("bad", [{"total": 0}, {"per_key": 0}, {"total": True}, {"per_key": 1.5}, {}])
def test_a_limit_that_makes_no_sense_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^Limit\("):
        Limit(**bad)


@pytest.mark.parametrize("bad", [{"n": 0}, {"n": 1.5}, {"n": 1, "per": 0}, {"n": 1, "burst": 0}])
def test_a_rate_that_makes_no_sense_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"^Rate\("):
        Rate(**bad)  # type: ignore[arg-type]
