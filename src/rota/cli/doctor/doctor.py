"""`rota doctor`: one line per thing that could be wrong, and what to do about it."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Annotated

from cyclopts import Parameter
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from rota.app.core import core_of
from rota.cli.options.parameters import Flag, Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Column, Show
from rota.cli.render.text import coarse, one_line, plural
from rota.doctor.backend_checks import backend_checks
from rota.doctor.checks import Check, Verdict, good, override_checks, program_checks
from rota.errors import InvalidOptions, RotaError
from rota.store import Backend
from rota.stores.sqlite import SqliteBackend, repair
from rota.stores.sqlite.connection import connect

STYLE = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.FAIL: "bold red"}

COLUMNS = [Column("verdict"), Column("check"), Column("detail"), Column("advice")]


def doctor(
    *,
    strict: Annotated[bool, Flag, Parameter(help="A warning exits with 1 as well.")] = False,
    mend_clock: Annotated[
        bool, Flag, Parameter(help="Set the clock of an SQLite store back to this host's, and what it left ahead.")
    ] = False,
    target: Shared[Target],
    show: Shared[Show],
) -> int:
    """Check that this rota, its store and its app are sound.

    Exits with 1 if a check fails; a warning alone, such as queued runs without a worker, exits with 0 unless --strict.
    """
    if mend_clock:
        _mend_clock(target.backend(), show)
        return 0
    checks = list(examine(target))
    show.records([check.record() for check in checks], COLUMNS, render=lambda: _lines(checks))
    bad = (Verdict.FAIL, Verdict.WARN) if strict else (Verdict.FAIL,)
    return int(any(check.verdict in bad for check in checks))


def examine(target: Target) -> Iterator[Check]:
    """Yield all checks; a check comes after those that it depends on."""
    yield from program_checks()
    app = app_check(target)
    yield app
    if target.reference is not None and app.verdict is not Verdict.FAIL:
        yield from override_checks(target.app().settings, target.app().tasks)
        for more in core_of(target.app()).more_checks:
            yield from more()
    try:
        backend = target.backend()
    except RotaError as error:
        yield Check("store", Verdict.FAIL, str(error), "give --url, or mend the app")
        return
    yield from asyncio.run(backend_checks(backend))


def _mend_clock(backend: Backend, show: Show) -> None:
    if not isinstance(backend, SqliteBackend):
        raise InvalidOptions(f"--mend-clock: {backend.url} goes by the clock of its server; set that one (NTP)")
    with closing(connect(backend.path)) as connection:
        repaired = repair.repair_clock(connection, backend.path, time.time())
    if show.json:
        show.value({"ahead": repaired.ahead, "runs": repaired.runs, "leases": repaired.leases})
    elif repaired.ahead or repaired.runs or repaired.leases:
        brought = f"{plural(repaired.runs, 'waiting run')} and {plural(repaired.leases, 'lease')} brought back to now"
        show.line(f"{backend.url} was {coarse(repaired.ahead)} ahead of this host: set back, {brought}")
    else:
        show.line(f"{backend.url} is not ahead of this host: nothing to mend")


def app_check(target: Target) -> Check:
    """Return whether the app can be imported and has tasks."""
    try:
        if target.reference is None:
            cure = 'name it in rota.toml (app = "jobs:app"), with -A jobs:app, or in ROTA_APP'
            return Check("app", Verdict.WARN, "none is named", cure)
        tasks = target.app().tasks
    except RotaError as error:
        return Check("app", Verdict.FAIL, str(error), "mend the import, or name another app with -A")
    if not tasks:
        return Check("app", Verdict.WARN, f"{target.reference} has no tasks", "define one with @app.task")
    return good("app", f"{target.reference} with {plural(len(tasks), 'task')}")


def _lines(checks: Sequence[Check]) -> RenderableType:
    """Return the verdict, name and finding of each check; its advice, if any, on a line below."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for check in checks:
        verdict = Text(check.verdict.value, style=STYLE[check.verdict])
        detail = Text(one_line(check.detail))
        if check.advice:
            detail.append(f"\n→ {one_line(check.advice)}", style=STYLE[check.verdict])
        grid.add_row(verdict, check.name, detail)
    return grid
