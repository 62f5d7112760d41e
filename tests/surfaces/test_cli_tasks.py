"""`rota tasks`: what the app defines, and what only the store knows."""

import pytest

from rota import Retry, Rota
from tests.surfaces.called import Called
from tests.surfaces.project import Project
from tests.surfaces.timetables import beside, on_terminal


def test_tasks_are_told_with_their_policies_and_depths(project: Project) -> None:
    project.rota("submit", "greet", "name=Ada")

    greet, trip, hold, _ = project.rota("tasks", "--json").json

    assert greet == {
        "task": "greet",
        "parameters": "name: str, times: int = 1",
        "executor": "loop",
        "retries": 0,
        "timeout": None,
        "enabled": True,
        "paused": False,
        "limit": None,
        "rate": None,
        "activity": None,
        "priority": 0,
        "max_pending": None,
        "queued": 1,
        "running": 0,
        "paused_runs": 0,
        "defined": True,
        "kind": "task",
        "steps": None,
        "description": "Says hello.",
    }
    assert (trip["executor"], trip["retries"], trip["timeout"]) == ("thread", 1, 30)
    assert "ctx" not in hold["parameters"]


def test_tasks_that_only_the_store_knows_are_marked(project: Project) -> None:
    project.rota("submit", "elsewhere", "--unknown-ok")

    rows = {row["task"]: row for row in project.rota("tasks").rows}

    assert rows["elsewhere"]["defined"] == "no"
    assert rows["elsewhere"]["queued"] == "1"
    assert rows["greet"]["defined"] == "yes"


def test_limits_and_pauses_are_told(project: Project) -> None:
    (project.folder / "gated.py").write_text(
        "from rota import Limit, Rate, Rota\napp = Rota()\n"
        "@app.task(key='{path}', limit=Limit(10, per_key=1), rate=Rate(100, per=60), enabled=False)\n"
        "def resize(path: str) -> None: ...\n"
    )
    project.rota("-A", "gated:app", "tasks", "pause", "resize")

    (row,) = project.rota("-A", "gated:app", "tasks").rows
    (whole,) = project.rota("-A", "gated:app", "tasks", "--json").json

    assert (row["limit"], row["rate"], row["held"]) == ("10, 1 per key", "100/min", "disabled, paused")
    assert whole["limit"] == {"total": 10, "per_key": 1}
    assert whole["rate"] == {"n": 100, "per": 60, "burst": 1, "per_key": False}
    assert (whole["enabled"], whole["paused"]) == (False, True)


def test_an_activity_is_told_as_the_settings_have_it(project: Project) -> None:
    (project.folder / "active.py").write_text(
        "from rota import Activity, Rota\napp = Rota()\n"
        "@app.task(activity=Activity(after=60, key='{user}'))\ndef summarise(user: str) -> None: ...\n"
    )
    (project.folder / "rota.toml").write_text("[tasks.summarise.activity]\nspacing = 90\nbreaker = 3\n")

    (row,) = project.rota("-A", "active:app", "tasks").rows
    (whole,) = project.rota("-A", "active:app", "tasks", "--json").json

    assert row["activity"] == "after 1m, spacing 1m30s, breaker 3"
    assert (whole["activity"]["spacing"], whole["activity"]["breaker"]["failures"]) == (90, 3)


def test_the_url_of_the_command_line_wins(project: Project) -> None:
    (project.folder / "fixed.py").write_text(
        "from rota import Rota\napp = Rota('sqlite:///fixed.db')\n@app.task\ndef noop() -> None: ...\n"
    )
    other = f"sqlite:///{project.folder}/other.db"

    project.rota("-A", "fixed:app", "submit", "noop", "--url", other)

    assert not (project.folder / "fixed.db").exists()
    assert len(project.rota("runs", "ls", "--url", other, "--json").json) == 1


def test_80_columns_keep_retries_timeout_and_description_and_no_empty_column(
    rota: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Rota(rota.url)

    @app.task(retry=Retry(3), timeout=30)
    def trip(message: str) -> None:
        """Always fails."""

    @app.task
    def greet(name: str, times: int = 1, in_capitals: bool = False) -> None: ...

    beside(monkeypatch, app)
    on_terminal(monkeypatch, 80)

    title, first, second = rota("tasks").splitlines()

    assert title.split() == ["task", "parameters", "retries", "timeout", "queued", "running", "description"]
    assert first.split() == ["trip", "message:", "str", "3", "30.0", "s", "0", "0", "Always", "fails."]
    assert second.startswith("greet  name: str, times: ")
    assert max(map(len, (title, first, second))) <= 80
