"""URLs of Redis and its kin: what they mean, what is refused, and what people get to see of them."""

import sys

import pytest

from rota import InvalidOptions
from rota.domain.text import masked
from rota.errors import MissingExtra
from rota.stores import connect
from rota.stores.redis.address import RedisAddress, parse
from tests.requirement import requirement


@requirement("4.10")
@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://", RedisAddress(kind="server", hosts=(("localhost", 6379),))),
        ("valkey://box:7000/3", RedisAddress(kind="server", hosts=(("box", 7000),), db=3)),
        ("redis://box?db=2&namespace=a.b", RedisAddress(kind="server", hosts=(("box", 6379),), db=2, namespace="a.b")),
        ("rediss://ada:s%40crt@[::1]:1", RedisAddress(kind="server", hosts=(("::1", 1),), tls=True, username="ada")),
        ("unix:///run/r.sock?db=1", RedisAddress(kind="socket", path="/run/r.sock", db=1)),
        ("redis+cluster://a:1,b?strict=true", RedisAddress(kind="cluster", hosts=(("a", 1), ("b", 6379)), strict=True)),
        (
            "redis+sentinel://a,b:2/prim/4",
            RedisAddress(kind="sentinel", hosts=(("a", 26379), ("b", 2)), service="prim", db=4),
        ),
        ("redis://?max_connections=5", RedisAddress(kind="server", hosts=(("localhost", 6379),), max_connections=5)),
    ],
)
def test_a_url_says_where_the_store_is(url: str, address: RedisAddress) -> None:
    found = parse(url)
    names = ("kind", "hosts", "path", "service", "db", "tls", "username", "namespace", "max_connections", "strict")
    assert [getattr(found, name) for name in names] == [getattr(address, name) for name in names]


def test_a_password_is_read_and_never_shown() -> None:
    address = parse("rediss://ada:s%40crt@box/0?sentinel_password=deep")
    assert (address.password, address.sentinel_password) == ("s@crt", "deep")
    assert address.shown == "rediss://ada:***@box/0?sentinel_password=***"
    assert masked("redis://:p:w@d@box") == "redis://:***@box"


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("redis://x?namespac=a", "no option namespac"),
        ("redis://x?namespace=a{b}", "a namespace is"),
        ("redis://x?namespace=", "a namespace is"),
        ("redis://x/first", "no number"),
        ("redis://x?max_connections=many", "no number"),
        ("redis://x?strict=perhaps", "true or false"),
        ("redis://a:b:c", "no host:port"),
        ("unix://", "name the socket"),
        ("redis+sentinel://a", "name the service"),
        ("redis+cluster://a?db=1", "only database 0"),
    ],
)
def test_a_url_that_makes_no_sense_is_refused_with_a_sentence(url: str, complaint: str) -> None:
    with pytest.raises(InvalidOptions, match=complaint):
        connect(url)


def test_a_refusal_does_not_show_the_password() -> None:
    with pytest.raises(InvalidOptions) as refused:
        connect("redis://ada:secret@x?nonsense=1")
    assert "secret" not in str(refused.value)


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("rota.stores.redis")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "redis"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r'pip install "rota\[redis\]"'):
        connect("redis://localhost")
