"""The buckets of histograms: powers of the square root of two, with exact bounds at powers of two."""

import pytest

from rota.store import bucket, bucket_seconds


@pytest.mark.parametrize("power", range(-10, 30))
def test_a_power_of_two_is_the_upper_end_of_its_bucket(power: int) -> None:
    seconds = 2.0**power
    assert bucket_seconds(bucket(seconds)) == seconds
    assert bucket(seconds * 1.0001) == bucket(seconds) + 1


def test_the_shortest_and_the_longest_have_a_bucket() -> None:
    assert [bucket(seconds) for seconds in (0.0, 1e-9, 2.0**-10, 1e300)] == [0, 0, 0, 80]
