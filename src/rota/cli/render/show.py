"""All output of commands: tables on a terminal, TSV in a pipe, JSON with --json."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from rota.cli.render.text import UNSAFE_IN_JSON, clean, one_line, wrapped

Record = Mapping[str, object]
"""One thing as JSON has it; tables and TSV show some of its fields."""

GAP, SMALLEST, LEGIBLE = 2, 8, 16
WIDEST = 40
"""The most characters of a column that is neither whole nor elastic."""


class Column(Struct, frozen=True):
    """One field of the records: its text on a terminal and in a pipe, and when it is left out."""

    field: str
    human: Callable[[Record], str | Text] | None = None
    flat: Callable[[Record], object] | None = None
    title: str | None = None
    right: bool = False
    whole: bool = False
    """Never shortened, because people copy it."""
    elastic: bool = False
    """Shortened first if the terminal is narrow."""
    from_width: int = 0
    """Left out on narrower terminals."""
    rank: int = 0
    """Left out if it does not fit beside the columns of lower rank."""
    piped: bool = False
    """Only in a pipe."""
    sparse: bool = False
    """Left out on a terminal if it is empty in all records."""

    def on_screen(self, record: Record) -> Text:
        """Return the text on a terminal."""
        made = self.human(record) if self.human else self.text(record)
        return made if isinstance(made, Text) else Text(cell(made))

    def text(self, record: Record) -> str:
        """Return the text in a pipe."""
        return cell(self.flat(record) if self.flat else record.get(self.field))


def columns(*fields: str) -> list[Column]:
    """Columns that show `fields` as they are."""
    return [Column(field) for field in fields]


class Show:
    """Writes the answer of a command to stdout."""

    def __init__(self, json: bool = False) -> None:
        self.json = json

    @property
    def terminal(self) -> bool:
        return sys.stdout.isatty()

    def records(
        self,
        records: Sequence[Record],
        columns: Sequence[Column],
        empty: str = "",
        render: Callable[[], RenderableType] | None = None,
    ) -> None:
        """A list: a JSON array, TSV with a header, or a table (or `empty`, or the result of `render`)."""
        if self.json:
            self.value(list(records))
        elif not self.terminal:
            self._write("\t".join(column.field for column in columns))
            for record in records:
                self._write("\t".join(column.text(record) for column in columns))
        elif render is not None:
            console().print(render())
        elif not records:
            self.line(empty)
        else:
            screen = console()
            screen.print(table_of(records, columns, screen.width))

    def row(self, record: Record, columns: Sequence[Column]) -> None:
        """One line of a list that grows, flushed at once: a JSON object or TSV fields."""
        self._write(to_json(record) if self.json else "\t".join(column.text(record) for column in columns))
        sys.stdout.flush()

    def document(self, record: Record, render: Callable[[], RenderableType]) -> None:
        """One thing: a JSON object, TSV lines of field and value, or the result of `render`."""
        if self.json:
            self.value(record)
        elif not self.terminal:
            self._write("field\tvalue")
            for field, value in record.items():
                self._write(f"{field}\t{cell(value)}")
        else:
            console().print(render())

    def value(self, value: object) -> None:
        """A JSON document, indented on a terminal."""
        self._write(to_json(value, indent=2 if self.terminal else None))

    def line(self, text: str) -> None:
        """A line of text, flushed at once."""
        self._write(clean(text))
        sys.stdout.flush()

    def sentence(self, text: str, hanging: int = 0) -> None:
        """One line in a pipe; wrapped on a terminal, with later lines indented by `hanging` and commands whole."""
        line = one_line(text)
        self.line("\n".join(wrapped(line, console().width, hanging)) if self.terminal else line)

    def note(self, text: str) -> None:
        """A line on stderr, for what is not the answer itself."""
        sys.stderr.write(f"{clean(text)}\n")
        sys.stderr.flush()

    def _write(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")


def table_of(records: Sequence[Record], columns: Sequence[Column], width: int) -> Table:
    """Return a table with the columns that fit `width`."""
    table = Table(box=None, pad_edge=False, header_style="bold dim")
    wanted = [c for c in columns if not c.piped and width >= c.from_width and not (c.sparse and _empty(c, records))]
    shown = _fitting(wanted, records, width)
    for column, needed in zip(shown, _widths(shown, records, width), strict=True):
        table.add_column(
            Text(column.title or column.field),
            justify="right" if column.right else "left",
            no_wrap=True,
            overflow="fold" if column.whole else "ellipsis",
            width=needed,
        )
    for record in records:
        table.add_row(*(column.on_screen(record) for column in shown))
    return table


def _empty(column: Column, records: Sequence[Record]) -> bool:
    return not any(column.on_screen(record).plain.strip() for record in records)


def _fitting(columns: Sequence[Column], records: Sequence[Record], width: int) -> list[Column]:
    """Return the columns without a rank, and as many of the others as fit, lowest rank first."""
    room, shown = width + GAP, set[str]()
    for column in sorted(columns, key=lambda column: column.rank):
        need = _need(column, records)
        least = GAP + (min(need, LEGIBLE) if column.elastic else need)
        if least <= room or not column.rank:
            shown.add(column.field)
            room -= least
    return [column for column in columns if column.field in shown]


def _need(column: Column, records: Sequence[Record]) -> int:
    texts = [Text(column.title or column.field), *(column.on_screen(record) for record in records)]
    need = max(text.cell_len for text in texts)
    return need if column.whole or column.elastic else min(need, WIDEST)


def _widths(columns: Sequence[Column], records: Sequence[Record], width: int) -> list[int]:
    """Return the width of each column; elastic columns share what the others leave."""
    needs = [_need(column, records) for column in columns]
    room = width - GAP * (len(columns) - 1) - sum(n for c, n in zip(columns, needs, strict=True) if not c.elastic)
    elastic = sorted((n, i) for i, n in enumerate(needs) if columns[i].elastic)
    for left, (need, i) in zip(range(len(elastic), 0, -1), elastic, strict=True):
        needs[i] = min(need, max(SMALLEST, room // left))
        room -= needs[i]
    return needs


def console(stderr: bool = False) -> Console:
    """Return a console without markup, emoji codes or automatic highlighting."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def cell(value: object) -> str:
    """Return `value` as one TSV field: JSON for nested values, empty for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return clean(value).replace("\n", "\\n")
    return str(value) if isinstance(value, int | float) else to_json(value)


def to_json(value: object, indent: int | None = None) -> str:
    """JSON with invisible characters escaped, so that it cannot change a terminal."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
