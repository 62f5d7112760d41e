"""Reads the jobs of an APScheduler 3, through its own library: its stores hold pickles, which rota never opens."""

import copy
import inspect
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from rota.domain.schedule import CatchUp, Overlap
from rota.domain.scheduling import Timed
from rota.domain.triggers import At, Every, Trigger
from rota.errors import InvalidOptions
from rota.movein.code import literals
from rota.movein.fields import CronSets, spell
from rota.movein.fires import with_named, zone_of
from rota.movein.plan import Fires, Row, Source, named_apart, refuse
from rota.movein.stops import stop_jobs

DEFAULTS: Mapping[str, Any] = {"misfire_grace_time": 1, "coalesce": True, "max_instances": 1}
FIRST_WEEKDAY = 1
"""APScheduler's weekday 0 is Monday, which is cron's 1."""
LIMITS = {"year": (1970, 2099), "month": (1, 12), "day": (1, 31), "week": (1, 53), "day_of_week": (0, 6)} | {
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
SPANS = ("RangeExpression", "MonthRangeExpression", "WeekdayRangeExpression")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DSTS = ("vixie", "twice", "each", "skip")
AND = "AndTrigger looks for a common time step by step and may pass it; write `a & b` of two rota triggers yourself"
CALENDAR = 'write Every(months=1, at="09:00") or the like yourself; rota counts from an anchor, it from its start_date'
LOSSY = "APScheduler forgets a run whose process dies: lost fail. misfire_grace_time is grace, coalesce is catch_up"


class BrokenJob:
    """Stands for a stored job that its library cannot restore here. Without it the library would delete the job."""

    next_run_time = None

    def __init__(self, error: BaseException) -> None:
        self.error = f"{type(error).__name__}: {error}"


def read_scheduler(load: Callable[[], object], where: str, now: datetime) -> Source:
    """Return the rows of the scheduler that `load` imports. A scheduler that its module starts is started paused."""
    try:
        from apscheduler.schedulers.base import BaseScheduler  # type: ignore[import-untyped]
    except ImportError:
        raise InvalidOptions(f"{where}: APScheduler 3 is not installed here; its own library reads its jobs") from None
    with _starts_paused(BaseScheduler):
        scheduler: Any = load()
    if not isinstance(scheduler, BaseScheduler):
        raise InvalidOptions(f"{where} is a {type(scheduler).__name__}, not a scheduler of APScheduler 3")
    defaults = {**DEFAULTS, **getattr(scheduler, "_job_defaults", {})}
    jobs = jobs_of(scheduler)
    rows = named_apart(_row(job, defaults, now) for job in jobs)
    carried = [str(job.id) for job, row in zip(jobs, rows, strict=True) if not row.refused]
    return Source(
        kind="apscheduler",
        where=where,
        rows=rows,
        notes=[LOSSY],
        engine="APScheduler's own triggers",
        stop="say --disable-source (for jobs in a job store), or call scheduler.pause() at that instant",
        stop_at=stop_jobs(scheduler, carried),
    )


@contextmanager
def _starts_paused(base: Any) -> Generator[None]:
    """Let no job run because a module starts its scheduler when it is imported."""
    start = base.start

    def start_paused(scheduler: Any, paused: bool = False) -> None:
        start(scheduler, True)

    base.start = start_paused
    try:
        yield
    finally:
        base.start = start


def jobs_of(scheduler: Any) -> list[Any]:
    """Return the jobs that wait for a start, and those in the stores."""
    pending = [job for job, *_ in scheduler._pending_jobs]
    found: dict[str, Any] = {job.id: job for job in pending}
    broken: list[Any] = []
    for alias, store in scheduler._jobstores.items():
        with _keeps_broken_jobs(store):
            if not scheduler.state:
                store.start(scheduler, alias)
            for job in store.get_all_jobs():
                if isinstance(job, BrokenJob):
                    broken.append(job)
                else:
                    found.setdefault(job.id, job)
    return [*found.values(), *broken]


@contextmanager
def _keeps_broken_jobs(store: Any) -> Generator[None]:
    """A store deletes jobs that it cannot restore, such as those whose module is not here. An import must not."""
    restore = getattr(store, "_reconstitute_job", None)
    if restore is None:
        yield
        return

    def restored(state: Any) -> Any:
        try:
            return restore(state)
        except BaseException as error:
            return BrokenJob(error)

    store._reconstitute_job = restored
    try:
        yield
    finally:
        del store._reconstitute_job


def _row(job: Any, defaults: Mapping[str, Any], now: datetime) -> Row:
    if isinstance(job, BrokenJob):
        row = Row(name="stored-job", where="stored job", says="a job", task="stored-job")
        return refuse(row, f"its library cannot restore it here: {job.error}; import it where its code is")
    module, _, function = (job.func_ref or "").partition(":")
    path = f"{module}.{function}"
    terms = {name: getattr(job, name, default) for name, default in defaults.items()}
    most, grace = int(terms["max_instances"]), terms["misfire_grace_time"]
    jitter = getattr(job.trigger, "jitter", None) or 0
    catch_up: CatchUp = "latest" if terms["coalesce"] else "all"
    overlap: Overlap = "allow" if most > 1 else "skip" if terms["coalesce"] else "buffer"
    row = Row(
        name=_slug(job.id, function),
        where=f"job {job.id}"[:40],
        says=f"{job.trigger} {path}",
        task=path,
        args=list(job.args),
        kwargs=dict(job.kwargs),
        timed=Timed(
            overlap=overlap,
            catch_up=catch_up,
            grace=None if grace is None else grace + jitter,
            lost="fail",
            start=_aware(getattr(job.trigger, "start_date", None)),
            end=_aware(getattr(job.trigger, "end_date", None)),
        ),
        limit=most if most > 1 else None,
        paused=hasattr(job, "next_run_time") and job.next_run_time is None,
        notes=_notes(terms, most),
        imports=[f"import {module}"],
        body=[f"{'await ' if _is_async(job) else ''}{path}({_literals(job)})"],
        is_async=_is_async(job),
    )
    reason = _mistake(job, module, function)
    return refuse(row, reason) if reason else _timed_row(row, job, now)


def _notes(terms: Mapping[str, Any], most: int) -> list[str]:
    notes: list[str] = []
    if terms["misfire_grace_time"] == 1:
        notes.append("grace is 1 s, APScheduler's default: a run that cannot start within it never does")
    if most > 1:
        notes.append(f"with {most} runs going on, APScheduler leaves a tick out; rota lets its run wait")
    return notes


def _mistake(job: Any, module: str, function: str) -> str:
    if not module or "<" in function:
        return "its function is a lambda or inside another one: rota calls functions of modules"
    if module == "__main__":
        return "its function is in the script that was run: move it into a module"
    try:
        msgspec.json.encode([list(job.args), dict(job.kwargs)])
    except (TypeError, ValueError) as error:
        return f"its arguments are no JSON: {error}"
    return ""


def _literals(job: Any) -> str:
    return literals(list(job.args), dict(job.kwargs))


def _is_async(job: Any) -> bool:
    return inspect.iscoroutinefunction(job.func)


def _slug(id: str, function: str) -> str:
    """Return the job's id, unless APScheduler made it up."""
    made_up = len(id) == 32 and all(letter in "0123456789abcdef" for letter in id)
    return (function if made_up else id)[:100] or "job"


def _timed_row(row: Row, job: Any, now: datetime) -> Row:
    """Return the row with its trigger; or refused, if rota has no trigger that fires as this one does."""
    try:
        return _with_trigger(row, job.trigger, getattr(job, "next_run_time", None), now)
    except (ValueError, TypeError) as error:
        return refuse(row, str(error))


def _with_trigger(row: Row, trigger: Any, next_run: datetime | None, now: datetime) -> Row:
    kind = type(trigger).__name__ if type(trigger).__module__.startswith("apscheduler.") else ""
    match kind:
        case "CronTrigger":
            tz, sets, spread = zone_of(trigger.timezone), cron_sets(trigger), trigger.jitter or 0
            return _cron_row(replace(row, tz=tz), [sets.trigger(tz, dst) for dst in DSTS], _bare(trigger), spread, now)
        case "IntervalTrigger":
            anchor = _whole(next_run or trigger.start_date)
            every = Every(trigger.interval, jitter=trigger.jitter or 0, anchor=anchor)
            started = replace(row, timed=replace(row.timed, start=None))
            return replace(started, trigger=every, engine=engine_of(_bare(trigger), anchor))
        case "DateTrigger":
            if trigger.run_date <= now:
                raise ValueError(f"{trigger.run_date.isoformat()} has passed")
            return replace(row, trigger=At(trigger.run_date), engine=engine_of(trigger))
        case "OrTrigger":
            return _or_row(row, trigger, now)
        case "AndTrigger":
            raise ValueError(AND)
        case "CalendarIntervalTrigger":
            raise ValueError(CALENDAR)
        case _:
            raise ValueError(f"rota does not know the trigger {type(trigger).__name__}")


def _cron_row(row: Row, candidates: list[Trigger], bare: Any, jitter: float, now: datetime) -> Row:
    engine = engine_of(bare)
    found = with_named(replace(row, trigger=candidates[0], model=engine, engine=engine), now, candidates)
    if not jitter:
        return found
    spread = Trigger.parse(f"{found.trigger} jitter {jitter}s") if " and " not in str(found.trigger) else None
    if spread is None:
        raise ValueError("jitter goes with one cron line, and this one needs two: leave the jitter out")
    return replace(found, trigger=spread)


def _or_row(row: Row, trigger: Any, now: datetime) -> Row:
    parts = cast("list[Any]", trigger.triggers)
    if any(type(part).__name__ != "CronTrigger" for part in parts):
        raise ValueError("an OrTrigger with other parts than CronTriggers counts from whichever fired last")
    zones = {zone_of(part.timezone) for part in parts}
    if len(zones) > 1 or any(part.start_date or part.end_date or part.jitter for part in parts):
        raise ValueError("the parts of the OrTrigger have zones, dates or jitter of their own: make a job of each")
    tz, sets = zones.pop(), [cron_sets(part) for part in parts]
    candidates: list[Trigger] = []
    for dst in DSTS:
        made = [each.trigger(tz, dst) for each in sets]
        candidates.append(made[0])
        for other in made[1:]:
            candidates[-1] |= other
    return _cron_row(replace(row, tz=tz), candidates, trigger, 0, now)


def engine_of(trigger: Any, first: datetime | None = None) -> Fires:
    """Return when the trigger fires, as its scheduler asks it: each time with the fire before. An interval counts from
    `first`."""

    def fires(start: datetime, end: datetime) -> Iterator[datetime]:
        previous, ending = first, _ending(trigger, end)
        if first is not None and start < first <= end:
            yield first
        while True:
            now = start + timedelta(microseconds=1) if previous is None else previous
            found = ending.get_next_fire_time(previous, now)
            fire = None if found is None else _whole(found)
            if found is None or fire is None or fire > end or (previous is not None and not _goes_on(previous, found)):
                return
            if fire > start and (previous is None or fire > _whole(previous)):
                yield fire
            previous = found

    return fires


def _goes_on(previous: datetime, found: datetime) -> bool:
    """Return whether a trigger gets ahead. Behind a gap it may answer one instant twice: as 02:40 in the gap, which is
    03:40, and as 03:40."""
    before, after = _whole(previous), _whole(found)
    return after > before or (after == before and found.replace(tzinfo=None) != previous.replace(tzinfo=None))


def _ending(trigger: Any, end: datetime) -> Any:
    """Return the trigger with an end, so that a search for a rare date does not go on to the year 9999."""
    if type(trigger).__name__ != "CronTrigger":
        return trigger
    ending = copy.copy(trigger)
    ending.end_date = end.astimezone(trigger.timezone)
    return ending


def cron_sets(trigger: Any) -> CronSets:
    """Return the numbers of a CronTrigger: its weekday 0 is Monday, and a day has to match all its day fields."""
    fields = {field.name: field.expressions for field in trigger.fields}
    numbers = {name: _numbers(name, fields[name]) for name in LIMITS if name != "day"}
    plain = [each for each in fields["day"] if type(each).__name__ in ("AllExpression", *SPANS)]
    special = [each for each in fields["day"] if each not in plain]
    return CronSets(
        seconds=numbers["second"],
        minutes=numbers["minute"],
        hours=numbers["hour"],
        months=numbers["month"],
        weekdays=frozenset((number + FIRST_WEEKDAY) % 7 for number in numbers["day_of_week"]),
        days=_numbers("day", plain),
        last_day=any(type(each).__name__ == "LastDayOfMonthExpression" for each in special),
        nth=tuple(_nth(each) for each in special if type(each).__name__ != "LastDayOfMonthExpression"),
        week=_narrowed("week", numbers["week"]),
        year=_narrowed("year", numbers["year"]),
    )


def _numbers(name: str, expressions: list[Any]) -> frozenset[int]:
    low, high = LIMITS[name]
    found: set[int] = set()
    for each in expressions:
        match type(each).__name__:
            case "AllExpression":
                found.update(range(low, high + 1, each.step or 1))
            case kind if kind in SPANS:
                last = high if each.last is None else min(each.last, high)
                found.update(range(each.first, last + 1, each.step or 1))
            case kind:
                raise ValueError(f"rota does not know {kind} in {name}")
    return frozenset(found)


def _nth(expression: Any) -> str:
    """Return `2nd fri` as cron has it: fri#2; `last fri` is 5L."""
    if type(expression).__name__ != "WeekdayPositionExpression":
        raise ValueError(f"rota does not know {type(expression).__name__} in day")
    if expression.option_num < 5:
        return f"{WEEKDAYS[expression.weekday]}#{expression.option_num + 1}"
    return f"{(expression.weekday + FIRST_WEEKDAY) % 7}L"


def _narrowed(name: str, numbers: frozenset[int]) -> str:
    text = spell(numbers, *LIMITS[name])
    return "" if text == "*" else text


def _bare(trigger: Any) -> Any:
    """Return a copy without jitter, start and end: rota has them apart from the trigger."""
    bare = copy.copy(trigger)
    bare.jitter = bare.end_date = None
    if type(trigger).__name__ == "CronTrigger":
        bare.start_date = None
    return bare


def _aware(instant: Any) -> datetime | None:
    return None if instant is None else cast("datetime", instant).astimezone(UTC)


def _whole(instant: datetime) -> datetime:
    """Return an instant in whole milliseconds, which sums of seconds keep."""
    utc = instant.astimezone(UTC) + timedelta(microseconds=500)
    return utc.replace(microsecond=utc.microsecond // 1000 * 1000)
