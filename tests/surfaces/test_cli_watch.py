"""`rota watch`: a run followed to its end, in each form."""

import io
import json
import time

import pytest
from rich.console import Console

from rota.cli.runs.watch import Look
from rota.cli.runs.watch_view import Bar
from rota.domain.run import Progress, Run, State
from rota.store import ClaimRequest
from tests.surfaces.called import Called, waiting
from tests.surfaces.project import Project, line_with, open_gate


def test_a_run_is_followed_from_the_queue_to_its_result(project: Project) -> None:
    gate = project.gate()
    run = project.rota("submit", "hold", f"gate={gate}").out.strip()

    with (
        project.start("watch", run[-8:]) as lines,
        project.start("watch", run, "--json") as objects,
    ):
        line_with(lines, "queued")
        line_with(objects, "queued")
        with project.start("worker", "--grace", "60") as worker:
            running = line_with(lines, "halfway").rstrip("\n").split("\t")
            half = json.loads(line_with(objects, "halfway"))
            open_gate(gate)
            end = line_with(lines, "succeeded").rstrip("\n").split("\t")
            last = json.loads(line_with(objects, "succeeded"))
            assert (lines.wait(60), objects.wait(60)) == (0, 0)
            worker.terminate()

    assert running[1:] == ["running", "1", "0.5", "halfway"]
    assert (half["state"], half["progress"], half["message"]) == ("running", 0.5, "halfway")
    assert end[1:] == ["succeeded", "1", "0.5", "held"]
    assert (last["id"], last["result"]) == (run, "held")


def test_what_failed_or_was_cancelled_is_exit_1(rota: Called) -> None:
    _, bad = rota.work()
    rota.put(waiting("abcdef-1"))
    rota("runs", "cancel", "abcdef-1", "--note", "not needed")

    failed = rota.json("watch", bad, code=1)
    said = rota.err
    cancelled = rota.json("watch", "abcdef-1", code=1)

    assert (failed["state"], failed["attempt"], failed["error"]["message"]) == ("failed", 2, "no")
    assert said == f"rota: trip {bad} failed: ValueError: no\n"
    assert (cancelled["reason"], cancelled["message"], cancelled["error"]) == ("cancelled", "not needed", None)


def test_a_run_that_does_not_end_is_left_after_the_timeout(rota: Called) -> None:
    rota.put(waiting("abcdef-1"))

    lines = rota("watch", "abcdef-1", "--timeout", "0", code=1).splitlines()

    assert lines[0].split("\t") == ["at", "state", "attempt", "progress", "message"]
    assert [line.split("\t")[1] for line in lines[1:]] == ["queued"]
    assert rota.err == (
        "rota: greet abcdef-1 has not ended within 0 s: it is queued and was due 0 s ago; "
        "no worker is alive: start one with `rota worker`; it goes on\n"
    )


def test_a_run_that_no_worker_is_there_for_says_so(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    rota.put(waiting("abcdef-1"))
    monkeypatch.setattr("rota.cli.runs.watch.PATIENCE", 0.0)

    (_, line) = rota("watch", "abcdef-1", "--timeout", "0", code=1).splitlines()

    assert line.split("\t")[1:] == ["queued", "0", "", "no worker is alive: start one with `rota worker`"]
    look = Look(Run("abcdef-1", task="greet"), 0.0, time.monotonic(), "no worker is alive")
    assert "no worker is alive" in drawn(look, 40).splitlines()[-1]


def test_a_run_of_a_dead_worker_says_so(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    rota.store(lambda store: store.put([waiting("abcdef-1")]), skew=-60)
    rota.store(lambda store: store.claim(ClaimRequest("ada", 1, ["greet"], 1, 30.0)), skew=-60)
    monkeypatch.setattr("rota.cli.runs.watch.PATIENCE", 0.0)

    (_, line) = rota("watch", "abcdef-1", "--timeout", "0", code=1).splitlines()

    words = line.split("\t")[-1]
    assert words.startswith("it is held by the dead worker ada (its lease lapsed ")
    assert words.endswith("): it starts again once a worker runs: `rota worker`")
    assert "within 0 s: it is held by the dead worker ada" in rota.err


def test_a_terminal_shows_the_end_and_the_result(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = rota.work("[b]\x1b[2Jstone")
    monkeypatch.setattr("rota.cli.render.show.Show.terminal", True)

    shown = rota("watch", good)
    failed = rota("watch", bad, code=1)

    assert "greet  succeeded  attempt 1" in shown
    assert shown.rstrip().endswith("hello Ada")
    assert "trip  failed  attempt 2" in failed
    assert rota.err.endswith("ValueError: [b]stone\n")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_bar_fits_the_terminal(width: int) -> None:
    now = 1_800_000_000.0
    run = Run(
        id="0123456789",
        task="resize",
        state=State.RUNNING,
        fence=1,
        claimed_at=now - 5,
        progress=Progress(0.42, "[red]\x1b[2Jrow 3\nof 7"),
    )
    head, line = drawn(Look(run, now, time.monotonic()), width).splitlines()

    assert head.startswith("resize  running  attempt 1")
    assert "42%" in line
    assert "5.0 s" in line
    assert width < 80 or "[red]row 3 of 7" in line
    assert max(len(head.rstrip()), len(line.rstrip())) <= width


def drawn(look: Look, width: int) -> str:
    bar = Bar()
    bar.look = look
    screen = Console(file=io.StringIO(), width=width, markup=False, force_terminal=False)
    screen.print(bar)
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()
