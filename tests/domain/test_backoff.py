"""Pauses between tries double up to a bound, and begin anew after a success."""

from rota.domain.backoff import Backoff


def test_pauses_double_until_the_last() -> None:
    backoff = Backoff(0.1, 0.5)
    assert [backoff.pause() for _ in range(5)] == [0.1, 0.2, 0.4, 0.5, 0.5]


def test_a_reset_begins_with_the_first_pause_again() -> None:
    backoff = Backoff(0.1, 0.5)
    backoff.pause()
    backoff.pause()
    backoff.reset()
    assert backoff.pause() == 0.1
