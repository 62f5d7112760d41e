"""`rota schedules put`: add or change a schedule."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from cyclopts import Parameter
from msgspec import Struct

from rota.app.app import Rota
from rota.app.core import core_of
from rota.cli.options.arguments import Document, gather, gather_for
from rota.cli.options.names import unknown
from rota.cli.options.parameters import Flag, Shared, TaskName
from rota.cli.options.target import Target, check_shared
from rota.cli.options.times import clock, read_instant, seconds_of
from rota.cli.render.show import Show
from rota.cli.schedules.find import ScheduleId, opened
from rota.client.client import Client
from rota.domain.activity import Breaker
from rota.domain.intake import Options
from rota.domain.policy import Lost, Retry
from rota.domain.schedule import CatchUp, Overlap, Schedule
from rota.domain.scheduling import Timed
from rota.domain.spec import TaskSpec
from rota.domain.triggers import Trigger
from rota.errors import InvalidOptions, UnknownTask
from rota.schedules.schedules import put_made
from rota.schedules.stored import expected_version
from rota.store import RowQuery
from rota.task import definition_of
from rota.task.remote import call_by_spec
from rota.views.schedules import Facts, expected, facts_of, own_zone, schedule_detail, words_of
from rota.views.values import record


class Call(Struct, frozen=True):
    """The call that the schedule makes, as it was typed."""

    task: str
    values: Sequence[str]
    args: str | None
    options: Options
    unknown_ok: bool


def put(
    id: ScheduleId,
    trigger: Annotated[str, Parameter(help="When: a cron line, every 15m, daily 09:00, weekly mon 09:00; in quotes.")],
    task: TaskName,
    /,
    *values: Annotated[str, Parameter(help="The task's arguments as name=value, as with rota submit.")],
    args: Document = None,
    overlap: Annotated[
        Overlap | None,
        Parameter(help="Beside an unfinished run: none, one behind, any, one instead, many behind."),
    ] = None,
    catch_up: Annotated[CatchUp, Parameter(help="Of missed ticks, make up for the latest, all or none.")] = "latest",
    grace: Annotated[str | None, Parameter(help="Start no run later than this after its tick: 600 or 10m.")] = None,
    start: Annotated[str | None, Parameter(help="Nothing fires before, as 2026-11-15T09:00 in its zone.")] = None,
    end: Annotated[str | None, Parameter(help="Nothing fires after.")] = None,
    buffer: Annotated[int | None, Parameter(help="With --overlap buffer: how many runs may wait; 100.")] = None,
    times: Annotated[int | None, Parameter(help="End after so many runs.")] = None,
    breaker: Annotated[int | None, Parameter(help="After so many failed runs in a row, make none for a day.")] = None,
    expect: Annotated[str | None, Parameter(help="It is late unless a run has succeeded by then: 07:00.")] = None,
    tz: Annotated[str | None, Parameter(help="The zone, if the trigger names none.")] = None,
    key: Annotated[str | None, Parameter(help="What its runs are about, instead of the task's own key.")] = None,
    priority: Annotated[int | None, Parameter(help="From -100 to 100, higher goes first.")] = None,
    queue: Annotated[str | None, Parameter(help="The queue of its runs, instead of the task's.")] = None,
    timeout: Annotated[str | None, Parameter(help="Stop a call after so long, instead of the task's.")] = None,
    retry: Annotated[int | None, Parameter(help="Retry a failed call so often, instead of the task's.")] = None,
    lost: Annotated[Lost | None, Parameter(help="If its worker dies: retry, or fail; instead of the task's.")] = None,
    paused: Annotated[bool, Flag, Parameter(help="Fire nothing until it is resumed.")] = False,
    if_absent: Annotated[bool, Flag, Parameter(help="Leave a schedule of this name as it is.")] = False,
    if_version: Annotated[int | None, Parameter(help="Only if the schedule still has this version.")] = None,
    unknown_ok: Annotated[bool, Flag, Parameter(help="Take a task that neither app nor workers know.")] = False,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Add a schedule, or change the one of this name, from its next tick on.

    The task is looked up in the app, else among those that workers have published.
    """
    app = target.app() if target.reference is not None else None
    zone = tz or (app.settings.tz if app else target.tz())
    when, wall = _trigger(id, trigger, zone)
    timed = Timed(
        overlap=overlap,
        catch_up=catch_up,
        grace=seconds_of(grace, "--grace"),
        start=_instant(start, "--start", wall),
        end=_instant(end, "--end", wall),
        queue=queue,
        buffer=buffer,
        times=times,
        breaker=None if breaker is None else Breaker(breaker),
        timeout=seconds_of(timeout, "--timeout"),
        retry=None if retry is None else Retry(retry),
        lost=lost,
    )
    call = Call(task, values, args, Options(key=key, priority=priority), unknown_ok)
    version = expected_version(id, if_absent, if_version)
    made, deadline = target.run(_put(target, app, id, when, timed, call, expect, paused, version))
    if show.json:
        show.value(record(schedule_detail(made, deadline)))
    else:
        schedule = made.schedule
        next_at = "never" if schedule.next_at is None else clock(schedule.next_at, made.now)
        state = "; it is paused" if schedule.paused else ""
        show.line(f"{id} calls {task} {words_of(schedule.trigger)}; next {next_at}{state}")


async def _put(
    target: Target,
    app: Rota | None,
    id: str,
    trigger: Trigger,
    timed: Timed,
    call: Call,
    expect: str | None,
    paused: bool,
    version: int | None,
) -> tuple[Facts, str | None]:
    check_shared(target.backend())
    async with opened(target) as (stored, client):
        schedule = await _made(app, client, id, trigger, timed, call)
        kept = await put_made(stored, schedule, expect, paused, version)
        now = (await client.rows(Schedule, RowQuery(names=[id]))).now
        (facts,) = await facts_of(client, [kept], target.tz(), now, most=1)
        return facts, await expected(client, kept)


async def _made(app: Rota | None, client: Client, id: str, trigger: Trigger, timed: Timed, call: Call) -> Schedule:
    """Return the schedule. Its arguments are checked against the task's signature if the app has the task, else against
    the spec that a worker published."""
    known = core_of(app).registry.names() if app else {}
    if call.task in known:
        task = known[call.task]
        typed = gather_for(task, call.values, call.args)
        made = definition_of(task).call(tuple(typed.positional), typed.named, call.options)
        return made.to_schedule(id, trigger, timed)
    specs = {spec.name: spec for spec in (await client.rows(TaskSpec)).items if spec.executor}
    if call.task not in specs and not call.unknown_ok:
        raise UnknownTask(f"{unknown(call.task, {*known, *specs}, 'app or store')} (--unknown-ok takes any name)")
    given = gather(call.values, call.args, {})
    spec = specs.get(call.task) or TaskSpec(call.task)
    return call_by_spec(spec, given.positional, given.named, call.options).to_schedule(id, trigger, timed)


def _trigger(id: str, text: str, tz: str) -> tuple[Trigger, ZoneInfo]:
    """Return the trigger in its zone, and the zone."""
    try:
        trigger = Trigger.parse(text).in_zone(tz)
        return trigger, ZoneInfo(own_zone(trigger) or tz)
    except (ValueError, KeyError) as error:
        raise InvalidOptions(f"schedule {id}: {error}") from None


def _instant(text: str | None, option: str, zone: ZoneInfo) -> datetime | None:
    return None if text is None else read_instant(text, option, zone)
