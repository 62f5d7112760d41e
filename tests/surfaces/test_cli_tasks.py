"""`rota tasks`: what the app defines, and what only the store knows."""

import asyncio

import pytest

from rota import Retry, Rota
from rota.app.core import core_of
from rota.domain.spec import TaskSpec
from tests.requirement import requirement
from tests.surfaces.called import Called
from tests.surfaces.project import Project
from tests.surfaces.timetables import beside, on_terminal


@requirement("0.12")
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
        "enabled_here": True,
        "paused": False,
        "paused_until": None,
        "paused_keys": [],
        "overrides": None,
        "limit": None,
        "limits": [],
        "keep": None,
        "rate": None,
        "activity": None,
        "priority": 0,
        "queue": "default",
        "share": None,
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


def test_types_of_rota_are_told_by_their_public_names(project: Project) -> None:
    (project.folder / "tasks.py").write_text(
        "from rota import Ended, Results, Rota\napp = Rota()\n\n\n"
        "@app.task\nasync def gather(results: Results[int], by: str = 'rota.x.Y') -> None: ...\n\n\n"
        "@app.task\nasync def alarm(ended: Ended | None = None) -> None: ...\n"
    )
    found = {task["task"]: task["parameters"] for task in project.rota("tasks", "--json").json}
    assert found["gather"].startswith("results: Results[int], by: str")
    assert found["alarm"] == "ended: Ended | None = None"


def test_a_task_that_the_settings_here_disable_says_so_before_its_workers_do(project: Project) -> None:
    """Its workers read the settings when they started."""

    async def started() -> None:
        app = Rota(f"sqlite:///{project.database}")
        app.task(name="trip")(lambda: None)
        await (await app.client().store()).declare(core_of(app).registry.specs())
        await app.stop()

    asyncio.run(started())
    (project.folder / "rota.toml").write_text("[tasks.greet]\npriority = 1\n\n[tasks.trip]\nenabled = false\n")

    submitted = project.rota("submit", "trip", "message=x")
    rows = project.rota("tasks").out.splitlines()
    column = rows[0].split("\t").index("held back" if "held back" in rows[0] else "held")

    assert submitted.code == 1
    assert submitted.err == (
        "rota: trip is disabled (rota.toml, line 5), so that no run was made; set enabled to true there\n"
    )
    assert [row.split("\t")[column] for row in rows[1:3]] == ["", "disabled here"]
    told = project.rota("why", "trip", "--json").json
    assert told["answer"] == (
        "trip is disabled here (rota.toml, line 5): submits from here are refused; "
        "workers that run already go on with it until they are restarted"
    )
    assert told["held"] is True


def test_a_submit_of_a_task_that_its_workers_disable_says_so(rota: Called) -> None:
    rota.store(lambda store: store.declare([TaskSpec("greet", executor="loop", enabled=False)]))

    rota("submit", "greet", "--unknown-ok", code=1)

    assert rota.err == (
        "rota: greet is disabled by the code or the settings of its workers, so that no run was made; "
        "set enabled to true there and restart them\n"
    )


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
    assert whole["limit"] == {"total": 10, "per_key": 1, "name": None}
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


def test_without_an_app_the_store_of_url_says_which_tasks_there_are(
    rota: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROTA_APP", raising=False)
    rota.work()
    assert [each["task"] for each in rota.json("tasks")] == ["greet", "trip"]


def test_a_try_says_what_a_submit_would_answer_and_changes_nothing(project: Project) -> None:
    free = project.rota("tasks", "try", "greet", "name=Ada", "--unique", "queued", "--key", "ada")
    assert free.out.startswith("accepted: a new run would be due at ")
    assert "unique" in free.out
    assert project.rota("tasks", "--json").json[0]["queued"] == 0
    run = project.rota("submit", "greet", "name=Ada", "--unique", "queued", "--key", "ada").out.strip()
    joined = project.rota("tasks", "try", "greet", "name=Ada", "--unique", "queued", "--key", "ada", "--json").json
    assert (joined["reason"], joined["run"]) == ("joined", run)
    wrong = project.rota("tasks", "try", "greet", "nam=Ada")
    assert wrong.code != 0
    assert "name" in wrong.err
