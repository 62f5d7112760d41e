"""Ids: ordered by time when new, the same when derived from the same."""

import uuid

from hypothesis import given
from hypothesis import strategies as st

from rota.domain.ids import derived, retry_id, uuid7, uuid7s

milliseconds = st.integers(0, 2**48 - 1)
entropy = st.binary(min_size=10, max_size=10)
parts = st.lists(st.text(alphabet="ab\\0\x00:", max_size=4), max_size=4)


@given(milliseconds, entropy)
def test_a_new_id_is_a_uuid_of_version_7(now: int, dice: bytes) -> None:
    id = uuid.UUID(uuid7(now, dice))
    assert (id.version, id.variant) == (7, uuid.RFC_4122)
    assert id.int >> 80 == now


@given(milliseconds, milliseconds, entropy, entropy)
def test_new_ids_sort_by_time_as_text(one: int, two: int, dice: bytes, others: bytes) -> None:
    if one != two:
        assert (uuid7(one, dice) < uuid7(two, others)) == (one < two)


@given(milliseconds, entropy, entropy)
def test_new_ids_of_one_millisecond_differ_by_chance(now: int, dice: bytes, others: bytes) -> None:
    random_bits = ~(0xF << 76 | 0x3 << 62)
    same = (int.from_bytes(dice, "big") ^ int.from_bytes(others, "big")) & random_bits == 0
    assert (uuid7(now, dice) == uuid7(now, others)) == same


@given(parts, parts)
def test_derived_ids_are_equal_for_equal_parts_only(one: list[str], two: list[str]) -> None:
    joined = {tuple(one or [""]), tuple(two or [""])}  # no part and one empty part read the same
    assert (derived(*one) == derived(*two)) == (len(joined) == 1)


def test_a_derived_id_is_a_well_formed_uuid_that_never_changes() -> None:
    id = uuid.UUID(derived("schedule", "report", "2026-11-15T09:00:00Z"))
    assert (id.version, id.variant) == (5, uuid.RFC_4122)
    assert str(id) == "ca53a075-99f3-56c8-a9c6-87028466f76b"


def test_the_retry_of_a_retry_is_another_run() -> None:
    first = retry_id("run")
    assert first == retry_id("run")
    assert len({"run", first, retry_id(first)}) == 3


@given(milliseconds, st.lists(entropy, max_size=20))
def test_ids_that_are_made_together_are_those_that_are_made_one_by_one(now: int, dice: list[bytes]) -> None:
    assert uuid7s(now, b"".join(dice)) == [uuid7(now, one) for one in dice]
