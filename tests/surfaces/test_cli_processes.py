"""`rota worker` with --processes, --tasks and --burst: real processes, real signals."""

import os
import re
import signal
import subprocess

import pytest

from tests.surfaces.project import Project, line_with, sentence

MORE = """
from rota import Rate, Rota

app = Rota()


@app.task(rate=Rate(20, per=1))
async def paced(n: int) -> int:
    return n


@app.task
async def relay() -> str:
    return (await app.submit("paced", 7)).id
"""


def pids(process: "subprocess.Popen[str]", count: int) -> list[int]:
    """The processes that the parent says it has started."""
    lines = [line_with(process, " is pid ") for _ in range(count)]
    return [int(re.findall(r"is pid (\d+)", line)[0]) for line in lines]


def states(project: Project) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for run in reversed(project.rota("runs", "ls", "--json").json):
        found.setdefault(run["task"], []).append(run["state"])
    return found


def test_a_process_that_is_killed_is_replaced_and_all_end_when_told(project: Project) -> None:
    with project.start("worker", "--processes", "2", "--tasks", "greet", "--concurrency", "1") as parent:
        first, _ = pids(parent, 2)
        for _ in range(2):
            line_with(parent, "rota worker: 1 task, ")
        os.kill(first, signal.SIGKILL)
        line_with(parent, f"process 1 (pid {first}) was killed by SIGKILL; another starts")
        (third,) = pids(parent, 1)
        line_with(parent, "rota worker: 1 task, ")
        assert project.rota("submit", "greet", "name=Ada", "--wait", "--timeout", "30").out == "hello Ada\n"
        parent.send_signal(signal.SIGTERM)
        rest, _ = parent.communicate(timeout=60)

    assert parent.returncode == 0, rest
    assert third != first
    assert rest.count(" stopped\n") == 2
    assert f" INFO [{third}] rota: worker " in rest, "a line says which process it is of"


def test_a_second_signal_hurries_every_process(project: Project) -> None:
    run = project.rota("submit", "forever").out.strip()

    with project.start("worker", "--processes", "2", "--grace", "3600") as parent:
        line_with(parent, f"forever {run} started")
        parent.send_signal(signal.SIGTERM)
        line_with(parent, "1 run in hand, for up to 3600.0 s")
        parent.send_signal(signal.SIGINT)
        rest, _ = parent.communicate(timeout=60)

    assert parent.returncode == 0, rest
    assert states(project) == {"forever": ["queued"]}


def test_a_process_that_does_not_end_gracefully_is_exit_1(project: Project) -> None:
    run = project.rota("submit", "forever").out.strip()

    with project.start("worker", "--processes", "2", "--grace", "3600") as parent:
        children = pids(parent, 2)
        line_with(parent, f"forever {run} started")
        parent.send_signal(signal.SIGTERM)
        line_with(parent, "1 run in hand, for up to 3600.0 s")
        for child in children:
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                continue  # the one without a run has ended gracefully by now
        rest, _ = parent.communicate(timeout=60)

    assert parent.returncode == 1, rest


def test_processes_end_with_their_parent(project: Project) -> None:
    with project.start("worker", "--processes", "2") as parent:
        for _ in range(2):
            line_with(parent, "rota worker: 4 tasks")
        parent.kill()
        rest, _ = parent.communicate(timeout=60)  # returns when the last of them has let go of the pipe

    assert rest.count(" stopped\n") == 2


def test_a_burst_ends_when_what_is_due_is_done(project: Project) -> None:
    project.rota("submit", "greet", "name=Ada")
    project.rota("submit", "greet", "name=Bob", "--delay", "3600")
    project.rota("submit", "trip", "message=held back")
    project.rota("tasks", "pause", "trip")

    done = project.rota("worker", "--burst")

    assert done.code == 0, done
    assert states(project) == {"greet": ["succeeded", "queued"], "trip": ["queued"]}


def test_a_burst_waits_for_what_a_rate_holds_back(project: Project) -> None:
    (project.folder / "more.py").write_text(MORE)
    for n in range(4):
        project.rota("-A", "more:app", "submit", "paced", f"n={n}")

    done = project.rota("-A", "more:app", "worker", "--burst", "--processes", "2")

    assert done.code == 0, done
    assert states(project) == {"paced": ["succeeded"] * 4}


def test_a_worker_of_some_tasks_leaves_the_others_alone(project: Project) -> None:
    (project.folder / "more.py").write_text(MORE)
    project.rota("-A", "more:app", "submit", "relay")

    done = project.rota("-A", "more:app", "worker", "--burst", "--tasks", "relay")

    assert "rota worker: 1 task, " in done.out
    assert states(project) == {"relay": ["succeeded"], "paced": ["queued"]}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--tasks", "greet,tripp"], "no task tripp is defined in the app; did you mean trip?"),
        (["--processes", "0"], "--processes 0: from 1 to 256"),
        (["--processes", "2", "--url", "memory://"], "memory:// is not shared by processes"),
    ],
)
def test_what_cannot_work_is_refused(project: Project, options: list[str], says: str) -> None:
    assert says in sentence(project.rota("worker", *options), code=2)


def test_queues_and_tasks_of_a_worker_both_hold(project: Project) -> None:
    for task, queue in (("greet", "images"), ("greet", "default"), ("greet", "mail"), ("forever", "images")):
        project.rota("submit", task, *(("name=Ada",) if task == "greet" else ()), "--queue", queue)

    done = project.rota("worker", "--burst", "--queues", "images,mail", "--tasks", "greet,trip")

    assert done.code == 0, done
    assert states(project) == {"greet": ["succeeded", "queued", "succeeded"], "forever": ["queued"]}


def test_a_worker_that_has_done_enough_exits_with_75(project: Project) -> None:
    for name in ("Ada", "Bob", "Cy"):
        project.rota("submit", "greet", f"name={name}")

    done = project.rota("worker", "--max-runs", "2", "--concurrency", "1")

    assert done.code == 75, done
    assert "ends with its last run: it has started 2 runs (--max-runs 2)" in done.err
    assert states(project) == {"greet": ["succeeded", "succeeded", "queued"]}


def test_a_worker_that_needs_too_much_memory_does_one_run_at_least(project: Project) -> None:
    for name in ("Ada", "Bob"):
        project.rota("submit", "greet", f"name={name}")

    done = project.rota("worker", "--max-memory", "1M", "--concurrency", "1")

    assert done.code == 75, done
    assert " MiB of memory (--max-memory 1M)" in done.err
    assert states(project) == {"greet": ["succeeded", "queued"]}


def test_a_process_that_has_done_enough_is_replaced_at_once(project: Project) -> None:
    for n in range(3):
        project.rota("submit", "greet", f"name={n}")

    done = project.rota("worker", "--processes", "2", "--max-runs", "1", "--concurrency", "1", "--burst")

    assert done.code == 0, done
    assert "has done enough; another takes its place" in done.err
    assert states(project) == {"greet": ["succeeded"] * 3}


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--max-runs", "0", "--max-runs 0: a whole number of runs, at least 1"),
        ("--max-memory", "500", "--max-memory 500: a number and a unit, such as 500M or 2G"),
    ],
)
def test_a_bound_that_means_nothing_is_refused(project: Project, option: str, value: str, says: str) -> None:
    done = project.rota("worker", option, value)
    assert (done.code, done.err) == (2, f"rota: {says}\n")


def test_one_worker_is_quiet_and_stopped_from_afar(project: Project) -> None:
    with project.start("worker", "--processes", "2") as parent:
        for _ in range(2):
            line_with(parent, "rota worker: 4 tasks")
        first, second = (row["name"] for row in project.rota("workers", "--json").json)
        assert project.rota("workers", "quiet", first, "--json").json == [
            {"worker": first, "changed": True, "seats": None, "quiet": True, "stop": False}
        ]
        assert project.rota("workers", "seats", second, "3", "--json").json[0]["seats"] == 3
        line_with(parent, "starts no more runs, as it was asked to")
        standing = {row["name"]: row["standing"] for row in project.rota("workers", "--json").json}
        assert standing == {first: "quiet", second: "idle"}
        assert project.rota("submit", "greet", "name=Ada", "--wait", "--timeout", "30").out == "hello Ada\n"
        for name in (first, second):
            assert project.rota("workers", "stop", name).code == 0
        rest, _ = parent.communicate(timeout=60)

    assert parent.returncode == 0, rest
    assert rest.count("was asked to stop; no other takes its place") == 2
    assert project.rota("workers", "stop", first).err == f"rota: worker {first} has stopped\n"
