"""Settings: a store's address built of parts, and shown without its password."""

from collections.abc import Mapping
from typing import Any

import pytest

from rota import Rota
from rota.cli.options.target import Target
from rota.errors import InvalidOptions
from rota.settings import Settings, default_url, explain, load, masked
from rota.stores.memory import MemoryBackend
from tests.surfaces.settings.asked import Write, refusal, source


@pytest.mark.parametrize(
    ("parts", "url"),
    [
        ({"HOST": "cache"}, "redis://cache:6379/0"),
        ({"HOST": "cache", "PORT": "6380", "DB": "2"}, "redis://cache:6380/2"),
        ({"HOST": "cache", "PASSWORD": "p@ss:w/rd#?"}, "redis://:p%40ss%3Aw%2Frd%23%3F@cache:6379/0"),
        ({"HOST": "cache", "USERNAME": "a/da", "PASSWORD": "x"}, "redis://a%2Fda:x@cache:6379/0"),
        ({"HOST": "cache", "USERNAME": "ada", "PASSWORD": ""}, "redis://ada@cache:6379/0"),
        ({"HOST": "::1"}, "redis://[::1]:6379/0"),
        ({"HOST": "[::1]"}, "redis://[::1]:6379/0"),
    ],
)
def test_a_redis_url_is_built_of_its_parts(parts: Mapping[str, str], url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in parts.items():
        monkeypatch.setenv(f"ROTA_REDIS_{name}", text)

    assert default_url() == load().url == url
    assert source("url") == "ROTA_REDIS_HOST"


def test_a_url_that_is_given_anywhere_wins_over_the_parts(rota_toml: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_REDIS_HOST", "cache")
    assert load(url="memory://").url == "memory://"
    rota_toml('url = "sqlite:///x.db"')
    assert load().url == "sqlite:///x.db"


def test_parts_that_contradict_the_url_of_the_environment_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_URL", "redis://:secret@other:6379/0")
    monkeypatch.setenv("ROTA_REDIS_HOST", "cache")
    assert refusal() == "ROTA_URL and ROTA_REDIS_HOST name different stores; unset one of them"
    assert load(url="memory://").url == "memory://", "nobody asks them"
    monkeypatch.setenv("ROTA_URL", "redis://cache:6379/0")
    assert load().url == "redis://cache:6379/0", "the same said twice"
    monkeypatch.delenv("ROTA_REDIS_HOST")
    monkeypatch.setenv("ROTA_REDIS_PASSWORD", "secret")
    assert refusal() == "ROTA_URL and ROTA_REDIS_PASSWORD name different stores; unset one of them"


@pytest.mark.parametrize(
    ("url", "placed"),
    [
        ("redis://h", "redis://h?namespace=shop"),
        ("unix:///run/r.sock?db=1", "unix:///run/r.sock?db=1&namespace=shop"),
        ("rediss+sentinel://a,b/prim", "rediss+sentinel://a,b/prim?namespace=shop"),
        ("valkey://h?namespace=shop", "valkey://h?namespace=shop"),
        ("postgresql://h/db?sslmode=disable", "postgresql://h/db?sslmode=disable&schema=shop"),
        ("postgres://h/db", "postgres://h/db?schema=shop"),
    ],
)
def test_a_namespace_becomes_part_of_the_url(url: str, placed: str) -> None:
    settings = load(url=url, namespace="shop")
    assert (settings.url, settings.store_url) == (url, placed)
    assert load(url=url).store_url == url


def test_a_namespace_is_said_by_keyword_variable_or_file(rota_toml: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_REDIS_HOST", "cache")
    rota_toml('namespace = "file"')
    assert default_url() == "redis://cache:6379/0?namespace=file"
    monkeypatch.setenv("ROTA_NAMESPACE", "variable")
    assert default_url() == "redis://cache:6379/0?namespace=variable"
    assert source("namespace") == "ROTA_NAMESPACE"
    app = Rota(namespace="keyword")
    assert app.backend.url == "redis://cache:6379/0?namespace=keyword"
    assert Target(url="redis://other").backend().url == "redis://other?namespace=variable"


def test_a_store_without_namespaces_refuses_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_NAMESPACE", "shop")
    words = r"^namespace='shop' \(ROTA_NAMESPACE\): sqlite:///x.db has no namespaces, as Redis"
    with pytest.raises(InvalidOptions, match=words):
        Rota("sqlite:///x.db")
    assert Rota("memory://").backend.url == "memory://", "one that is nobody else's anyway"


def test_a_namespace_that_contradicts_the_url_or_a_backend_is_refused() -> None:
    with pytest.raises(
        InvalidOptions, match=r"^namespace='shop': redis://:\*\*\*@h\?namespace=b names another namespace"
    ):
        Rota("redis://:secret@h?namespace=b", namespace="shop")
    with pytest.raises(InvalidOptions, match="names another schema; say it in one place"):
        Rota("postgresql://h/db?schema=b", namespace="shop")
    with pytest.raises(InvalidOptions, match="a Backend is taken as it is"):
        Rota(MemoryBackend(), namespace="shop")


def test_a_backend_is_taken_as_it_is_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_NAMESPACE", "shop")
    backend = MemoryBackend()
    assert Rota(backend).backend is backend


@pytest.mark.parametrize("url", ["redis://h", "postgresql://h/db"])
def test_a_namespace_that_a_store_cannot_have_is_refused(url: str) -> None:
    with pytest.raises(InvalidOptions, match=r"a namespace is 1 to 64|schema is a name of 1 to 48"):
        Rota(url, namespace="pg_" + "x" * 70)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"PASSWORD": "secret"}, "ROTA_REDIS_PASSWORD is set and ROTA_REDIS_HOST is not"),
        ({"HOST": "cache", "PORT": "many"}, "ROTA_REDIS_PORT='many': expected a whole number from 1 to 65535"),
        ({"HOST": "cache", "PORT": "0"}, "ROTA_REDIS_PORT='0'"),
        ({"HOST": "cache", "DB": "-1"}, "ROTA_REDIS_DB='-1'"),
        ({"HOST": "redis://:secret@cache"}, "ROTA_REDIS_HOST='redis://:***@cache': expected a host name"),
    ],
)
def test_parts_that_make_no_url_are_refused(
    parts: Mapping[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in parts.items():
        monkeypatch.setenv(f"ROTA_REDIS_{name}", text)

    assert said in refusal()
    assert "secret" not in refusal()


def test_every_setting_is_explained_and_documented() -> None:
    rows = explain(load())
    hints: dict[str, Any] = Settings.__annotations__

    assert [row[0] for row in rows] == [
        name for name in Settings.__struct_fields__ if name not in ("tasks", "limits", "sources")
    ]
    assert all(hints[name].__metadata__[-1].description for name in Settings.__struct_fields__)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:secret@h:6379/0", "redis://:***@h:6379/0"),
        ("postgresql://ada:secret@h/db", "postgresql://ada:***@h/db"),
        ("postgresql://ada:secret@h/db?x=a@b", "postgresql://ada:***@h/db?x=a@b"),
        ("redis://ada:se@cret@h/0", "redis://ada:***@h/0"),
        ("redis://:se/cr#et?@h/0", "redis://:***@h/0"),
        ("redis://h/0?password=secret&db=1", "redis://h/0?password=***&db=1"),
        ("redis://h:6379/0", "redis://h:6379/0"),
        ("redis://h:6379/0?x=a@b", "redis://h:6379/0?x=a@b"),
        ("redis://ada@h:6379", "redis://ada@h:6379"),
        ("sqlite:////home/a:b@c/rota.db", "sqlite:////home/a:b@c/rota.db"),
        ("memory://", "memory://"),
    ],
)
def test_a_password_is_never_shown(url: str, shown: str) -> None:
    assert masked(url) == shown


def test_neither_explain_nor_repr_shows_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_URL", "redis://:secret@h/0")
    settings = load()

    assert settings.url == "redis://:secret@h/0"
    assert explain(settings)[0] == ("url", "redis://:***@h/0", "ROTA_URL")
    assert "secret" not in repr(settings)
