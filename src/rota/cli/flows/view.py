"""How flows look on a terminal: a grid of steps and periods, and one period in full."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import cast
from zoneinfo import ZoneInfo

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from rota.cli.options.times import wall
from rota.cli.render.show import Column, Record, console, table_of
from rota.cli.render.text import coarse, one_line, plural, relative, span
from rota.cli.runs.view import outcome, short_id
from rota.domain.period import Period
from rota.domain.run import State
from rota.flow import FlowStatus, StepStatus
from rota.flow.status import StepState
from rota.views.flows import FlowPeriod

LOOK: dict[StepState, tuple[str, str]] = {
    "done": ("✔", "green"),
    "skipped": ("»", "green"),
    "running": ("▶", "bold yellow"),
    "due": ("○", "cyan"),
    "waiting": ("…", "cyan"),
    "blocked": ("■", "magenta"),
    "paused": ("‖", "magenta"),
    "failed": ("✖", "bold red"),
    "cancelled": ("⊘", "red"),
    "absent": ("·", "bright_black"),
}
SHOWN_STATES: dict[StepState, str] = {"absent": "not started"}
CELL = 6
GAP = 2
WORDS_FROM = 24
"""Columns that the text about the last period needs."""
NAME_SHOWN = 30


def state_text(state: StepState, words: bool = True) -> Text:
    glyph, style = LOOK[state]
    return Text(f"{glyph} {SHOWN_STATES.get(state, state)}" if words else glyph, style=style)


def flow_columns(listed: Sequence[FlowPeriod]) -> list[Column]:
    by_name = {flow_period.flow.name: flow_period for flow_period in listed}

    def of(record: Record) -> FlowPeriod:
        return by_name[str(record["flow"])]

    def count(name: str, style: str) -> Column:
        return Column(name, lambda r: Text(str(r[name]) if r[name] else "·", style if r[name] else "bright_black"))

    return [
        Column("flow", lambda r: Text(one_line(str(r["flow"])), style="bold")),
        Column("steps", piped=True),
        Column("period"),
        Column("complete", lambda r: strip(of(r).status), title="now", elastic=True, rank=2),
        Column("done", lambda r: f"{r['done']}/{r['steps']}", right=True),
        count("running", "bold yellow"),
        Column("waiting", piped=True),
        count("blocked", "magenta"),
        count("failed", "bold red"),
        Column("absent", piped=True),
        Column("next_recheck", lambda r: recheck_text(of(r)), title="recheck", rank=1),
    ]


def strip(status: FlowStatus) -> Text:
    return Text.assemble(*(state_text(step.state, words=False) for step in status.steps.values()))


def recheck_text(flow_period: FlowPeriod) -> Text:
    if flow_period.recheck is not None and flow_period.recheck.paused:
        return Text("paused", style="magenta")
    at = flow_period.next_recheck
    if at is None:
        return Text("none", style="bright_black")
    return Text(relative(at, flow_period.status.now))


class Grid:
    """One row per step, one column per period; as many of the last periods as fit the terminal."""

    def __init__(self, flow_period: FlowPeriod, statuses: Sequence[FlowStatus]) -> None:
        self.flow_period = flow_period
        self.statuses = statuses

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        steps = list(self.flow_period.status.steps.values())
        if not steps:
            yield Text(f"{self.flow_period.flow.name} has no steps yet; add them with flow.step(task).")
            return
        names = {name: f"{' ' * depth}{one_line(name)}" for name, depth in depths(self.flow_period.status).items()}
        width = min(NAME_SHOWN, max(map(len, names.values())))
        room = options.max_width - width - GAP
        shown = self.statuses[-max(1, room // (CELL + GAP)) :]
        left = room - len(shown) * (CELL + GAP)
        yield self._title()
        yield Text()
        yield self._table(shown, names, width, left if left >= WORDS_FROM else 0)
        yield Text()
        yield legend(step.state for status in shown for step in status.steps.values())
        yield from closing(self.flow_period)

    def _title(self) -> Text:
        flow_period = self.flow_period
        head = Text.assemble(
            (one_line(flow_period.flow.name), "bold"), f"  {plural(len(flow_period.flow.steps), 'step')}"
        )
        head.no_wrap, head.overflow = True, "ellipsis"
        return head.append(f"  {flow_period.zone} time", style="dim")

    def _table(self, shown: Sequence[FlowStatus], names: dict[str, str], width: int, words: int) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
        table.add_column("step\n", no_wrap=True, width=width, overflow="ellipsis")
        for status in shown:
            style = "bold" if status is shown[-1] else "dim"
            label = Text(period_label(self.flow_period, status.period), style=style)
            table.add_column(label, justify="center", width=CELL, no_wrap=True)
        if words:
            table.add_column("\n" + shown[-1].period, no_wrap=True, overflow="ellipsis", max_width=words)
        for name, indented in names.items():
            cells = [state_text(status.steps[name].state, words=False) for status in shown]
            last = [step_words(shown[-1].steps[name], shown[-1].now)] if words else []
            table.add_row(indented, *cells, *last)
        return table


def depths(status: FlowStatus) -> dict[str, int]:
    """Return the number of steps in the longest chain before each step."""
    found: dict[str, int] = {}
    for name, step in status.steps.items():
        found[name] = max((found[parent] + 1 for parent in step.after), default=0)
    return found


def period_label(flow_period: FlowPeriod, period: str) -> str:
    """Return the name of a period in two short lines."""
    once = flow_period.flow.once
    if not isinstance(once, Period):
        return f"\n{one_line(period)[-CELL:]}"
    begin: datetime = once.bounds(period)[0].astimezone(ZoneInfo(flow_period.zone))
    match once.unit:
        case "hour":
            return f"{begin:%d %b}\n{begin:%H:%M}"
        case "day":
            return f"{begin:%a}\n{begin:%d %b}"
        case "week":
            return f"{period[:4]}\n{period[5:]}"
        case _:
            return f"{begin:%Y}\n{begin:%b}"


def step_words(step: StepStatus, now: float) -> Text:
    """Return the text beside the glyph of a step."""
    since = "" if step.since is None else coarse(max(0.0, now - step.since))
    match step.state:
        case "done":
            own = (
                step.run is not None and step.run.state is State.SUCCEEDED
            )  # the mark was the mark was not set by hand since
            took = f" in {span(step.seconds)}" if own and step.seconds is not None else ""
            words = f"done {since} ago{took}"
        case "running":
            words = f"running for {since}"
        case "blocked":
            words = f"blocked by {', '.join(step.blocked_by)}"
        case "failed" | "cancelled" if step.run is not None:
            words = f"{step.state} {since} ago: {outcome(step.run, now)}"
        case "due" if step.run is not None:
            words = outcome(step.run, now)
        case "waiting":
            words = f"waits for {', '.join(step.after)}"
        case "absent":
            words = "not started"
        case _:
            words = step.state
    return Text(one_line(words), style=LOOK[step.state][1].removeprefix("bold "))


def legend(states: Iterable[StepState]) -> Text:
    """Return the meaning of each glyph that the grid shows."""
    seen = set(states)
    parts = [state_text(state) for state in LOOK if state in seen]
    return Text("   ").join(parts)


def closing(flow_period: FlowPeriod) -> list[Text]:
    """Return what to do next; empty if there is nothing to do."""
    flow, period, healed = flow_period.flow.name, flow_period.status.period, flow_period.healing
    bad = [step for step in flow_period.status.steps.values() if step.state in ("failed", "cancelled")]
    lines: list[str] = []
    if bad:
        lines.append(f"rota flows why {flow} {bad[0].name} --period {period} tells more")
        lines += [] if healed is None else [f"the recheck tries it again {_clock(healed, flow_period)}"]
    elif not flow_period.status.started:
        lines += [] if healed is None else [f"{period} starts {_clock(healed, flow_period)}"]
        lines.append(f"rota flows start {flow} --period {period} starts it now")
    return [Text(line, style="dim") for line in lines]


def healed_words(flow_period: FlowPeriod) -> str:
    """Return what starts the missing steps of a period, and when."""
    flow, period = flow_period.flow.name, flow_period.status.period
    start = f"`rota flows start {flow} --period {period}`"
    if (healed := flow_period.healing) is not None:
        return f"its recheck does what is missing {_clock(healed, flow_period)}, {start} at once"
    return f"no recheck looks at {period} any more: {start} does what is missing"


def _clock(at: float, flow_period: FlowPeriod) -> str:
    return f"{relative(at, flow_period.status.now)} ({wall(at, ZoneInfo(flow_period.zone), flow_period.status.now)})"


def step_columns(flow_period: FlowPeriod | None = None) -> list[Column]:
    """Return the steps of one period, or of several in a pipe."""
    steps = {} if flow_period is None else flow_period.status.steps
    levels = {} if flow_period is None else depths(flow_period.status)

    def of(record: Record) -> StepStatus:
        return steps[str(record["step"])]

    return [
        Column("period", piped=True),
        Column("step", lambda r: f"{' ' * levels[of(r).name]}{one_line(of(r).name)}"),
        Column("task", piped=True),
        Column("state", lambda r: state_text(of(r).state)),
        Column("since", lambda r: wall_time(of(r).since, flow_period), rank=1),
        Column("seconds", lambda r: "" if (took := of(r).seconds) is None else span(took), title="took", right=True),
        Column("attempts", lambda r: str(r["attempts"] or ""), title="tries", right=True, rank=4),
        Column("run", lambda r: Text(short_id(str(r["run"] or "")), style="dim"), rank=3),
        Column("blocked_by", piped=True, flat=lambda r: " ".join(blocking(r))),
        Column("error", lambda r: remark(of(r), flow_period), title="remark", elastic=True, rank=2),
    ]


def blocking(record: Record) -> list[str]:
    return cast("list[str]", record["blocked_by"])


def period_page(flow_period: FlowPeriod, records: Sequence[Record]) -> RenderableType:
    """Return one period with a line per step."""
    status = flow_period.status
    head = Text.assemble((one_line(status.flow), "bold"), f"  {status.period}", (f"  {flow_period.zone} time", "dim"))
    done = Text(f"{flow_period.count('done', 'skipped')} of {len(status.steps)} done", style="dim")
    table = table_of(records, step_columns(flow_period), console().width)
    return Group(head, Text(), table, Text(), done, *closing(flow_period))


def wall_time(at: float | None, flow_period: FlowPeriod | None) -> str:
    """Return the time of day; with the date if it is not today by the store's clock."""
    if at is None or flow_period is None:
        return ""
    zone = ZoneInfo(flow_period.zone)
    moment, today = datetime.fromtimestamp(at, zone), datetime.fromtimestamp(flow_period.status.now, zone)
    return f"{moment:%H:%M:%S}" if moment.date() == today.date() else f"{moment:%d %b %H:%M:%S}"


def remark(step: StepStatus, flow_period: FlowPeriod | None) -> Text:
    now = 0.0 if flow_period is None else flow_period.status.now
    if step.state == "blocked":
        return Text(one_line(f"blocked by {', '.join(step.blocked_by)}"), style="magenta")
    if step.state in ("failed", "cancelled") and step.run is not None:
        return Text(outcome(step.run, now), style="red")
    return step_words(step, now) if step.state in ("due", "waiting") else Text()
