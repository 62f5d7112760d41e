"""Sentinel: what it watches can change places, and clients find the new primary."""

from collections.abc import Iterator
from typing import Any

import pytest
from redis.sentinel import Sentinel

from storekit.servers import RedisSentinel, valkey_of_wheel
from tests.servers.watching import all_gone, family


@pytest.fixture
def group() -> Iterator[RedisSentinel]:
    with RedisSentinel(valkey_of_wheel()) as group:
        yield group


def written(group: RedisSentinel, value: str) -> bytes | None:
    """Writes where redis-py finds the primary by the URL's parts, and reads it back."""
    places, service, _ = group.url.removeprefix("redis+sentinel://").split("/")
    hosts = [(host, int(port)) for host, port in (place.split(":") for place in places.split(","))]
    sentinel: Any = Sentinel(hosts)  # type: ignore[no-untyped-call]
    with sentinel.master_for(service) as client:
        client.set("key", value)
        answer = client.get("key")
    for watcher in sentinel.sentinels:
        watcher.close()
    assert answer is None or isinstance(answer, bytes)
    return answer


def test_a_forced_failover_swaps_primary_and_replica(group: RedisSentinel) -> None:
    old = group.primary
    assert written(group, "before") == b"before"
    new = group.failover()
    assert new is not old
    assert old.follows()
    assert new.send("GET", "key") == "before"
    assert written(group, "after") == b"after"
    assert group.failover() is old


def test_a_killed_primary_is_replaced_and_comes_back_as_a_replica(group: RedisSentinel) -> None:
    old = group.primary
    old.kill()
    new = group.wait_for_failover(old)
    assert written(group, "without it") == b"without it"
    old.start()
    old.wait_until(old.follows, "follow the new primary")
    assert group.primary is new


def test_several_sentinels_agree(valkey_group_of_three: RedisSentinel) -> None:
    group = valkey_group_of_three
    old = group.primary
    old.freeze()
    new = group.wait_for_failover(old)
    assert {sentinel.primary() for sentinel in group.sentinels} == {new.address}
    old.thaw()


@pytest.fixture
def valkey_group_of_three() -> Iterator[RedisSentinel]:
    with RedisSentinel(valkey_of_wheel(), sentinels=3) as group:
        yield group


def test_nothing_is_left_of_them() -> None:
    with RedisSentinel(valkey_of_wheel()) as group:
        everything = [*group.servers, *group.sentinels]
        pids = [pid for server in everything for pid in family(server.pid)]
        group.primary.freeze()
    assert len(pids) == 3
    assert all_gone(pids)
    assert not any(server.folder.exists() for server in everything)
