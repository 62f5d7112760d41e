"""Around every race: a chat before it, its result after it; and what is looked at all day long."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from examples.race_day.app import DAY, app, log
from examples.race_day.racing import Race, milliseconds, racing
from rota import Context, Cron, PlanReport, Snooze, Task, TaskError

COURSES = ("Vincennes", "Auteuil")
ENOUGH_STARTERS = 8


@app.task
def autochat(ctx: Context, race: str) -> None:
    """A plain function that needs an async service: `app.portal` is the way from the one to the other."""
    chat = racing(ctx).chat
    app.portal.call(lambda: chat.post(f"{race} starts in a quarter of an hour"))
    log.info("autochat %s", race)


@app.task
async def watch_results(ctx: Context, race: str) -> str:
    winner = await racing(ctx).winner(race)
    if winner is None:
        log.info("the result of %s is not official yet", race)
        raise Snooze(60)
    log.info("%s won %s", winner, race)
    return winner


def plan_races(ctx: Context, period: str) -> str:
    return plan_program(app.portal.call(racing(ctx).program), period)


def plan_program(races: Sequence[Race], period: str) -> str:
    """One chat and one look at the result per race, by the program as it is now. Planning again follows it: what
    waits moves with its race, or goes with it. The planners are plain functions; `period` may be written either way."""
    chats = _around(races, autochat, timedelta(minutes=-15), period, lambda race: race.starters > ENOUGH_STARTERS)
    results = _around(races, watch_results, timedelta(minutes=10), period)
    return f"chats: {chats}; results: {results}"


def _around(
    races: Sequence[Race],
    task: "Task[..., [str], Any, Any]",
    offset: timedelta,
    period: str,
    where: Callable[[Race], bool] | None = None,
) -> PlanReport:
    report = app.plan_sync(
        task.name,
        races,
        call=lambda race: task.bind(race.id),
        at=lambda race: race.start,
        offset=offset,
        key=lambda race: race.id,
        period=period,
        where=where,
        grace=timedelta(minutes=10),
        skip_past=True,
    )
    for race in report.moved:
        log.info("%s of %s moves with its race", task.name, race)
    for race in report.cancelled:
        log.info("%s of %s is off", task.name, race)
    return report


@app.task(schedule=Cron("*/5 7-22 * * *"))
def follow_program(ctx: Context) -> str:
    assert ctx.nominal is not None
    return plan_races(ctx, DAY.name(ctx.nominal))


@app.task(schedule=Cron("*/15 7-22 * * *"), grace=600)
async def odds(ctx: Context) -> dict[str, float]:
    """No `once`: every tick is a run of its own."""
    assert ctx.nominal is not None
    now = milliseconds(ctx.nominal)
    to_come = [race.id for race in await racing(ctx).program() if race.start > now]
    if not to_come:
        raise TaskError("skipped", "no race is left")
    return {race: await racing(ctx).odds(race) for race in to_come}


@app.task(schedule=Cron("*/15 10-20 * * *"), grace=600)
async def ground_condition(ctx: Context) -> dict[str, str]:
    found = {course: await racing(ctx).ground(course) for course in COURSES}
    known = {course: ground for course, ground in found.items() if ground is not None}
    if len(known) < len(found):
        silent = ", ".join(course for course in found if course not in known)
        raise TaskError("partial", f"{len(known)} of {len(found)} courses; no word from {silent}")
    return known
