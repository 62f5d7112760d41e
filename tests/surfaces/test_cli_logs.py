"""What `rota worker` writes to its log: rota's lines and the app's own, as options and settings say."""

import json
import re

from tests.surfaces.project import Project, sentence

OWN = """
import logging

from rota import Rota

app = Rota()
log = logging.getLogger("shop.orders")


@app.task
def greet(name: str) -> str:
    log.debug("looking for %s", name)
    log.info("greeting %s", name)
    return f"hello {name}"


@app.task(executor="process")
def apart(name: str) -> None:
    log.info("greeting %s apart", name)
"""

LINE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00 (DEBUG|INFO|WARNING|ERROR) [\w.]+: ")


def burst(project: Project, *options: str, task: str = "greet", **environment: str) -> list[str]:
    """The log of a worker that does one run."""
    assert project.rota("submit", task, "name=Ada").code == 0
    done = project.rota("worker", "--burst", *options, **environment)
    assert done.code == 0, done
    return done.err.splitlines()


def test_lines_of_the_apps_own_loggers_are_shown_with_time_level_and_name(project: Project) -> None:
    (project.folder / "tasks.py").write_text(OWN)
    lines = burst(project)
    assert all(LINE.match(line) for line in lines), lines
    assert [line for line in lines if "INFO shop.orders: greeting Ada" in line]
    assert not [line for line in lines if "looking for" in line]


def test_levels_and_forms_are_options_and_settings(project: Project) -> None:
    (project.folder / "tasks.py").write_text(OWN)
    assert [line for line in burst(project, "-v") if "DEBUG shop.orders: looking for Ada" in line]
    assert burst(project, "--quiet") == []
    assert burst(project, ROTA_LOG_LEVEL="WARNING") == []
    (project.folder / "rota.toml").write_text('log_format = "json"\n')
    told = [json.loads(line) for line in burst(project, task="apart")]
    (own,) = [line for line in told if line["logger"] == "shop.orders"]
    assert own["message"] == "greeting Ada apart", "a child process writes the same log"
    assert own["task"] == "apart"
    assert own["run"] == next(line["run"] for line in told if "started (fence" in line["message"])
    assert own["worker"] == next(line["worker"] for line in told if "started (fence" in line["message"])


def test_the_plain_line_at_the_start_is_left_out_where_it_would_break_a_log(project: Project) -> None:
    """Programs read JSON lines of stdout and stderr together; and who wants warnings alone wants no greeting."""
    assert project.rota("worker", "--burst").out.startswith("rota worker: ")
    for options in (("--log-format", "json"), ("-q",), ("-q", "--processes", "2")):
        assert project.rota("worker", "--burst", *options).out == ""
    assert project.rota("worker", "--burst", ROTA_LOG_FORMAT="json").out == ""


def test_the_inner_life_of_the_renewer_is_no_news(project: Project) -> None:
    assert not [line for line in burst(project) if "renewer" in line]


def test_contradicting_options_are_refused(project: Project) -> None:
    assert "give one of them" in sentence(project.rota("worker", "-v", "--quiet"), code=2)


def test_an_app_that_sets_up_logging_keeps_its_own_lines(project: Project) -> None:
    own = OWN.replace(
        "import logging\n", 'import logging\n\nlogging.basicConfig(format="mine %(message)s", level=20)\n'
    )
    (project.folder / "tasks.py").write_text(own)
    lines = burst(project)
    assert "mine greeting Ada" in lines
    assert all(line.startswith("mine ") for line in lines)
    assert [line for line in lines if "succeeded in" in line], "and shows ours there"


def test_a_logger_that_the_app_has_given_a_handler_writes_each_line_once(project: Project) -> None:
    """As the LOGGING of a Django project does, which leaves the root alone."""
    own = OWN.replace(
        "import logging\n",
        "import logging\nhandler = logging.StreamHandler()\n"
        "handler.setFormatter(logging.Formatter('mine %(message)s'))\n"
        "logging.getLogger('rota').addHandler(handler)\n"
        "logging.getLogger('shop').addHandler(handler)\n",
    )
    (project.folder / "tasks.py").write_text(own)
    lines = burst(project)
    (done,) = [line for line in lines if "succeeded in" in line]
    assert done.startswith("mine greet ")
    assert lines.count("mine greeting Ada") == 1
    told = [json.loads(line) for line in burst(project, "--log-format", "json")]
    assert sum("succeeded in" in line["message"] for line in told) == 1
    told = [json.loads(line) for line in burst(project, "--log-format", "json", task="apart")]
    assert [line["task"] for line in told if line["message"] == "greeting Ada apart"] == ["apart"], "in a child too"
    (project.folder / "tasks.py").write_text(f"{own}\nlogging.getLogger('rota.shop').warning('no paper')\n")
    assert project.rota("tasks").err == "mine no paper\n", "and so does a command that does not log"
