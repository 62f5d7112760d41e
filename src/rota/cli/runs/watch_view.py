"""How `rota watch` looks on a terminal: two lines, one of them a bar."""

import time
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rota.cli.render.text import clean, coarse
from rota.cli.runs.view import last_seconds, state_text
from rota.domain.run import Run, State

if TYPE_CHECKING:
    from rota.cli.runs.watch import Look

WIDE = 80
BAR, SHORT_BAR = 30, 12
ECHO = len("^C") + 1
"""Columns left free at the end of the line. The terminal echoes ^C there; if the echo wraps, the next frame is drawn a
line too low."""


class Bar:
    """The run as it was last read; its clock goes on between two reads."""

    def __init__(self) -> None:
        self.look: Look | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.look is not None:
            yield self._lines(self.look, options.max_width)

    def _lines(self, look: "Look", width: int) -> RenderableType:
        from rota.cli.runs.watch import attempt, message

        run, now = look.run, look.now + time.monotonic() - look.at
        head = Text.assemble((clean(run.task), "bold"), "  ", state_text(run.state), "  ", no_wrap=True)
        calls = attempt(run)
        head.append(f"attempt {calls}  " if calls else "", style="dim")
        head.append(clean(run.id), style="dim")
        bar = BAR if width >= WIDE else SHORT_BAR
        line = Table.grid(padding=(0, 2))
        line.width = width - ECHO
        line.add_column(width=bar)
        line.add_column(width=4, justify="right")
        line.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        line.add_column(justify="right", no_wrap=True)
        word = "" if run.state.final else message(look, missing=False)  # the end is shown whole, below the bar
        line.add_row(_bar(run, bar), _share(run), Text(word), Text(elapsed(run, now), style="dim"))
        missing = [Text(clean(look.missing), style="yellow")] if look.missing else []
        return Group(head, line, *missing)


def _bar(run: Run, width: int) -> RenderableType:
    share = 1.0 if run.state is State.SUCCEEDED else run.progress.share if run.progress else 0.0
    pulse = run.state is State.RUNNING and run.progress is None
    style = {State.FAILED: "red", State.CANCELLED: "bright_black", State.PAUSED: "magenta"}.get(run.state, "cyan")
    return ProgressBar(
        total=1.0, completed=share, pulse=pulse, complete_style=style, finished_style="green", width=width
    )


def _share(run: Run) -> Text:
    if run.state is State.SUCCEEDED or run.progress is None:
        return Text()
    return Text(f"{run.progress.share:.0%}", style="bold")


def elapsed(run: Run, now: float) -> str:
    """Return how long the run runs, ran or has waited; or when it is due."""
    if run.state is State.RUNNING:
        return f"{max(0.0, now - (run.claimed_at or now)):.1f} s"
    if run.state.final:
        return f"{last_seconds(run):.1f} s" if run.attempts else ""
    if run.state is State.QUEUED and run.due_at > now:
        return f"due in {coarse(run.due_at - now)}"
    return f"waits for {coarse(max(0.0, now - max(run.created_at, run.due_at)))}"
