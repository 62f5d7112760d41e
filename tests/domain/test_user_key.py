"""UserKey: what it builds it can read back, whatever the ids hold."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.user_key import UserKey, UserParts

ids = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from(":%25A"), min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("key", "dimensions", "text"),
    [
        (UserKey(), ("user_id", "device_id", "agent_id"), "u1:phone:coach"),
        (UserKey(agent=False), ("user_id", "device_id"), "u1:phone"),
        (UserKey(device=False), ("user_id", "agent_id"), "u1:coach"),
        (UserKey(device=False, agent=False), ("user_id",), "u1"),
    ],
)
def test_a_key_has_three_two_or_one_dimensions(key: UserKey, dimensions: tuple[str, ...], text: str) -> None:
    assert key.dimensions == dimensions
    assert key.build("u1", "phone", "coach") == text


def test_what_is_not_told_is_default() -> None:
    assert UserKey().build("u1") == "u1:default:default"
    assert UserKey().build("u1", agent_id="coach") == "u1:default:coach"
    assert UserKey().build("u1", "", "") == "u1:default:default"


def test_a_parsed_key_has_none_for_the_dimensions_it_lacks() -> None:
    assert UserKey().parse("u1:phone:coach") == UserParts("u1", "phone", "coach")
    assert UserKey(device=False).parse("u1:coach") == UserParts("u1", None, "coach")
    assert UserKey(device=False, agent=False).parse("u1") == UserParts("u1", None, None)


def test_an_empty_user_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a user: user_id is empty"):
        UserKey().build("")
    with pytest.raises(ValueError, match="needs a user"):
        UserKey().fill({"user_id": None})


@given(user=ids, device=ids, agent=ids)
def test_every_id_comes_back_as_it_was(user: str, device: str, agent: str) -> None:
    assert UserKey().parse(UserKey().build(user, device, agent)) == UserParts(user, device, agent)
    assert UserKey(agent=False).parse(UserKey(agent=False).build(user, device)) == UserParts(user, device)


@given(st.tuples(ids, ids, ids), st.tuples(ids, ids, ids))
def test_two_users_never_share_a_key(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    assert (UserKey().build(*one) == UserKey().build(*other)) == (one == other)


@given(st.text(":%253Aa", max_size=8))
def test_a_text_is_read_only_if_it_is_how_the_key_is_written(text: str) -> None:
    try:
        parts = UserKey().parse(text)
    except ValueError:
        return
    assert UserKey().build(parts.user_id, parts.device_id, parts.agent_id) == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("u1", "'u1' is no key of user:device:agent: it has 1 parts"),
        ("a:b:c:d", "it has 4 parts"),
        ("u1::coach", "it has an empty part"),
        ("u%1:a:b", "it has 'u%1', in which % is not written %25"),
    ],
)
def test_a_text_that_is_no_key_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        UserKey().parse(text)


def test_a_key_is_filled_from_a_calls_arguments() -> None:
    arguments = {"user_id": 7, "device_id": None, "agent_id": UUID(int=1), "text": "hello"}

    assert UserKey().fill(arguments) == f"7:default:{UUID(int=1)}"
    assert UserKey().fill({"user_id": "u1"}) == "u1:default:default"
    assert UserKey(device=False, agent=False).fill(arguments) == "7"


def test_a_key_that_no_store_can_carry_is_refused() -> None:
    with pytest.raises(ValueError, match="not every store can carry"):
        UserKey().build("u\0")
    with pytest.raises(ValueError, match="1 to 512 characters"):
        UserKey().build("u" * 513)


def test_a_task_without_a_user_cannot_be_keyed_by_one() -> None:
    UserKey().check(["user_id"])
    with pytest.raises(ValueError, match="needs a parameter user_id; there are: path, width"):
        UserKey().check(["path", "width"])
