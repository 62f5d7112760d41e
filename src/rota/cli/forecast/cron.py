"""`rota cron`: explain a trigger: in words, its next fires, and what may be wrong with it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from rota.cli.options.parameters import Shared
from rota.cli.options.target import Target
from rota.cli.options.times import read_instant
from rota.cli.render.show import Column, Show
from rota.cli.render.text import span
from rota.domain.lint import Finding
from rota.errors import InvalidOptions
from rota.views.triggers import read_trigger, trigger_view
from rota.views.values import record

MOST = 1000
STYLE = {"error": "bold red", "warning": "yellow", "note": "cyan"}

COLUMNS = [
    Column("weekday", title="day"),
    Column("local", lambda r: _screen(r["local"]), whole=True),
    Column("utc", lambda r: _screen(r["utc"]), title="UTC", whole=True, from_width=60),
    Column("left", lambda r: f"in {span(float(str(r['left'])))}", right=True, from_width=40),
]


def cron(
    expr: str,
    /,
    *more: str,
    tz: Annotated[
        str | None,
        Parameter(help="The zone, if the trigger names none, instead of the project's; fires are shown in it."),
    ] = None,
    count: Annotated[int, Parameter(help="So many fires.")] = 10,
    start: Annotated[
        str | None, Parameter(name="--from", help="As if it were this time, such as 2026-11-15T00:00, in the zone.")
    ] = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Explain a trigger: in words, when it fires next, and what may be wrong with it.

    Takes a cron expression in quotes, or any other trigger: every 15m, daily 09:00, weekly mon,thu 09:00 Europe/Paris.
    A trigger that names no zone has the zone of the app or the project.

    Parameters
    ----------
    expr
        The trigger.
    more
        More words of it.
    """
    if not 1 <= count <= MOST:
        raise InvalidOptions(f"--count {count}: from 1 to {MOST}")
    tz = tz or target.configured_tz()
    trigger, zone = read_trigger(" ".join((expr, *more)), tz)
    now = datetime.now(UTC).replace(microsecond=0) if start is None else read_instant(start, "--from", zone)
    found = trigger_view(trigger, zone, tz, now, count)
    fires, findings = [record(fire) for fire in found.fires], found.findings
    if show.json:
        show.value(msgspec.to_builtins(found))
    elif show.terminal:
        show.line(f"{trigger.describe()}\n{trigger}\n")
        show.records(fires, COLUMNS, "It does not fire.")
        if findings:
            show.line("")
            show.records([], [], render=lambda: finding_lines(findings))
    else:
        show.records(fires, COLUMNS)
        for finding in findings:
            show.note(f"{finding.level}: {finding.message} {finding.hint}")


def _screen(instant: object) -> str:
    return str(instant).replace("T", " ").removesuffix("Z").removesuffix(".000000")


def finding_lines(findings: Sequence[Finding]) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for finding in findings:
        style = STYLE[finding.level]
        grid.add_row(Text(finding.level, style=style), Text(finding.message).append(f"\n→ {finding.hint}", style=style))
    return grid
