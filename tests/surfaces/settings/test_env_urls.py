"""A store that a variable of the platform names: `url="env:REDIS_URL"`, and a word where such a one is passed over."""

import logging

import pytest

from rota import InvalidOptions, Rota
from rota.cli.options.target import Target
from rota.settings import load
from tests.requirement import requirement
from tests.surfaces.settings.asked import Write


@requirement("4.11")
def test_a_url_can_be_that_of_a_variable_wherever_it_is_said(rota_toml: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://cache:6379/2")
    assert load(url="env:REDIS_URL").url == "redis://cache:6379/2"
    assert load(url="env:REDIS_URL", namespace="shop").store_url == "redis://cache:6379/2?namespace=shop"
    assert Target(url="env:REDIS_URL").backend().url == "redis://cache:6379/2"
    rota_toml('url = "env:REDIS_URL"')
    assert load().url == "redis://cache:6379/2"
    monkeypatch.setenv("DATABASE_URL", "postgresql://db/shop")
    monkeypatch.setenv("ROTA_URL", "env:DATABASE_URL")
    assert load().url == "postgresql://db/shop"


@pytest.mark.parametrize("url", ["env:REDIS_URL", "env:"])
def test_a_variable_that_is_not_set_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    with pytest.raises(InvalidOptions, match=rf"url='{url}': the variable .* is not set; set it to the URL of a store"):
        load(url=url)
    with pytest.raises(InvalidOptions, match=rf"--url {url}: the variable"):
        Target(url=url)


@requirement("4.11")
async def test_a_start_on_the_default_store_names_the_variable_that_it_passes_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rota")
    monkeypatch.setenv("REDIS_URL", "redis://:secret@cache:6379/2")
    monkeypatch.delenv("DATABASE_URL", raising=False)
    for app, times in ((Rota("memory://"), 0), (Rota(), 1)):
        async with app:
            pass
        told = [text for text in caplog.messages if "REDIS_URL is set, but not used" in text]
        assert len(told) == times
    assert 'url="env:REDIS_URL"' in told[0]
    assert "secret" not in told[0]
