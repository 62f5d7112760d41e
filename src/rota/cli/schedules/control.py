"""`rota schedules pause|resume|set-next|delete|run-now|backfill`: change a schedule, or make its runs."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any

from cyclopts import Parameter

from rota.cli.options.parameters import Shared, Yes
from rota.cli.options.target import Target
from rota.cli.options.times import clock, read_end, read_instant, read_until
from rota.cli.options.user import confirm, who
from rota.cli.render.show import Column, Show
from rota.cli.render.text import iso, one_line, plural
from rota.cli.schedules.find import ScheduleId, find_schedule, opened
from rota.client.handle import RunHandle
from rota.domain.intake import instant
from rota.domain.schedule import Schedule
from rota.domain.ticks import ticks_between
from rota.domain.timing import shown
from rota.errors import InvalidOptions
from rota.schedules.schedules import Schedules
from rota.schedules.stored import check_working
from rota.views.schedules import zone_of

UNASKED = 20
"""Runs that a backfill makes without asking."""

Why = Annotated[str | None, Parameter(help="Why; kept with the schedule and in its history.")]


def pause(
    id: ScheduleId,
    /,
    *,
    until: Annotated[
        str | None, Parameter(help="Fire again from then on: 2h or 3d from now, or 2026-11-20T09:00 in its zone.")
    ] = None,
    note: Why = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Fire no tick of a schedule until it is resumed; runs that were made before go on."""
    if until is not None:
        changed, schedule = target.run(_paused_until(target, id, until, note))
        _show_change(show, schedule, changed, f"fires again {_when(schedule)}")
        return
    changed, schedule = target.run(_changed(target, id, lambda stored: stored.pause(id, note, who())))
    _show_change(show, schedule, changed, "is paused" if changed else f"was paused already{_because(schedule)}")


def set_next(id: ScheduleId, at: str, /, *, target: Shared[Target], show: Shared[Show]) -> None:
    """Let the next tick be the first one at or after a time; ticks before it are left out.

    Parameters
    ----------
    at
        The time, such as 2026-11-20T09:00 in the schedule's zone.
    """
    schedule = target.run(_moved(target, id, at))
    _show_change(show, schedule, True, f"fires next {_when(schedule)}")


def resume(id: ScheduleId, /, *, note: Why = None, target: Shared[Target], show: Shared[Show]) -> None:
    """Resume a schedule. Ticks that passed during the pause make no runs."""
    changed, schedule = target.run(_changed(target, id, lambda stored: stored.resume(id, note, who())))
    _show_change(show, schedule, changed, "fires again" if changed else "was not paused")


def delete(id: ScheduleId, /, *, note: Why = None, target: Shared[Target], show: Shared[Show]) -> None:
    """Delete a schedule; its runs stay as they are. A schedule that code declares comes back when its app starts."""

    async def drop() -> Schedule:
        async with opened(target) as (stored, _):
            schedule = await find_schedule(stored, id)
            await stored.delete(id, note, who())
            return schedule

    schedule = target.run(drop())
    if show.json:
        show.value({"id": id, "deleted": True, "owner": schedule.owner or None})
    else:
        show.line(f"{id} is deleted")
    if schedule.owner:
        show.note(f"the code of the app {schedule.owner!r} declares it: its next start puts it back")


def run_now(id: ScheduleId, /, *, target: Shared[Target], show: Shared[Show]) -> None:
    """Make one more run at once and print its id; the ticks stay as they are.

    Refused while an earlier run is unfinished, if the schedule's overlap says so.
    """

    async def put() -> RunHandle[Any]:
        async with opened(target) as (stored, _):
            await find_schedule(stored, id)
            return await stored.run_now(id)

    run = target.run(put())
    if not run.created:
        show.note("joined: this run was there already")
    if show.json:
        show.value({"id": run.id, "schedule": id, "created": run.created})
    else:
        show.line(run.id)


def backfill(
    id: ScheduleId,
    /,
    *,
    start: Annotated[str, Parameter(name="--from", help="The first time, as 2026-11-15T00:00 in its zone.")],
    end: Annotated[str, Parameter(name="--to", help="The last time; a date alone includes that day.")],
    yes: Yes = False,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Make a run for every tick of a past range, one after the other, and print their ids.

    A tick whose run is still known is not repeated. More than 20 runs need a yes.
    """
    runs, now = target.run(_backfill(target, id, start, end, yes))
    records = [{"id": run, "nominal": iso(nominal)} for run, nominal in runs]
    times = {iso(nominal): clock(nominal, now) for _, nominal in runs}
    local = Column("nominal", lambda r: times[str(r["nominal"])], lambda r: r["nominal"])
    show.records(records, [Column("id", whole=True), local])


async def _backfill(target: Target, id: str, start: str, end: str, yes: bool) -> tuple[list[tuple[str, float]], float]:
    """Return the runs with their nominal times, and the time by the store's clock."""
    async with opened(target) as (stored, client):
        now = await client.now()
        schedule = await find_schedule(stored, id)
        check_working(schedule)
        zone = zone_of(schedule.trigger, target.tz())
        first, last = read_instant(start, "--from", zone), read_end(end, "--to", zone, now)
        nominals = _nominals(schedule, first, last)
        if not nominals:
            raise InvalidOptions(f"{id} has no tick from {start} to {end}")
        if len(nominals) > UNASKED and not yes:
            runs = f"{plural(len(nominals), 'run')} of {schedule.task}"
            await confirm(f"Make {runs}, one after the other?", "nothing was made", f"this makes {runs}")
        handles = await stored.backfill(id, first, last)
        return [(handle.id, nominal) for handle, nominal in zip(handles, nominals, strict=True)], now


def _nominals(schedule: Schedule, first: datetime, last: datetime) -> list[float]:
    try:
        return ticks_between(schedule, instant(first, "--from"), instant(last, "--to"))
    except ValueError as error:
        raise InvalidOptions(f"{schedule.id}: {error}") from None


async def _moved(target: Target, id: str, at: str) -> Schedule:
    async with opened(target) as (stored, _):
        schedule = await find_schedule(stored, id)
        zone = zone_of(schedule.trigger, target.tz())
        return await stored.set_next(id, read_instant(at, "the time", zone))


async def _paused_until(target: Target, id: str, until: str, note: str | None) -> tuple[bool, Schedule]:
    """Return whether that changed the next tick, and the schedule afterwards."""
    async with opened(target) as (stored, client):
        schedule = await find_schedule(stored, id)
        zone = zone_of(schedule.trigger, target.tz())
        end = read_until(until, "--until", zone, await client.now())
        return await stored.pause(id, note, who(), until=end), await stored.get(id)


def _when(schedule: Schedule) -> str:
    return shown(schedule.next_at)


async def _changed(target: Target, id: str, change: Callable[[Schedules], Awaitable[bool]]) -> tuple[bool, Schedule]:
    """Return whether `change` changed anything, and the schedule afterwards."""
    async with opened(target) as (stored, _):
        await find_schedule(stored, id)
        changed = await change(stored)
        return changed, await stored.get(id)


def _show_change(show: Show, schedule: Schedule, changed: bool, words: str) -> None:
    """A command that changes nothing is no error."""
    next_at = None if schedule.next_at is None else iso(schedule.next_at)
    if show.json:
        show.value({"id": schedule.id, "changed": changed, "paused": schedule.paused, "next_at": next_at})
    else:
        show.line(f"{schedule.id} {words}")


def _because(schedule: Schedule) -> str:
    return f": {one_line(schedule.note)}" if schedule.note else ""
