"""`rota worker` and `rota demo`: they do the work, and they stop when told to."""

import re
import signal
import subprocess
import sys

import pytest

from tests.surfaces.project import Project, line_with, open_gate, sentence


def test_a_worker_told_to_stop_finishes_its_run_and_exits_0(project: Project) -> None:
    gate = project.gate()
    run = project.rota("submit", "hold", f"gate={gate}").out.strip()

    with project.start("worker", "--concurrency", "2", "--grace", "60") as worker:
        said = line_with(worker, "rota worker:")
        line_with(worker, f"hold {run} started")
        worker.send_signal(signal.SIGTERM)
        open_gate(gate)
        rest, _ = worker.communicate(timeout=60)

    assert said == "rota worker: 4 tasks, 2 seats; Ctrl-C stops\n"
    assert worker.returncode == 0, rest
    assert project.rota("runs", "show", run, "--json").json["result"] == "held"


def test_a_second_signal_gives_the_run_back(project: Project) -> None:
    run = project.rota("submit", "forever").out.strip()

    with project.start("worker", "--grace", "1h") as worker:
        line_with(worker, f"forever {run} started")
        worker.send_signal(signal.SIGTERM)
        line_with(worker, "told to stop; a second Ctrl-C or SIGTERM stops the running handlers at once")
        worker.send_signal(signal.SIGINT)
        rest, _ = worker.communicate(timeout=60)

    assert worker.returncode == 0, rest
    shown = project.rota("runs", "show", run, "--json").json
    assert (shown["state"], shown["failures"], shown["losses"]) == ("queued", 0, 0)


def test_what_a_worker_logs_into_a_file_has_time_and_level(project: Project) -> None:
    run = project.rota("submit", "trip", "message=\x1b[2Jgone").out.strip()

    with project.start("worker") as worker:
        line = line_with(worker, f"trip {run} failed")

    assert "\x1b" not in line
    assert line.split()[1] == "WARNING"
    assert line.rstrip().endswith("ValueError: gone")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--concurrency", "0"], "concurrency=0"),
        (["--lease", "0"], "lease=0.0"),
        (["--grace", "-1"], "grace=-1.0"),
        (["--app", "empty:app"], "empty:app has no tasks"),
    ],
)
def test_a_worker_that_cannot_work_says_so(project: Project, options: list[str], says: str) -> None:
    (project.folder / "empty.py").write_text("from rota import Rota\napp = Rota()\n")

    assert says in sentence(project.rota("worker", *options), code=2)


@pytest.mark.parametrize(("options", "loop"), [([], "uvloop"), (["--loop", "asyncio"], "asyncio.unix_events")])
def test_a_worker_runs_on_uvloop_where_it_is_installed(project: Project, options: list[str], loop: str) -> None:
    (project.folder / "loops.py").write_text(
        "import asyncio\nfrom rota import Rota\napp = Rota()\n"
        "@app.task\nasync def which() -> str: return type(asyncio.get_running_loop()).__module__\n"
    )
    run = project.rota("submit", "--app", "loops:app", "which").out.strip()
    assert project.rota("worker", "--app", "loops:app", "--burst", *options).code == 0
    assert project.rota("runs", "show", run, "--json").json["result"] == loop


def test_the_demo_shows_tasks_that_ran_and_ends_by_itself(project: Project) -> None:
    done = project.rota("demo", "--terminal", "--seconds", "3", "--rate", "10")

    assert (done.code, done.err) == (0, "")
    assert "quick succeeded" in done.out
    assert f"rota demo on sqlite:///{project.folder}/.rota/demo.db" in done.out
    (schedule,) = project.rota("schedules", "ls", "--url", f"sqlite:///{project.folder}/.rota/demo.db").rows
    assert (schedule["task"], schedule["words"]) == ("regular", "every 5 seconds")
    assert len(done.out.splitlines()) < 30


def test_two_demos_in_a_row_count_every_run_once(project: Project) -> None:
    url = f"sqlite:///{project.folder}/other.db"
    ends = [project.rota("demo", "--terminal", "--seconds", "1", "--rate", "20", "--url", url).out for _ in range(2)]

    counts = [int(re.findall(r"(\d+) succeeded,", end)[-1]) for end in ends]
    stored = project.rota("runs", "ls", "--state", "succeeded", "--limit", "1000", "--url", url, "--json").json
    assert all(counts)
    assert sum(counts) == len(stored)


def test_the_demo_stops_on_ctrl_c(project: Project) -> None:
    with project.start("demo", "--terminal", "--rate", "20") as demo:
        line_with(demo, "succeeded")
        demo.send_signal(signal.SIGINT)
        rest, _ = demo.communicate(timeout=60)

    assert demo.returncode == 0, rest
    assert "rota demo ended after" in rest


def test_the_command_starts_without_what_only_the_demo_needs() -> None:
    probe = "import rota.cli.tree, sys; sys.exit('rich.live' in sys.modules or 'rota.cli.demo.demo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0
