"""Every setting is shown with its value and its source, and documented on a page made of the same table."""

import json
from pathlib import Path

import pytest

from rota import Rota
from rota.cli import run
from rota.settings.reference import line_of, page, settings_table, task_table
from tests.surfaces.called import Called
from tests.surfaces.timetables import beside

DOCS = Path(__file__).parents[3] / "docs" / "settings.md"


def test_the_page_is_made_of_the_table() -> None:
    assert DOCS.read_text() == page(), "write it anew: rota settings --reference > docs/settings.md"


def test_every_setting_says_what_it_means() -> None:
    assert [row.name for row in (*settings_table(), *task_table()) if not row.meaning] == []


def test_each_value_comes_with_its_source(
    rota: Called, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rota.toml").write_text('lease = "20s"\n\n[tasks.resize]\nretry = 5\nlimit = { total = 3 }\n')
    monkeypatch.setenv("ROTA_GRACE", "5m")
    monkeypatch.setenv("ROTA_TASKS__RESIZE__TIMEOUT", "7")
    monkeypatch.setenv("ROTA_APP", "shop:app")
    beside(monkeypatch, Rota("redis://ada:secret@nowhere/0", name="shop"))

    assert run(["settings", "--json"]) == 0
    out = capsys.readouterr().out
    assert "secret" not in out

    told = {each["setting"]: (each["value"], each["source"]) for each in json.loads(out)}
    assert told["url"] == ("redis://ada:***@nowhere/0", "keyword")
    assert told["app"] == ("shop:app", "ROTA_APP")
    assert told["lease"] == (20.0, "rota.toml, line 1")
    assert told["grace"] == (300.0, "ROTA_GRACE")
    assert told["concurrency"] == (10, "default")
    assert told["tasks.resize.retry.limit"] == (5, "rota.toml, line 4")
    assert told["tasks.resize.limit.total"] == (3, "rota.toml, line 5")
    assert told["tasks.resize.timeout"] == (7.0, "ROTA_TASKS__RESIZE__TIMEOUT")


def test_an_override_of_a_task_that_is_not_there_is_marked(
    rota: Called, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "rota.toml").write_text("[tasks.gret]\nenabled = false\n[tasks.greet]\npriority = 1\n")
    monkeypatch.setenv("ROTA_APP", "shop:app")
    app = Rota(rota.url, name="shop")
    app.task(name="greet")(lambda: None)
    beside(monkeypatch, app)

    told = {each["setting"]: each["meaning"] for each in rota.json("settings")}
    said = rota.err
    checks = [check for check in rota.json("doctor") if check["check"] == "overrides"]

    assert told["tasks.gret.enabled"] == "It changes nothing: there is no task gret; did you mean greet?"
    assert "changes nothing" not in told["tasks.greet.priority"]
    assert said == "there is no task gret; did you mean greet?\n"
    assert [(check["verdict"], check["detail"]) for check in checks] == [
        ("warn", "rota.toml: there is no task gret; did you mean greet?")
    ]


def test_without_an_app_the_project_is_told(rota: Called) -> None:
    told = {each["setting"]: each["source"] for each in rota.json("settings")}
    assert told["url"] == "--url"
    assert told["name"] == "default"


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("lease",), 2),
        (("tasks", "resize", "retry", "limit"), 5),
        (("tasks", "resize", "limit", "total"), 6),
        (("tasks", "a.b", "enabled"), 8),
        (("tasks", "mail", "rate", "n"), 10),
        (("grace",), None),
    ],
)
def test_the_line_of_a_file_is_found(path: tuple[str, ...], line: int | None) -> None:
    text = """# ours
lease = "20s"  # [not.a.table]

[tasks.resize]
retry.limit = 5
limit = { total = 3 }
[tasks."a.b"]
enabled = false
[tasks.mail.rate]
n = 10
"""
    assert line_of(text, path) == line
