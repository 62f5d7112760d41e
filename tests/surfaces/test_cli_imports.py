"""Every command imports the app outside a running event loop, since the module of an app may run a loop of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

from rota.cli.tree import app as commands
from tests.surfaces.project import Project

MODULE = """
import asyncio
from rota import Period, Rota

async def fetch_settings() -> str:
    return "UTC"

app = Rota(tz=asyncio.run(fetch_settings()))

@app.task(schedule="daily 04:00")
def nightly() -> str:
    return "done"

flow = app.flow("race_day", once=Period.day(tz="UTC"))
flow.step(nightly, name="program")
"""

ARGUMENTS: dict[str, list[str]] = {
    "worker": ["--burst"],
    "audit": [],
    "serve": ["--port", "99999"],
    "submit": ["nightly"],
    "call": ["nightly"],
    "tasks": [],
    "tasks pause": ["nightly"],
    "tasks try": ["nightly"],
    "tasks set": ["nightly", "limit=5"],
    "stats": [],
    "tasks resume": ["nightly"],
    "runs ls": ["--flow", "race_day"],
    "runs show": ["{run}"],
    "runs logs": ["{run}"],
    "runs retry": ["{run}"],
    "runs cancel": ["{run}"],
    "runs pause": ["{run}"],
    "runs resume": ["{run}"],
    "runs reschedule": ["{run}", "--delay", "5"],
    "runs update": ["{run}", "--priority", "5"],
    "runs delete": ["{run}"],
    "undo": ["nothing"],
    "schedules ls": [],
    "schedules show": ["nightly"],
    "schedules put": ["mine", "daily 05:00", "nightly"],
    "schedules pause": ["nightly"],
    "schedules resume": ["nightly"],
    "schedules run-now": ["nightly"],
    "schedules set-next": ["nightly", "2099-01-01T00:00:00Z"],
    "schedules backfill": ["nightly", "--from", "2026-11-01", "--to", "2026-11-02"],
    "schedules delete": ["mine"],
    "flows ls": [],
    "flows show": ["race_day"],
    "flows why": ["race_day", "program"],
    "flows start": ["race_day"],
    "flows rerun": ["race_day", "program"],
    "flows reset": ["race_day"],
    "flows backfill": ["race_day", "2026-11-01", "2026-11-02"],
    "marks ls": [],
    "marks set": ["nightly", "x"],
    "marks clear": ["nightly", "x"],
    "workers": [],
    "workers quiet": ["nobody"],
    "workers resume": ["nobody"],
    "workers stop": ["nobody"],
    "workers seats": ["nobody", "3"],
    "watch": ["{run}", "--timeout", "0"],
    "events": ["--limit", "1", "--since", "1"],
    "why": ["nightly"],
    "mcp": [],
    "clear": ["nightly", "--yes"],
    "freeze": ["--until", "5m"],
    "thaw": [],
    "reset": ["race_day", "--period", "2026-11-15"],
    "preview": [],
    "diff": [],
    "sync": [],
    "lint": [],
    "doctor": [],
    "settings": [],
    "migrate": [],
    "import status": ["crontab", "/dev/null"],
}
SCRIPT = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from rota.cli import run

run(["sync"])
out = io.StringIO()
with redirect_stdout(out):
    run(["submit", "nightly"])
id, store, said = out.getvalue().strip(), sys.argv[2], {}
for name, arguments in json.loads(sys.argv[1]).items():
    sys.modules.pop("tasks", None)
    words = [*name.split(), *(word.format(run=id, store=store) for word in arguments)]
    err = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(err):
        run(words)
    said[name] = err.getvalue(), "tasks" in sys.modules
print(json.dumps(said))
"""

APPLESS = {"dev", "cron", "demo", "health", "move", "completion", "token new"}
APPLESS |= {f"import {source}" for source in ("crontab", "apscheduler", "beat-db", "celery", "huey", "k8s", "systemd")}
"""Commands that import no app in their own process."""


def every(app: App, before: str = "") -> Iterator[str]:
    """The names of all commands that can be called."""
    for name in app:
        if name.startswith("-"):
            continue
        inner = app[name]
        full = f"{before} {name}".strip()
        yield from every(inner, full)
        if inner.default_command is not None:
            yield full


def test_the_table_names_every_command() -> None:
    assert set(every(commands)) == {*ARGUMENTS, *APPLESS}


@pytest.mark.parametrize("url", [[], ["--url", "{store}"]], ids=["app's store", "--url"])
def test_an_app_that_runs_a_loop_while_it_is_imported_suits_every_command(tmp_path: Path, url: list[str]) -> None:
    project = Project(tmp_path)
    (tmp_path / "tasks.py").write_text(MODULE)
    table = {name: [*arguments, *url] for name, arguments in ARGUMENTS.items()}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(table), project.url],
        cwd=tmp_path,
        env=project.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, tuple[str, bool]] = json.loads(done.stdout.splitlines()[-1])
    assert {name: err for name, (err, _) in said.items() if "import" in err or "event loop" in err} == {}
    assert url or all(imported for _, imported in said.values()), "each command came as far as the app"
