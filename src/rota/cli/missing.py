"""What each command makes of an SQLite store that is not there yet. A command that only reads creates nothing."""

from collections.abc import Callable
from typing import Any

from rota.cli import flows, marks, schedule_put, tasks
from rota.cli.apps import Missing
from rota.cli.call import call
from rota.cli.dev import dev
from rota.cli.diff import diff, sync
from rota.cli.lint import lint_schedules
from rota.cli.migrate import migrate_store
from rota.cli.preview import preview
from rota.cli.submit import submit
from rota.cli.worker import worker

CREATES: tuple[Callable[..., Any], ...] = (
    worker,
    dev,
    submit,
    call,  # the function may submit
    sync,
    migrate_store,
    schedule_put.put,
    marks.set_mark,
    flows.start,
    flows.backfill,
)
EMPTY: tuple[Callable[..., Any], ...] = (tasks.ls, flows.ls, diff, preview, lint_schedules)


def missing_for(command: Callable[..., Any]) -> Missing:
    if command in CREATES:
        return Missing.CREATED
    return Missing.EMPTY if command in EMPTY else Missing.REFUSED
