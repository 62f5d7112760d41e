"""The stored form of a run: written once, read by older and newer versions."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain import codec
from rota.domain.policy import Backoff, Lost, Policy, Retry
from rota.domain.run import Member, Origin

seconds = st.floats(0, 1e6)
backoffs: st.SearchStrategy[Backoff] = st.sampled_from(["exponential", "linear", "fixed"])
losses: st.SearchStrategy[Lost] = st.sampled_from(["retry", "fail"])
retries = st.builds(
    Retry,
    limit=st.integers(0, 100),
    backoff=backoffs,
    delay=seconds,
    max_delay=seconds,
    jitter=st.floats(0, 1),
    rules=st.none(),
)
policies = st.builds(
    Policy,
    retry=retries,
    timeout=st.none() | st.floats(0.001, 1e6),
    lost=losses,
    max_losses=st.integers(1, 100),
)
origins = st.builds(Origin, kind=st.text(), of=st.none() | st.text())
arguments = st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.lists(st.booleans()))


@given(arguments.map(msgspec.json.encode), origins, policies)
def test_what_is_encoded_is_decoded(args: bytes, origin: Origin, policy: Policy) -> None:
    body = codec.decode(codec.encode(args, origin, policy))
    assert bytes(body.args) == args
    assert (body.origin or Origin(), body.policy or Policy()) == (origin, policy)


def test_most_runs_carry_their_arguments_and_nothing_else() -> None:
    assert codec.encode(b'{"name":"Ada"}', Origin(), Policy()) == b'{"v":1,"args":{"name":"Ada"}}'


def test_a_member_is_kept_also_beside_defaults() -> None:
    body = codec.decode(codec.encode(b"{}", Origin(), Policy(), Member("day@2026-11-15", "program")))
    assert body.member == Member("day@2026-11-15", "program")


def test_arguments_are_kept_byte_by_byte() -> None:
    args = b'{ "b":1.50, "a":"\\u0000\\ud83e\\udd89",  "a":2}'
    assert bytes(codec.decode(codec.encode(args, Origin(), Policy())).args) == args


@given(origins, origins)
def test_another_origin_keeps_everything_else(first: Origin, second: Origin) -> None:
    policy = Policy(retry=Retry(3), timeout=5)
    amended = codec.amend(codec.encode(b'{"a":1}', first, policy), second)
    body = codec.decode(amended)
    assert (bytes(body.args), body.origin, body.policy) == (b'{"a":1}', second, policy)


def test_fields_of_a_newer_version_are_kept() -> None:
    newer = b'{"v":1,"args":{},"hue":{"red":[1, 2]},"policy":{"timeout":5.0,"mood":"calm"}}'
    body = codec.decode(newer)
    assert (body.policy or Policy()).timeout == 5.0
    fields = msgspec.json.decode(codec.amend(newer, Origin(kind="retry", of="run")))
    assert fields == msgspec.json.decode(newer) | {"origin": {"kind": "retry", "of": "run"}}


def test_a_newer_version_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"written in body version 2; this rota reads up to 1"):
        codec.decode(b'{"v":2,"args":{}}')


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"{}",
        b'{"v":1}',
        b'{"v":"1","args":{}}',
        b"\xff",
        b'{"v":1,"args":{},"policy":{"max_losses":0}}',
    ],
)
def test_what_cannot_be_read_is_a_value_error_and_blank_among_others(bad: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        codec.decode(bad)
    blank = codec.decode_or_blank(bad)
    assert (bytes(blank.args), blank.origin, blank.policy) == (b"", None, None)


def test_numbers_travel_and_classes_do_not() -> None:
    retry = Retry(3, rules={KeyError: Retry(0)})
    policy = Policy(retry=retry.without_rules())
    assert codec.decode(codec.encode(b"{}", Origin(), policy)).policy == Policy(retry=Retry(3))
