"""How the calendar looks: a row per day, a column per hour; below, schedules that meet and busy seats."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rota.cli.options.times import wall
from rota.cli.render.text import one_line, plural, span
from rota.domain.deadline import deadline_id
from rota.domain.forecast import Forecast, Hour, Pace
from rota.domain.rehearsal import PeriodStart
from rota.domain.schedule import Schedule
from rota.views.forecast import Inventory
from rota.views.schedules import words_of, zone_of

WIDTH = 3
SHOWN = 8
LEAST = 0.05
"""Fewer busy seats than this are not shown."""
CROWDED = 10
FULL = 0.8
"""The share of the seats beyond which an hour is crowded."""


def calendar(inventory: Inventory, found: Forecast, chosen: Sequence[Schedule]) -> RenderableType:
    if not chosen:
        return Text("No schedules; give a task one with @app.task(schedule=DailyAt(9)).")
    days = _days(found, ZoneInfo(inventory.tz))
    parts: list[RenderableType] = [Text(f"Fires by hour, {inventory.tz} time", style="bold")]
    parts.append(_grid(days, found.counts, _count, lambda count: "cyan" if count < CROWDED else "bold cyan"))
    if any(busy >= LEAST for busy in found.seats.values()):
        parts += [Text(), Text(f"Busy seats by hour, in the mean{_of(inventory.seats)}", style="bold")]
        parts.append(_grid(days, found.seats, _seats, lambda busy: _load_style(busy, inventory.seats)))
    parts += _flows(inventory, found)
    parts += _expected(inventory, found, chosen)
    parts += _often(found.frequent)
    parts += _meetings(inventory, found)
    parts += _remarks(inventory, found, chosen)
    return Group(*parts)


def _days(found: Forecast, zone: ZoneInfo) -> list[date]:
    first, last = (datetime.fromtimestamp(at, zone).date() for at in (found.start, found.end))
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def _grid(
    days: Sequence[date],
    values: Mapping[Hour, float] | Mapping[Hour, int],
    spell: Callable[[float], str],
    style: Callable[[float], str],
) -> Table:
    grid = Table.grid()
    grid.add_column(no_wrap=True, min_width=7)
    for _ in range(24):
        grid.add_column(justify="right", no_wrap=True, min_width=WIDTH)
    grid.add_row("", *(Text(f"{hour:02}", style="dim") for hour in range(24)))
    for day in days:
        cells = [values.get((day, hour), 0.0) for hour in range(24)]
        grid.add_row(
            Text(f"{day:%a %d}", style="dim" if day.isoweekday() > 5 else ""),
            *(Text(spell(cell), style=style(cell)) if cell else Text("·", style="bright_black") for cell in cells),
        )
    return grid


def _count(count: float) -> str:
    return f"{count:.0f}" if count < 100 else "99+"


def _seats(busy: float) -> str:
    if busy < LEAST:
        return "·"
    if busy < 0.95:
        return f"{busy:.1f}".removeprefix("0")
    return f"{busy:.0f}" if busy < 99.5 else "99+"


def _load_style(busy: float, seats: int) -> str:
    if busy < LEAST:
        return "bright_black"
    if not seats:
        return "cyan"
    return "bold red" if busy > seats else "yellow" if busy > FULL * seats else "green"


def _of(seats: int) -> str:
    return f" ({plural(seats, 'seat')} of live workers)" if seats else " (no live workers)"


def _flows(inventory: Inventory, found: Forecast) -> list[RenderableType]:
    """For each flow, the next period with its steps, and the number of periods that follow."""
    parts: list[RenderableType] = []
    for name in dict.fromkeys(period.flow for period in found.flows):
        periods = [period for period in found.flows if period.flow == name]
        zone = ZoneInfo(own_zone_of(inventory, periods[0].schedule))
        parts += [_under_way(period, zone) for period in periods if period.begun]
        ahead = [period for period in periods if not period.begun]
        if ahead:
            parts += [_start(ahead[0], zone, inventory.now), _steps(ahead[0], zone, inventory.durations)]
        if len(ahead) > 1:
            behind = f"{ahead[1].period} to {ahead[-1].period}" if len(ahead) > 2 else ahead[1].period
            parts.append(Text(f"    and {plural(len(ahead) - 1, 'more period')}: {behind}", style="dim"))
    return [Text(), Text("Flows, by how long their steps usually take", style="bold"), *parts] if parts else []


def own_zone_of(inventory: Inventory, schedule: str) -> str:
    known = {each.id: each for each in (*inventory.stored.values(), *inventory.declared)}
    return zone_of(known[schedule].trigger, inventory.tz).key


def _under_way(period: PeriodStart, zone: ZoneInfo) -> Text:
    first = datetime.fromtimestamp(period.at, zone)
    count = f"{'at least ' if period.more else ''}{plural(period.rechecks, 'recheck')}"
    return Text(f"  {one_line(period.flow)} {one_line(period.period)} is under way: {count} from {first:%H:%M} on")


def _start(period: PeriodStart, zone: ZoneInfo, now: float) -> Text:
    rechecks = f"{'at least ' if period.more else ''}{plural(period.rechecks, 'recheck')}"
    line = Text.assemble("  ", (f"{one_line(period.flow)} {one_line(period.period)}", "bold"))
    line.append(f"  starts {wall(period.at, zone, now)}")
    if period.ends > period.at:
        line.append(f", done {span(period.ends - period.at)} later")
    return line.append(f", and {rechecks}" if period.rechecks else "")


def _steps(period: PeriodStart, zone: ZoneInfo, durations: Mapping[str, float]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(min_width=2)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", style="dim", no_wrap=True)
    for step in period.steps:
        at = datetime.fromtimestamp(step.begin, zone)
        took = span(durations[step.task]) if step.task in durations else "?"
        grid.add_row("", f"{at:%H:%M:%S}", one_line(step.name), took)
    return grid


def _expected(inventory: Inventory, found: Forecast, chosen: Sequence[Schedule]) -> list[RenderableType]:
    """Return each deadline once: what should be done by then, and when its next tick is."""
    known = {schedule.id: schedule for schedule in chosen}
    first: dict[str, float] = {}
    for each in found.deadlines:
        first.setdefault(each.schedule, each.at)
    lines = [
        f"{one_line(id.removeprefix(deadline_id('')))}  {one_line(words_of(known[id].trigger))}; "
        f"next {wall(at, zone_of(known[id].trigger, inventory.tz), inventory.now)}"
        for id, at in first.items()
    ]
    return _section("Should be done by (deadlines make no runs)", lines[:SHOWN], len(lines) - SHOWN) if lines else []


def _often(frequent: Sequence[Pace]) -> list[RenderableType]:
    if not frequent:
        return []
    lines = [f"{one_line(pace.schedule)}  {pace.per_day:,} times a day" for pace in frequent[:SHOWN]]
    return _section("All the time, so left out above", lines, len(frequent) - SHOWN)


def _meetings(inventory: Inventory, found: Forecast) -> list[RenderableType]:
    if not found.collisions:
        return [Text(), Text("No two schedules meet in the same minute.", style="green")] if found.fires else []
    zone = ZoneInfo(inventory.tz)
    lines = [
        f"{plural(len(met.minutes), 'time')}, first {wall(met.minutes[0], zone, inventory.now)}: "
        + ", ".join(one_line(name) for name in met.schedules[:SHOWN])
        + (f" and {len(met.schedules) - SHOWN} more" if len(met.schedules) > SHOWN else "")
        for met in found.collisions[:SHOWN]
    ]
    return _section("In the same minute", lines, len(found.collisions) - SHOWN)


def _remarks(inventory: Inventory, found: Forecast, chosen: Sequence[Schedule]) -> list[RenderableType]:
    """Return what the figures are based on, and what they leave out."""
    lines: list[str] = []
    meeting = sorted({fire.schedule for fire in found.fires if fire.meets})
    if meeting:
        lines.append(f"fires before its last run has ended, by the usual duration: {_listed(meeting)}")
    working = {schedule.task for schedule in chosen if schedule.deadline is None}
    steps = {step.task for period in found.flows for step in period.steps}
    known = {task for task in working | steps if task in inventory.durations}
    if known:
        usual = sorted(known, key=lambda task: -inventory.durations[task])
        lines.append("usual durations: " + _listed([f"{task} {span(inventory.durations[task])}" for task in usual]))
    unknown = sorted((working | steps) - known - {*inventory.flows})
    if unknown:
        lines.append(f"no run in the last two days, so no duration and no load: {_listed(unknown)}")
    paused = sorted(schedule.id for schedule in chosen if schedule.paused)
    if paused:
        lines.append(f"paused, so not in it: {_listed(paused)}")
    disabled = sorted(schedule.id for schedule in chosen if inventory.is_disabled(schedule))
    if disabled:
        lines.append(f"of disabled tasks, so not in it: {_listed(disabled)}")
    if found.unreadable:
        lines.append(f"cannot be read by this version, so not in it: {_listed(list(found.unreadable))}")
    return [Text(), *(Text(one_line(line), style="dim") for line in lines)] if lines else []


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _section(title: str, lines: Sequence[str], more: int) -> list[RenderableType]:
    rest = [Text(f"  and {more} more", style="dim")] if more > 0 else []
    return [Text(), Text(title, style="bold"), *(Text(f"  {line}") for line in lines), *rest]
