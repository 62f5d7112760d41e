"""`rota schedules`: list and show schedules."""

from cyclopts import App

from rota.cli.options.parameters import LOOK, OnlyTask, Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Show
from rota.cli.render.text import plural
from rota.cli.schedules.control import backfill, delete, pause, resume, run_now, set_next
from rota.cli.schedules.find import ScheduleId, find_schedule, opened
from rota.cli.schedules.put import put
from rota.cli.schedules.view import schedule_columns, schedule_page
from rota.domain.decision import DecisionCount, Reason
from rota.domain.schedule import FIRINGS_KEPT
from rota.store import RowQuery
from rota.views.decisions import decision_view
from rota.views.schedules import Facts, expected, facts_of, schedule_detail, schedule_view
from rota.views.values import record

schedules = App(name="schedules", help="Look at schedules; put, pause, resume, delete and run them.", group=LOOK)
for command in (put, pause, resume, set_next, delete, run_now, backfill):
    schedules.command(command)


@schedules.command
def ls(
    *,
    task: OnlyTask = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """List schedules, the next to fire first.

    Times are in local time; in a pipe and in JSON, in UTC.
    """
    found = target.run(_listed(target, task))
    records = [record(schedule_view(facts)) for facts in found]
    show.records(records, schedule_columns(found), "No schedules; give a task one with @app.task(schedule=DailyAt(9)).")
    overdue = sum(facts.overdue for facts in found)
    if overdue and show.terminal and not show.json:
        are = "is" if overdue == 1 else "are"
        show.note(f"{plural(overdue, 'schedule')} {are} overdue: does a worker run? rota workers tells")


@schedules.command(name="show")
def show_schedule(id: ScheduleId, /, *, target: Shared[Target], show: Shared[Show]) -> None:
    """Show everything about one schedule: in words, its next ticks, and what became of the last thirty."""
    facts, expect, decided = target.run(_one(target, id))
    show.document(
        record(schedule_detail(facts, expect)) | {"asked": [record(decision_view(each)) for each in decided]},
        lambda: schedule_page(facts, decided),
    )


async def _listed(target: Target, task: str | None) -> list[Facts]:
    async with opened(target) as (stored, client):
        found = await stored.list(task)
        now = (await client.rows(DecisionCount, RowQuery(limit=1))).now
        listed = await facts_of(client, found, target.tz(), now, most=1)
    return sorted(listed, key=_order)


def _order(facts: Facts) -> tuple[int, float, str]:
    """Schedules that fire next come first; paused and ended ones come last."""
    schedule = facts.schedule
    if schedule.next_at is None or schedule.paused:
        return (2 if schedule.ended else 1), 0.0, schedule.id
    return 0, schedule.next_at, schedule.id


async def _one(target: Target, id: str) -> tuple[Facts, str | None, list[DecisionCount]]:
    async with opened(target) as (stored, client):
        schedule = await find_schedule(stored, id)
        about = await client.rows(DecisionCount, RowQuery(task=schedule.task, key=schedule.key))
        (facts,) = await facts_of(client, [schedule], target.tz(), about.now, FIRINGS_KEPT)
        last = Reason.PAUSED if schedule.paused else Reason.RESUMED
        return facts, await expected(client, schedule), [word for word in about.items if word.reason is last]
