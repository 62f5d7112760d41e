"""`rota events`: what happens, line by line."""

import json

from tests.surfaces.project import Project, line_with


def test_events_are_printed_as_they_happen_and_can_be_read_again(project: Project) -> None:
    project.rota("submit", "greet", "name=first")  # before anybody reads
    with project.start("events") as lines:
        assert line_with(lines, "cursor").split("\t")[:4] == ["at", "name", "of", "id"]
        seed = project.rota("events", "--json", "--limit", "1", "--since", "1")
        gap = json.loads(seed.out)
        assert (gap["name"], gap["of"], gap["id"]) == ("gap", None, None)
        with project.start("events", "--json", "--limit", "2", "--since", gap["cursor"]) as objects:
            run = project.rota("submit", "greet", "name=Ada").out.strip()
            queued = line_with(lines, run).rstrip("\n").split("\t")
            project.rota("runs", "cancel", run)
            cancelled = line_with(lines, "cancelled").rstrip("\n").split("\t")
            first = json.loads(line_with(objects, "queued"))
            line_with(objects, "cancelled")
            assert objects.wait(60) == 0
    assert queued[1:5] == ["queued", "runs", run, "greet"]
    assert (cancelled[1], cancelled[3], cancelled[7]) == ("cancelled", run, "cancelled")
    assert list(first) == [
        *("at", "name", "of", "id", "task", "key", "state", "reason", "fence", "worker", "group", "cursor")
    ]
    again = project.rota("events", "--json", "--limit", "1", "--since", first["cursor"])
    assert json.loads(again.out)["name"] == "cancelled"
    other = project.rota("events", "--json", "--limit", "1", "--task", "greet", "--since", first["cursor"])
    assert json.loads(other.out)["id"] == run


def test_what_cannot_be_a_cursor_is_refused(project: Project) -> None:
    project.rota("submit", "greet", "name=Ada")
    wrong = project.rota("events", "--since", "yesterday")
    assert (wrong.code, "cursor 'yesterday' is not where a list of events ended" in wrong.err) == (2, True)
    none = project.rota("events", "--limit", "0")
    assert (none.code, "a number from 1" in none.err) == (2, True)
