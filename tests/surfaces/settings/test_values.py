"""Settings: what a value may look like in a variable, a file and in code."""

from datetime import timedelta
from pathlib import Path

import pytest

from rota.settings import load
from tests.surfaces.settings.asked import Write, refusal


@pytest.mark.parametrize("word", ["false", "0", "no", "off", "False", "OFF"])
def test_a_variable_can_turn_the_engine_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_ENABLED", word)

    assert load().enabled is False


@pytest.mark.parametrize("word", ["true", "1", "yes", "on", "YES"])
def test_a_variable_can_turn_something_on(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_DEBUG", word)

    assert load().debug is True


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("45", 45), ("0.5", 0.5), ("45s", 45), ("5m", 300), ("2h", 7200), ("1d", 86_400), ("1.5h", 5400), (" 5 m ", 300)],
)
def test_a_variable_may_carry_a_unit(text: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_KEEP_FAILED", text)

    assert load().keep_failed == seconds


@pytest.mark.parametrize(
    ("value", "seconds"), [("45", 45), ("0.5", 0.5), ('"45s"', 45), ('"5m"', 300), ('"2h"', 7200), ('"1d"', 86_400)]
)
def test_a_file_may_carry_a_unit(value: str, seconds: float, rota_toml: Write) -> None:
    rota_toml(f"keep_failed = {value}")

    assert load().keep_failed == seconds
    assert isinstance(load().keep_failed, float)


def test_code_says_seconds_as_a_number_or_a_timedelta() -> None:
    assert load(lease=45, grace=timedelta(minutes=1)).grace == 60
    assert "lease='30'" in refusal(lease="30")
    assert "lease='30s'" in refusal(lease="30s")


def test_whole_numbers_and_texts_come_from_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_CONCURRENCY", "20")
    monkeypatch.setenv("ROTA_NAME", "mail-2")
    settings = load()

    assert (settings.concurrency, settings.name) == (20, "mail-2")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('lease = "soon"', "lease = 'soon': expected seconds, as a number or like"),
        ('lease = "30"', "lease = '30': expected seconds"),
        ("lease = true", "lease = True: expected seconds"),
        ("lease = nan", "lease = nan: expected seconds"),
        ("lease = [30]", "lease = [30]: expected seconds"),
        ("concurrency = 2.5", "concurrency = 2.5: expected a whole number"),
        ('concurrency = "20"', "concurrency = '20': expected a whole number"),
        ("concurrency = true", "concurrency = True: expected a whole number"),
        ('enabled = "false"', "enabled = 'false': expected true or false"),
        ("enabled = 0", "enabled = 0: expected true or false"),
        ("name = 1", "name = 1: expected text"),
        ("tasks = 1", "tasks = 1: expected a table"),
        ("tasks.resize = false", "tasks.resize = False: expected a table"),
        ("tasks.resize.enabled = 1", "tasks.resize.enabled = 1: expected true or false"),
        ("tasks.resize.retry = []", "tasks.resize.retry = []: expected a whole number"),
        ('tasks.resize.retry.jitter = "1s"', "tasks.resize.retry.jitter = '1s': expected a number"),
        ('tasks.resize.retry.backoff = "x"', "expected one of exponential, linear, fixed"),
        ('tasks.resize.lost = "never"', "tasks.resize.lost = 'never': expected one of retry, fail"),
        ("tasks.resize.lost = []", "tasks.resize.lost = []: expected one of retry, fail"),
    ],
)
def test_a_wrong_type_names_file_key_value_and_what_is_expected(
    line: str, expected: str, rota_toml: Write, folder: Path
) -> None:
    rota_toml(line)
    said = refusal()

    assert said.startswith(f"{folder / 'rota.toml'}: ")
    assert expected in said


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("ROTA_LEASE", "soon", "ROTA_LEASE='soon': expected seconds"),
        ("ROTA_LEASE", "inf", "ROTA_LEASE='inf': expected seconds"),
        ("ROTA_CONCURRENCY", "many", "ROTA_CONCURRENCY='many': expected a whole number"),
        ("ROTA_CONCURRENCY", "2.5", "ROTA_CONCURRENCY='2.5': expected a whole number"),
        ("ROTA_ENABLED", "maybe", "ROTA_ENABLED='maybe': expected true or false"),
        ("ROTA_TASKS__RESIZE__TIMEOUT", "soon", "ROTA_TASKS__RESIZE__TIMEOUT='soon': expected seconds"),
    ],
)
def test_a_wrong_variable_is_quoted_with_what_is_expected(
    name: str, text: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)

    assert expected in refusal()


def test_a_wrong_value_that_another_level_outvotes_is_nobodys_trouble(
    rota_toml: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    rota_toml("lease = -1")
    monkeypatch.setenv("ROTA_LEASE", "40")

    assert load().lease == 40
