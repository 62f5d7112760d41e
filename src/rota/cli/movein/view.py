"""How a plan looks: a block of lines for each row, then the proof."""

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rota.cli.render.show import Column, columns
from rota.cli.render.text import clean, one_line, plural
from rota.movein.fires import DAYS, Proof
from rota.movein.plan import Difference, Row, Source

SIGN = {"same": "=", "differs": "~", "refused": "x"}
STYLE = {"same": "green", "differs": "yellow", "refused": "red"}
COLUMNS: list[Column] = columns("name", "where", "outcome", "trigger", "task", "says", "refused", "differences")
SHOWN = 4
"""Differences of a row on the screen; --json has all."""


def plan_page(source: Source, proofs: Sequence[Proof], cut: datetime | None) -> RenderableType:
    counts = {word: sum(row.outcome == word for row in source.rows) for word in SIGN}
    outcomes = ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "none"
    parts: list[RenderableType] = [Text(f"{source.kind} {one_line(source.where)}: {outcomes}", style="bold")]
    parts += [Text(clean(note), style="dim") for note in source.notes]
    if cut is not None:
        parts.append(Text(f"cut-over at {cut.isoformat().replace('+00:00', 'Z')}: rota fires from then on"))
    for row in source.rows:
        parts += [Text(), *_row(row, source.kind)]
    return Group(*parts, Text(), _proof(source, proofs))


def _row(row: Row, kind: str) -> list[RenderableType]:
    state = " (paused)" if row.paused else ""
    head = Text(f"{SIGN[row.outcome]} {clean(row.name)}{state}", style=STYLE[row.outcome])
    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="dim", no_wrap=True, width=11)
    grid.add_column(overflow="fold")
    lines = [(row.where, one_line(row.says))]
    if row.trigger is not None:
        lines += [("rota", str(row.trigger)), ("", row.trigger.describe())]
        lines += [("calls", one_line("; ".join(row.body) or row.task))]
    if row.refused:
        lines.append(("refused", row.refused))
    lines += [("differs" if not i else "", line) for i, line in enumerate(_differences(row, kind))]
    lines += [("note", note) for note in row.notes]
    for name, value in lines:
        grid.add_row(Text(f"  {name}"), Text(clean(value)))
    return [head, grid]


def _differences(row: Row, kind: str) -> list[str]:
    lines = [f"{_wall(each, row.tz)}: only {_who(each, kind)} fires; {each.why}" for each in row.differences[:SHOWN]]
    more = len(row.differences) - SHOWN
    return [*lines, f"and at {plural(more, 'more instant')}; --json has them"] if more > 0 else lines


def _wall(difference: Difference, tz: str) -> str:
    return f"{difference.at.astimezone(ZoneInfo(tz)):%a %d %b %Y %H:%M %Z}"


def _who(difference: Difference, kind: str) -> str:
    return "rota" if difference.by == "rota" else kind


def _proof(source: Source, proofs: Sequence[Proof]) -> Text:
    if not source.engine:
        return Text("Not proven: the engine of the source cannot be imported here.", style="dim")
    fires, unnamed = sum(each.compared for each in proofs), sum(len(each.unnamed) for each in proofs)
    words = f"Proof by {source.engine}: {plural(len(proofs), 'schedule')}, {fires:,} fires of the next {DAYS} days, "
    return Text(words + f"{unnamed} unnamed differences.", style="red" if unnamed else "green")
