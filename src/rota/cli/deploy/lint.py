"""`rota lint`: what may be wrong with schedules, and with tasks that are done once."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from rich.console import Group, RenderableType
from rich.text import Text

from rota.cli.deploy.lint_tasks import lint_tasks
from rota.cli.forecast.cron import finding_lines
from rota.cli.forecast.inventory import read_inventory
from rota.cli.options.parameters import Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Show, columns
from rota.cli.render.text import one_line, plural
from rota.domain.lint import Finding
from rota.domain.schedule import Schedule
from rota.views.forecast import Inventory
from rota.views.schedules import words_of
from rota.views.triggers import schedule_findings

COLUMNS = columns("schedule", "level", "code", "message", "hint", "task")


class Linted(Struct, frozen=True):
    schedule: Schedule
    findings: Sequence[Finding]


def lint_schedules(*, target: Shared[Target], show: Shared[Show]) -> int:
    """Say what may be wrong with the schedules that the code declares and the store keeps, and with tasks that are done
    once; exits with 1 on an error.

    Clock changes, uneven steps, days that are not meant, schedules that never fire, fires closer than a run usually
    takes, policies that contradict each other; tasks that may return a failure which nothing reads, and so count as
    done. Schedules of other apps are left out.
    """
    app = target.app() if target.reference is not None else None
    inventory = target.run(read_inventory(target, app))
    found = list(linted(inventory))
    tasks = [] if app is None else list(lint_tasks(app))
    records = [_record(each.schedule, finding) for each in found for finding in each.findings]
    records += [_fields(finding) | {"schedule": None, "task": task, "trigger": None} for task, finding in tasks]
    show.records(records, COLUMNS, render=lambda: _page(found, tasks))
    return int(any(finding.level == "error" for each in found for finding in each.findings))


def linted(inventory: Inventory) -> Iterator[Linted]:
    """Yield the findings of each schedule. A schedule of the code replaces the stored one of the same name."""
    declared = {schedule.id: schedule for schedule in inventory.declared}
    ours = {
        id: known
        for id, known in inventory.stored.items()
        if not inventory.owner or known.owner in ("", inventory.owner)
    }
    for id, schedule in sorted((ours | declared).items()):
        if id in ours and ours[id].ended and ours[id].trigger == schedule.trigger:
            continue  # it has ended and never fires again
        duration = inventory.durations.get(schedule.task)
        yield Linted(schedule, schedule_findings(schedule, inventory.tz, inventory.now, duration))


def _record(schedule: Schedule, finding: Finding) -> dict[str, object]:
    return {"schedule": schedule.id, "task": schedule.task, "trigger": schedule.trigger} | _fields(finding)


def _fields(finding: Finding) -> dict[str, object]:
    return {"level": finding.level, "code": finding.code, "message": finding.message, "hint": finding.hint}


def _page(found: Sequence[Linted], tasks: Sequence[tuple[str, Finding]]) -> RenderableType:
    parts: list[RenderableType] = []
    for each in found:
        if each.findings:
            head = Text(one_line(each.schedule.id), style="bold")
            head.append(f"  {one_line(words_of(each.schedule.trigger))}", style="dim")
            parts += [head, finding_lines(each.findings), Text()]
    for task, finding in tasks:
        parts += [Text(one_line(task), style="bold"), finding_lines([finding]), Text()]
    clean = sum(not each.findings for each in found)
    if found:
        parts.append(Text(f"{plural(clean, 'schedule')} of {len(found)} without a finding", style="dim"))
    else:
        parts.append(Text("No schedules."))
    return Group(*parts)
