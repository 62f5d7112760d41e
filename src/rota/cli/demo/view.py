"""How the demo looks: depths, running runs, ended runs, and the throughput; for wide, narrow and short terminals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rota.app.core import core_of
from rota.cli.demo.board import Board
from rota.cli.render.text import clean, one_line, span
from rota.cli.runs.view import last_seconds, outcome, state_text
from rota.domain.run import Run, State

if TYPE_CHECKING:
    from rota.cli.demo.demo import Demo

SIDE_BY_SIDE, TALL = 96, 30
TASK_WIDTH = len("delayed")
BARS = " ▁▂▃▄▅▆▇█"
TASK_STYLE = {"quick": "cyan", "slow": "magenta", "flaky": "yellow", "delayed": "blue", "regular": "green"}


def scene(demo: "Demo", width: int, height: int) -> RenderableType:
    """Return one frame that fits the terminal."""
    board = demo.board
    tasks, seats = len(board.tallies), core_of(demo.app).tuning.concurrency
    head = _head(demo, width)
    foot = _foot(demo)
    pulse: RenderableType = _pulse(board, width)
    if height >= TALL:
        pulse = _frame("Since the start", pulse, 3)
    room = height - (5 if height >= TALL else 3)  # head, pulse, foot
    if width >= SIDE_BY_SIDE:
        upper = max(tasks, seats) + 3
        pair = Table.grid(expand=True)
        pair.add_column(ratio=3)
        pair.add_column(ratio=2)
        pair.add_row(
            _frame("Tasks", _tasks(board, wide=True), upper), _frame("Running now", _running(board, seats), upper)
        )
        body: list[RenderableType] = [pair]
        room -= upper
    else:
        seats = min(seats, max(2, (room - tasks - 8) // 2))
        body = [
            _frame("Tasks", _tasks(board, wide=False), tasks + 3),
            _frame("Running now", _running(board, seats), seats + 3),
        ]
        room -= tasks + 3 + seats + 3
    log = min(5, room - 12) if room > 15 else 0
    body.append(_frame("Ended", _ended(board, room - 3 - (log + 2 if log else 0), width), None))
    if log:
        body.append(_frame("Warnings", _log(list(demo.log)[-log:]), log + 2))
    return Group(head, *body, pulse, foot)


def _frame(title: str, body: RenderableType, height: int | None) -> Panel:
    return Panel(
        body,
        title=f"[bold]{title}[/]",
        title_align="left",
        border_style="bright_black",
        box=box.ROUNDED,
        height=height,
        padding=(0, 1),
    )


def _table(*columns: tuple[str, str], grow: str = "") -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    for name, side in columns:
        table.add_column(
            name,
            justify="right" if side == "r" else "left",
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if name == grow else None,
            min_width=TASK_WIDTH if name == "task" else None,
        )
    return table


def _head(demo: "Demo", width: int) -> Text:
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(" rota demo ", style="bold black on cyan")
    line.append(f"  {span(demo.board.seconds) if demo.board.seconds >= 1 else '0 s'}", style="bold")
    room = width - line.cell_len - 4
    url = clean(demo.app.backend.url)
    line.append(f"  {url if len(url) <= room else '…' + url[-room + 1 :]}", style="dim")
    return line


def _foot(demo: "Demo") -> Text:
    if demo.stopping:
        waiting = len(demo.board.running)
        return Text(f" Stopping: {waiting} still running; Ctrl-C again to leave them", style="yellow", no_wrap=True)
    return Text(" Ctrl-C stops gracefully", style="dim", no_wrap=True)


def _task(name: str) -> Text:
    return Text(clean(name), style=TASK_STYLE.get(name, ""))


def _tasks(board: Board, wide: bool) -> Table:
    columns = [("task", "l"), ("queued", "r"), ("running", "r"), ("succeeded", "r"), ("failed", "r")]
    columns += [("retries", "r")] if wide else []
    table = _table(*columns, grow="task")
    for name, tally in board.tallies.items():
        cells = [
            _number(tally.queued, "cyan"),
            _number(tally.running, "yellow"),
            _number(tally.ended[State.SUCCEEDED], "green"),
            _number(tally.ended[State.FAILED], "bold red"),
        ]
        cells += [_number(tally.retries, "yellow")] if wide else []
        table.add_row(_task(name), *cells)
    return table


def _number(count: int, style: str) -> Text:
    return Text(f"{count:,}", style=style) if count else Text("·", style="bright_black")


def _running(board: Board, rows: int) -> Table:
    table = _table(("task", "l"), ("id", "l"), ("try", "r"), ("progress", "l"), ("elapsed", "r"), grow="progress")
    for run in board.running[:rows]:
        table.add_row(
            _task(run.task),
            Text(short(run), style="dim"),
            str(run.failures + run.losses + 1),
            ProgressBar(total=1.0, completed=run.progress.share) if run.progress else Text(),
            Text(f"{max(0.0, board.now - (run.claimed_at or board.now)):.1f} s", style="bold"),
        )
    return table


def _ended(board: Board, rows: int, width: int) -> Table:
    wide = width >= SIDE_BY_SIDE
    columns = [("task", "l"), ("state", "l"), ("took", "r"), ("tries", "r"), ("ended", "r")]
    table = _table(*columns, *([("id", "l")] if wide else []), ("outcome", "l"), grow="outcome")
    for run in list(board.ended)[: max(1, rows)]:
        cells: list[str | Text] = [
            _task(run.task),
            state_text(run.state),
            span(last_seconds(run)),
            str(len(run.attempts)),
            f"{max(0.0, board.now - (run.finished_at or board.now)):.0f} s ago",
        ]
        cells += [Text(short(run), style="dim")] if wide else []
        table.add_row(*cells, Text(_answer(run, board.now), style="dim"))
    return table


def _answer(run: Run, now: float) -> str:
    """Return the result of a run, or the reason why it has none."""
    if run.state is State.SUCCEEDED and run.result:
        return one_line(run.result.decode(errors="replace"))
    return outcome(run, now)


def _log(lines: Sequence[str]) -> Group:
    return Group(*(Text(one_line(line), style="dim", no_wrap=True, overflow="ellipsis") for line in lines))


def _pulse(board: Board, width: int) -> Text:
    """Return the totals, and the ended runs per second as small bars."""
    line = Text(" ", no_wrap=True)
    succeeded, failed = board.total(State.SUCCEEDED), board.total(State.FAILED)
    line.append(f"{succeeded:,} succeeded", style="green")
    line.append("  ")
    line.append(f"{failed:,} failed", style="bold red" if failed else "bright_black")
    line.append("  ")
    line.append(f"{board.throughput:.1f}/s  ", style="bold")
    counts = board.per_second(max(0, min(60, width - line.cell_len - 5)))
    top = max(8, *counts, 0)
    line.append("".join(BARS[-(-count * 8 // top)] for count in counts), style="cyan")
    return line


def short(run: Run) -> str:
    """Return the end of an id. Ids begin with the time, so neighbours differ at the end."""
    return f"…{run.id[-8:]}"
