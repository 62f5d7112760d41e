"""Settings: who wins, where several say something."""

import logging
from pathlib import Path

import pytest

from rota.settings import Settings, app_reference, default_url, explain, load, project_folder
from rota.store import Retention
from tests.surfaces.settings.asked import Write, source


def test_where_nothing_is_said_the_defaults_of_the_design_hold(folder: Path) -> None:
    settings = load()

    assert settings == Settings()
    assert settings.url == f"sqlite:///{folder}/.rota/rota.db"
    assert (settings.app, settings.name) == (None, "rota")
    assert (settings.enabled, settings.debug, settings.tasks) == (True, False, {})
    assert (settings.concurrency, settings.lease, settings.grace, settings.sweep) == (10, 30, 30, 60)
    assert (settings.renew, settings.rescue) == (0, 0)
    assert (
        settings.tuning.retention == Retention() == Retention(succeeded=86_400, failed=604_800, most=10_000, least=50)
    )
    assert {row[2] for row in explain(settings)} == {"default"}


def test_each_level_wins_over_the_ones_below(
    rota_toml: Write, pyproject: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[float, str]] = []

    def look(**keywords: object) -> None:
        seen.append((load(**keywords).lease, source("lease", **keywords)))

    look()
    pyproject("[tool.rota]\nlease = 31")
    look()
    rota_toml("lease = 32")
    look()
    monkeypatch.setenv("ROTA_LEASE", "33")
    look()
    look(lease=34)

    assert seen == [(30, "default"), (31, "pyproject.toml"), (32, "rota.toml"), (33, "ROTA_LEASE"), (34, "keyword")]


def test_a_keyword_of_none_and_an_empty_variable_say_nothing(rota_toml: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    rota_toml('lease = 40\nname = "mail"')
    monkeypatch.setenv("ROTA_NAME", "")

    assert (load(lease=None).lease, load().name) == (40, "mail")


def test_a_keyword_of_false_or_zero_says_something(rota_toml: Write) -> None:
    rota_toml("enabled = true\ngrace = 5")
    settings = load(enabled=False, grace=0)

    assert (settings.enabled, settings.grace) == (False, 0)


def test_both_files_are_read_and_rota_toml_wins_where_both_speak(
    rota_toml: Write, pyproject: Write, caplog: pytest.LogCaptureFixture
) -> None:
    pyproject('[tool.rota]\napp = "tasks:app"\nlease = 31')
    rota_toml("lease = 32\ngrace = 5")

    with caplog.at_level(logging.DEBUG, "rota"):
        settings = load()

    assert (settings.app, settings.lease, settings.grace) == ("tasks:app", 32, 5)
    assert [record.levelname for record in caplog.records] == ["DEBUG"]
    assert "rota.toml wins over pyproject.toml" in caplog.text
    assert "both say: lease" in caplog.text


def test_the_project_file_is_found_from_a_folder_below(
    rota_toml: Write, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rota_toml("concurrency = 3")
    (folder / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(folder / "src" / "deep")

    assert project_folder() == folder
    assert load().concurrency == 3
    assert load().url == f"sqlite:///{folder}/.rota/rota.db"


def test_a_pyproject_of_other_tools_says_nothing(pyproject: Write) -> None:
    pyproject('[project]\nname = "x"\n[tool.ruff]\nline-length = 120')

    assert load() == Settings()


def test_the_command_line_finds_app_and_store_through_the_same_door(
    pyproject: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert app_reference() is None
    pyproject('[tool.rota]\napp = "tasks:app"\nurl = "memory://"')
    assert (app_reference(), default_url()) == ("tasks:app", "memory://")
    monkeypatch.setenv("ROTA_APP", "other:app")
    monkeypatch.setenv("ROTA_URL", "sqlite:///x.db")
    assert (app_reference(), default_url()) == ("other:app", "sqlite:///x.db")


@pytest.mark.parametrize("url", ["memory://", "sqlite:///x.db", "redis://h/0", "rediss://h/0", "postgresql://u:p@h/db"])
def test_the_store_is_chosen_by_one_variable(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_URL", url)

    assert load().url == url
