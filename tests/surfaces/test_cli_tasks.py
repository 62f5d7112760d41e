"""`rota tasks`: what the app defines, and what only the store knows."""

from tests.surfaces.project import Project


def test_tasks_are_told_with_their_policies_and_depths(project: Project) -> None:
    project.rota("submit", "greet", "name=Ada")

    greet, trip, hold, _ = project.rota("tasks", "--json").json

    assert greet == {
        "task": "greet",
        "parameters": "name: str, times: int = 1",
        "executor": "loop",
        "retries": 0,
        "timeout": None,
        "queued": 1,
        "running": 0,
        "defined": True,
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


def test_the_url_of_the_command_line_wins(project: Project) -> None:
    (project.folder / "fixed.py").write_text(
        "from rota import Rota\napp = Rota('sqlite:///fixed.db')\n@app.task\ndef noop() -> None: ...\n"
    )
    other = f"sqlite:///{project.folder}/other.db"

    project.rota("-A", "fixed:app", "submit", "noop", "--url", other)

    assert not (project.folder / "fixed.db").exists()
    assert len(project.rota("runs", "ls", "--url", other, "--json").json) == 1
