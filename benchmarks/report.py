"""The report: what people see on the terminal, and what RESULTS.md keeps."""

import os
import platform
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from msgspec import Struct
from rich.console import Console
from rich.table import Table

from benchmarks.figures import Cost, Versus, middle, short
from benchmarks.settings import Settings

RESULTS = Path(__file__).with_name("RESULTS.md")
CRONSIM = "## Beside cronsim"
NEXT = "\n## "
REPEAT = "## How to repeat"
SERVERS = "## On Redis and PostgreSQL"
HARNESS = "## By an outside harness"
PAGES = "## The pages of the control room"
HTTP = "## Over HTTP"


class Grid(Struct, frozen=True):
    """A table, before anyone decides how it is drawn. The first column is text, the others are figures."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        rule = ["---", *("--:" for _ in self.heads[1:])]
        return "\n".join(f"| {' | '.join(row)} |" for row in (self.heads, rule, *self.rows))

    def rich(self) -> Table:
        table = Table(show_edge=False)
        for n, head in enumerate(self.heads):
            table.add_column(head, justify="right" if n else "left")
        for row in self.rows:
            table.add_row(*row)
        return table


def beside_huey(versus: Sequence[Versus]) -> Grid:
    heads = ("measure", "ratio", "goal", "rota SQLite", "Huey SQLite", "rota memory")
    return Grid(
        heads,
        [
            (f"{v.name}, {v.unit}", str(v.ratio), _goal(v), middle(v.rota), middle(v.huey), middle(v.memory))
            for v in versus
        ],
    )


def costs(found: Sequence[Cost], store: str = "rota SQLite") -> Grid:
    heads = ("measure", "ratio", "goal", store, "beside")
    return Grid(
        heads,
        [(f"{c.name}, {c.unit}", str(c.ratio), _most(c), middle(c.cost), middle(c.measure)) for c in found],
    )


def goals(versus: Sequence[Versus], found: Sequence[Cost]) -> list[str]:
    """A sentence for each."""
    against_itself = [
        f"{'Met' if c.met else 'Missed'}: {c.name} costs {short(c.ratio.middle)} times as much; "
        f"the goal is {c.goal:g} times or less."
        for c in found
        if c.goal is not None
    ]
    return against_itself + [
        f"{'Met' if v.met else 'Missed'}: {v.name} is {short(v.ratio.middle)} times Huey's on SQLite; "
        f"the goal is {v.goal:g} times or more."
        for v in versus
        if v.goal is not None
    ]


def show(versus: Sequence[Versus], found: Sequence[Cost]) -> None:
    console = Console()
    for grid in (beside_huey(versus), costs(found)):
        console.print(grid.rich())
        console.print()
    for sentence in goals(versus, found):
        console.print(sentence)


def write(versus: Sequence[Versus], found: Sequence[Cost], settings: Settings) -> None:
    """Keeps the sections that others have written before."""
    kept = {heading: section(heading) for heading in (CRONSIM, SERVERS, HARNESS, PAGES, HTTP)}
    parts = (
        "# Results",
        "Machines differ and have moods: read the ratios. Each is the median over the rounds of what was measured "
        "back to back, with the least and the most beside it.",
        _setting(settings),
        "## Goals",
        "\n".join(f"- {sentence}" for sentence in goals(versus, found)),
        "## Beside Huey",
        beside_huey(versus).markdown(),
        "A ratio says how many times better rota on SQLite is than Huey on SQLite; below 1 it is worse. "
        "The memory store has no second process: its worker drains in the process that submitted.",
        "## Against itself",
        costs(found).markdown(),
        kept[SERVERS],
        kept[CRONSIM],
        kept[PAGES],
        kept[HTTP],
        REPEAT,
        "`make bench`, or `python -m benchmarks --rounds 3 --runs 20000`; one part of it is "
        "`python -m benchmarks.triggers`. A fast look, which writes nothing, is `python -m benchmarks --quick`.",
        kept[HARNESS],
    )
    RESULTS.write_text("\n\n".join(part for part in parts if part) + "\n")


def write_section(heading: str, text: str) -> None:
    """Puts a section into the place of the one of that heading, or at the end."""
    whole = RESULTS.read_text() if RESULTS.exists() else "# Results\n"
    new = f"{heading}\n\n{text.strip()}"
    old = section(heading)
    RESULTS.write_text(whole.replace(old, new) if old else f"{whole.rstrip()}\n\n{new}\n")


def section(heading: str) -> str:
    """The section as it stands there; empty if it does not."""
    whole = RESULTS.read_text() if RESULTS.exists() else ""
    _, found, after = whole.partition(f"{heading}\n")
    return f"{found}{after.split(NEXT)[0]}".rstrip()


def _goal(v: Versus) -> str:
    return "" if v.goal is None else f"at least {v.goal:g}x: {'met' if v.met else 'missed'}"


def _most(c: Cost) -> str:
    return "" if c.goal is None else f"at most {c.goal:g}x: {'met' if c.met else 'missed'}"


def machine() -> str:
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.system()} on {platform.machine()} with {os.cpu_count()} CPUs, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"rota {version('rota')}, Huey {version('huey')}."
    )


def _setting(settings: Settings) -> str:
    return "\n".join(
        (
            f"- {machine()}",
            f"- {settings.rounds} rounds; {settings.runs:,} runs of a no-op, submitted and drained; a submit or drain "
            f"that takes longer than {settings.cap:g} s is measured by what it did until then.",
            "- Bulk submits come in chunks of 1,000. Drains are from the first to the last execution.",
            f"- Submit to start: {settings.paced} runs, one every {settings.gap * 1000:g} ms, the worker idle.",
            "- rota: an async task, 100 seats per worker, otherwise as it comes. Huey: `SqliteHuey(fsync=True, "
            "results=False)`, 4 threads per consumer, otherwise as it comes. Both run `synchronous = FULL`: what is "
            "submitted survives a power cut.",
        )
    )
