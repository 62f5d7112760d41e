"""`rota submit`: what is taken, what is refused, and how that is said."""

import json

import pytest

from tests.surfaces.project import Done, Project, line_with, sentence


def run_of(project: Project, done: Done) -> dict[str, object]:
    assert done.code == 0, done
    found: dict[str, object] = project.rota("runs", "show", done.out.strip(), "--json").json
    return found


def test_a_submit_prints_the_id_of_a_durable_run(project: Project) -> None:
    run = run_of(project, project.rota("submit", "greet", "name=Ada", "times=2", "--priority", "7"))

    assert run["task"] == "greet"
    assert run["state"] == "queued"
    assert run["args"] == {"name": "Ada", "times": 2}
    assert run["priority"] == 7


def test_a_submit_may_have_a_policy_of_its_own(project: Project) -> None:
    options = ("--run-timeout", "1h", "--retry", "2", "--lost", "fail")
    policy = run_of(project, project.rota("submit", "greet", "name=Ada", *options))["policy"]

    assert isinstance(policy, dict)
    assert (policy["timeout"], policy["retry"]["limit"], policy["lost"]) == (3600.0, 2, "fail")
    assert "whole number from 0" in project.rota("submit", "greet", "name=Ada", "--retry", "-1").err


def test_a_submit_may_have_headers(project: Project) -> None:
    done = project.rota("submit", "greet", "name=Ada", "--header", "tenant=acme", "--header", "query=a=b")

    assert run_of(project, done)["headers"] == {"tenant": "acme", "query": "a=b"}
    assert '{"tenant": "acme", "query": "a=b"}' in project.rota("runs", "show", done.out.strip()).out
    assert "write it as name=value" in project.rota("submit", "greet", "name=Ada", "--header", "tenant").err


def test_a_submit_may_choose_its_id(project: Project) -> None:
    first = project.rota("submit", "greet", "name=Ada", "--id", "Ada-1")
    again = project.rota("submit", "greet", "name=Ada", "--id", "Ada-1", "--json")
    other = project.rota("submit", "greet", "name=Bo", "--id", "Ada-1")

    assert first.out.strip() == "Ada-1"
    assert again.json == {"id": "Ada-1", "task": "greet", "created": False}
    assert (other.code, "another task or other arguments" in other.err) == (1, True), other
    assert project.rota("runs", "show", "Ada-1", "--json").json["id"] == "Ada-1"


def test_the_code_of_the_app_checks_and_reads_changed_arguments(project: Project) -> None:
    id = project.rota("submit", "greet", "name=Ada", "--delay", "1h").out.strip()

    wrong = project.rota("runs", "update", id, "times=often")
    assert (wrong.code, "args: greet: Expected `int`, got `str` - at `$.times`" in wrong.err) == (2, True), wrong
    missing = project.rota("runs", "update", id, "name=null")
    assert (missing.code, "missing required field `name`" in missing.err) == (2, True), missing
    assert project.rota("runs", "update", id, "times=3", "name=7").code == 0
    assert project.rota("runs", "show", id, "--json").json["args"] == {"name": "7", "times": 3}


def test_a_value_stays_text_where_the_task_takes_text(project: Project) -> None:
    run = run_of(project, project.rota("submit", "greet", "name=5"))

    assert run["args"] == {"name": "5"}


def test_arguments_may_come_as_one_json_document(project: Project) -> None:
    (project.folder / "args.json").write_text('["Ada", 3]')

    by_name = run_of(project, project.rota("submit", "greet", "--args", '{"name": "Ada"}', "times=2"))
    by_place = run_of(project, project.rota("submit", "greet", "--args", "@args.json"))

    assert by_name["args"] == {"name": "Ada", "times": 2}
    assert by_place["args"] == {"name": "Ada", "times": 3}


def test_json_answers_with_one_document(project: Project) -> None:
    answer = project.rota("submit", "greet", "name=Ada", "--json").json

    assert answer.keys() == {"id", "task", "created"}
    assert answer["created"] is True


def test_a_submit_that_joins_prints_the_run_that_stands_for_it(project: Project) -> None:
    options = ("submit", "greet", "name=Ada", "--key", "ada", "--unique", "queued")
    first = project.rota(*options)
    again = project.rota(*options)
    told = project.rota(*options, "--json")
    other = project.rota("submit", "greet", "name=Ada", "--key", "bob", "--unique", "queued")

    assert again.out == first.out
    assert again.err == "joined: this run was there already\n"
    assert told.json == {"id": first.out.strip(), "task": "greet", "created": False}
    assert other.out != first.out


def test_a_refused_submit_is_one_sentence_and_exit_1(project: Project) -> None:
    (project.folder / "picky.py").write_text(
        "from rota import Rota\napp = Rota()\n"
        "@app.task(key='{path}', unique='queued', join='refuse')\ndef resize(path: str) -> None: ...\n"
    )
    made = project.rota("-A", "picky:app", "submit", "resize", "path=a.png", "--json").json

    said = sentence(project.rota("-A", "picky:app", "submit", "resize", "path=a.png"), code=1)

    assert "was refused: already_queued" in said
    assert project.rota("runs", "show", made["id"], "--json").json["key"] == "a.png"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["greet", "name=Ada", "times=often"], "greet: Expected `int`, got `str` - at `$.times`"),
        (["greet"], "missing a required argument: 'name'"),
        (["greet", "name=Ada", "size=1"], "greet has no argument 'size'; it takes name, times"),
        (["greet", "nam=Ada"], "greet has no argument 'nam'; did you mean name?"),
        (["greet", "Ada"], "'Ada': write arguments as name=value"),
        (["greet", "name=Ada", "name=Bob"], "'name' is given twice"),
        (["greet", "--args", "{nope"], "--args is not JSON"),
        (["greet", "--args", "5"], "a JSON object by parameter name"),
        (["greet", "--args", "@nowhere.json"], "nowhere.json: No such file or directory"),
        (["greet", "name=Ada", "--priority", "101"], "priority=101"),
        (["greet", "name=Ada", "--priority", "high"], "--priority"),
        (["greet", "name=Ada", "--delay", "-1"], "delay=-1.0"),
        (["greet", "name=Ada", "--at", "tomorrow"], "--at tomorrow: not an ISO 8601 instant"),
        (["greet", "name=Ada", "--at", "2026-11-15T09:00:00"], "no time zone"),
        (["greet", "name=Ada", "--at", "2026-11-15T09:00:00Z", "--delay", "1"], "both say when"),
        (["greet", "name=Ada", "--timeout", "1"], "--timeout says how long to --wait"),
        (["greet", "name=Ada", "--colour"], "--colour"),
        (["greet", "name=Ada", "--unique", "sometimes"], "--unique"),
        (["greet", "name=Ada", "--url", "memory://"], "memory:// ends with this command"),
        (["greet", "name=Ada", "--url", "carrier-pigeon://"], "no store understands"),
        (["two words", "--unknown-ok"], "not a task name"),
        (["elsewhere", "--unknown-ok", "--args", "[1]"], "arguments need names"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_exit_2(project: Project, arguments: list[str], says: str) -> None:
    assert says in sentence(project.rota("submit", *arguments), code=2)


def test_a_payload_of_a_mebibyte_is_refused(project: Project) -> None:
    payload = json.dumps({"name": "x" * 2**20})

    said = sentence(project.rota("submit", "greet", "--args", "-", stdin=payload), code=2)

    assert "the arguments of greet take 1,048,587 bytes, more than the 262,144 a run may carry" in said


def test_an_unknown_task_is_refused_with_the_likely_one(project: Project) -> None:
    said = sentence(project.rota("submit", "gret", "name=Ada"), code=2)

    assert "no task gret is defined in the app; did you mean greet?" in said


def test_an_unknown_task_is_taken_on_demand(project: Project) -> None:
    run = run_of(project, project.rota("submit", "elsewhere", "n=1", "text=a b", "--unknown-ok"))

    assert (run["task"], run["args"]) == ("elsewhere", {"n": 1, "text": "a b"})


def without_id(done: Done) -> Done:
    first, rest = done.err.split("\n", 1)
    assert first.startswith("waiting for run ")
    return done._replace(err=rest)


def test_waiting_prints_the_result_or_why_there_is_none(project: Project) -> None:
    with project.start("worker") as worker:
        line_with(worker, "rota worker: 4 tasks")
        good = project.rota("submit", "greet", "name=Ada", "--wait", "--timeout", "30")
        whole = project.rota("submit", "greet", "name=Ada", "--wait", "--timeout", "30", "--json")
        bad = project.rota("submit", "trip", "message=over \x1b[31ma\x1b[0m [b]stone[/b]", "--wait")
        late = project.rota("submit", "forever", "--wait", "--timeout", "0.05")

    assert (good.code, good.out) == (0, "hello Ada\n")
    assert good.err == f"waiting for run {project.rota('runs', 'ls', '--json').json[-1]['id']}\n"
    assert (whole.json["state"], whole.json["result"]) == ("succeeded", "hello Ada")
    assert "failed: ValueError: over a [b]stone[/b]" in sentence(without_id(bad), code=1)
    said = sentence(without_id(late), code=1)
    assert "has not ended within 0.05 s: it is " in said
    assert said.endswith("; it goes on\n")
