"""How schedules look on a terminal: a list of them, and one in full."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rota.cli.options.times import clock, wall
from rota.cli.render.show import Column, to_json
from rota.cli.render.text import clean, coarse, one_line, relative, span
from rota.cli.runs.view import STATE_STYLE, outcome, short_id
from rota.client.tick_outcomes import TickOutcome
from rota.domain.decision import DecisionCount, Reason
from rota.domain.run import DEFAULT_QUEUE
from rota.domain.schedule import CATCH_UP_CAP, Schedule
from rota.views.schedules import Facts, about_of, args_of, breaker_of, coming, policy_of, words_of

OVERLAP = {
    "skip": "skip: a tick makes no run while an earlier one is unfinished",
    "queue": "queue: at most one run waits behind the one that runs",
    "replace": "replace: a tick cancels the earlier run, and its own run starts when that has ended",
    "buffer": "buffer: runs wait for each other, in order",
    "allow": "allow: runs may go on side by side",
}
STYLE = {"paused": "magenta", "ended": "bright_black", "active": "green"}


def schedule_columns(listed: Sequence[Facts]) -> list[Column]:
    """Return the columns of a list; times are local, as in logs and `rota why`. `when` names the schedule's own
    zone."""
    facts: Mapping[object, Facts] = {each.schedule.id: each for each in listed}
    noted = any(
        each.schedule.paused and each.schedule.note for each in listed
    )  # the note says why a schedule is paused
    return [
        Column("next_at", lambda r: _next(facts[r["id"]]), title="next"),
        Column("left", lambda r: _left(facts[r["id"]]), right=True),
        Column("last_at", lambda r: _last_at(facts[r["id"]]), title="last at", rank=4, sparse=True),
        Column("passed", lambda r: _passed(facts[r["id"]]), title="last", right=True, rank=1, sparse=True),
        Column("last", lambda r: fate_text(facts[r["id"]].last), title="outcome", rank=2, sparse=True),
        Column("last_run", piped=True),
        Column("id", title="schedule"),
        Column("task", rank=3),
        Column("trigger", piped=True),
        Column("words", lambda r: _when(facts[r["id"]]), title="when", elastic=True, rank=5),
        Column("zone", piped=True),
        Column("state", lambda r: state_text(facts[r["id"]]), elastic=True, rank=1 if noted else 6),
        Column("note", piped=True),
        Column("owner", piped=True),
        Column("kind", piped=True),
    ]


def _when(facts: Facts) -> str:
    words = words_of(facts.schedule.trigger)
    return words if facts.schedule.deadline is None else f"deadline, {words}"


def state_text(facts: Facts) -> Text:
    note = f": {one_line(facts.schedule.note)}" if facts.schedule.note and facts.schedule.paused else ""
    return Text(f"{facts.state}{note}", style=STYLE[facts.state])


def fate_text(fate: TickOutcome | None) -> Text:
    if fate is None:
        return Text()
    if fate.state is not None:
        return Text(fate.word, style=STATE_STYLE.get(fate.word, ""))
    return Text(fate.word.replace("_", " "), style="dim" if fate.made or _harmless(fate) else "yellow")


def _harmless(fate: TickOutcome) -> bool:
    return fate.firing.reason is Reason.JOINED


def _next(facts: Facts) -> str | Text:
    if facts.schedule.next_at is None and facts.state == "active":
        return "at start"
    if facts.schedule.next_at is None or facts.schedule.paused:
        return Text(facts.state, style=STYLE[facts.state])
    return clock(facts.schedule.next_at, facts.now)


def _left(facts: Facts) -> str | Text:
    at = facts.schedule.next_at
    if at is None or facts.schedule.paused:
        return ""
    return Text(_away(at, facts.now), style="bold red" if facts.overdue else "")


def _away(at: float, now: float) -> str:
    return coarse(at - now) if at >= now else f"{coarse(now - at)} late"


def _last_at(facts: Facts) -> str:
    return clock(facts.last.firing.nominal, facts.now) if facts.last else ""


def _passed(facts: Facts) -> str:
    return relative(facts.last.firing.nominal, facts.now) if facts.last else ""


def schedule_page(facts: Facts, decided: Sequence[DecisionCount]) -> RenderableType:
    schedule = facts.schedule
    parts: list[RenderableType] = [
        Text.assemble((clean(schedule.id), "bold"), "  ", state_text(facts)),
        Text(words_of(schedule.trigger)),
        Text(schedule.trigger, style="dim"),
        Text(),
        _facts(facts, decided),
    ]
    if schedule.deadline is None:
        parts += _section("Arguments", Text(clean(to_json(args_of(schedule), indent=2))))
    ticks = coming(facts)
    if ticks:
        parts += _section("Next" + (" (once it is resumed)" if schedule.paused else ""), _ticks(facts, ticks))
    if facts.outcomes:
        parts += _section("Last firings", _fates(facts))
    return Group(*parts)


def _facts(facts: Facts, decided: Sequence[DecisionCount]) -> Table:
    schedule = facts.schedule
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")

    def at(instant: float | None) -> str | None:
        return None if instant is None else clock(instant, facts.now)

    rows = (
        ("task", schedule.task),
        *_own_rows(schedule),
        ("starts", at(schedule.start)),
        ("ends", at(schedule.end)),
        ("timeout", None if (timeout := policy_of(schedule).timeout) is None else span(timeout)),
        ("owned", owner_words(schedule)),
        ("since", at(schedule.since)),
        *[(str(word.reason), _decided_words(word, facts.now)) for word in decided],
        ("note", schedule.note),
    )
    for name, value in rows:
        if value is not None:
            grid.add_row(name, Text(clean(value)))
    return grid


def _own_rows(schedule: Schedule) -> list[tuple[str, str]]:
    if schedule.deadline is not None:
        return [("deadline", f"makes no runs: it is late unless {about_of(schedule)} has succeeded by then")]
    once = [] if schedule.once is None else [("once", f"per {schedule.once.unit}, {schedule.once.tz or 'UTC'} time")]
    return [
        ("key", schedule.key),
        ("priority", str(schedule.priority)),
        *([] if schedule.queue == DEFAULT_QUEUE else [("queue", schedule.queue)]),
        *once,
        ("overlap", overlap_words(schedule)),
        ("catch-up", catch_up_words(schedule)),
        ("grace", grace_words(schedule)),
        *_counted_rows(schedule),
    ]


def _counted_rows(schedule: Schedule) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    if schedule.overlap == "buffer":
        rows.append(("buffer", f"at most {schedule.buffer:,} runs wait"))
    if schedule.times is not None:
        rows.append(("times", f"{schedule.made:,} of {schedule.times:,} runs made"))
    if (breaker := breaker_of(schedule)) is not None:
        resting = span(breaker["cool_down"])
        rows.append(("breaker", f"after {breaker['failures']} failed runs in a row, none for {resting}"))
    return rows


def overlap_words(schedule: Schedule) -> str:
    unique = schedule.guards.unique
    own = f" (by its task's unique={unique!r})" if unique == "done" else ""
    return f"{OVERLAP[schedule.overlap]}{own}"


def catch_up_words(schedule: Schedule) -> str:
    words = {
        "latest": "latest: of ticks that nobody was there for, the last is made up",
        "all": f"all: ticks that nobody was there for are made up one after the other, the last {CATCH_UP_CAP}",
        "skip": "skip: ticks that nobody was there for are left out",
    }
    return words[schedule.catch_up]


def grace_words(schedule: Schedule) -> str:
    if schedule.grace is None:
        return "none: however late, a run still starts"
    return f"{span(schedule.grace)}: a run that could not start by then never does"


def owner_words(schedule: Schedule) -> str:
    return f"declared by the code of the app {schedule.owner!r}" if schedule.owner else "put at run time"


def _decided_words(word: DecisionCount, now: float) -> str:
    by = f" by {word.by}" if word.by else ""
    note = f": {one_line(word.note)}" if word.note else ""
    return f"{relative(word.last_at, now)}{by}{note}"


def _ticks(facts: Facts, ticks: Sequence[float]) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for nominal in ticks:
        away = f"in {coarse(nominal - facts.now)}" if nominal >= facts.now else _away(nominal, facts.now)
        grid.add_row(clock(nominal, facts.now), _dim(away), _dim(_own_time(nominal, facts)))
    return grid


def _own_time(instant: float, facts: Facts) -> str:
    """Return the time in the schedule's zone; empty if the local time is the same."""
    zone = ZoneInfo(facts.zone)
    own, here = datetime.fromtimestamp(instant, zone), datetime.fromtimestamp(instant).astimezone()
    return "" if own.utcoffset() == here.utcoffset() else wall(instant, zone, facts.now)


def _fates(facts: Facts) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for fate in reversed(facts.outcomes):
        end = _dim(outcome(fate.run, facts.now)) if fate.run is not None and fate.state is not None else Text()
        grid.add_row(
            clock(fate.firing.nominal, facts.now),
            fate_text(fate),
            _dim(short_id(fate.run.id) if fate.run_id is not None and fate.run is not None else ""),
            end,
        )
    return grid


def _dim(text: str) -> Text:
    return Text(text, style="dim", no_wrap=True, overflow="ellipsis")


def _section(title: str, body: RenderableType) -> list[RenderableType]:
    return [Text(), Text(title, style="bold"), Padding(body, (0, 0, 0, 2))]
