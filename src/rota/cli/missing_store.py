"""What each command does if the SQLite file does not exist yet. A command that only reads creates no file."""

from collections.abc import Callable
from typing import Any

from rota.cli.deploy.diff import diff, sync
from rota.cli.deploy.lint import lint_schedules
from rota.cli.deploy.migrate import migrate_store
from rota.cli.flows import commands as flows
from rota.cli.flows import marks
from rota.cli.forecast.preview import preview
from rota.cli.movein.commands import apscheduler, beat_db, crontab
from rota.cli.options.target import Missing
from rota.cli.runs.submit import submit
from rota.cli.schedules.put import put
from rota.cli.serve.serve import serve
from rota.cli.tasks import commands as tasks
from rota.cli.tasks.call import call
from rota.cli.worker.dev import dev
from rota.cli.worker.worker import worker

CREATES: tuple[Callable[..., Any], ...] = (
    worker,
    dev,
    serve,
    submit,
    call,  # the function may submit
    sync,
    migrate_store,
    put,
    crontab,
    apscheduler,
    beat_db,
    marks.set_mark,
    flows.start,
    flows.backfill,
)
EMPTY: tuple[Callable[..., Any], ...] = (tasks.ls, flows.ls, diff, preview, lint_schedules)


def missing_for(command: Callable[..., Any]) -> Missing:
    if command in CREATES:
        return Missing.CREATED
    return Missing.EMPTY if command in EMPTY else Missing.REFUSED
