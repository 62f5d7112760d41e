"""`rota diff` and `rota sync`: show, or apply, what a start of this code would change in the store."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter
from msgspec import Struct

from rota.app.app import Rota
from rota.app.core import core_of
from rota.cli.deploy.diff_view import change_page
from rota.cli.forecast.inventory import read_inventory
from rota.cli.options.parameters import Flag, Shared
from rota.cli.options.target import Target, check_shared
from rota.cli.options.user import who
from rota.cli.render.show import Show, columns
from rota.cli.render.text import plural
from rota.domain.difference import Change, Owed, owed, schedule_changes, task_changes
from rota.domain.ticks import moved_tick
from rota.errors import InvalidOptions
from rota.views.changes import change_view, owed_view
from rota.views.forecast import Inventory

CHANGES = 3
"""The exit code if there are changes."""

COLUMNS = columns("change", "of", "id", "fields", "next_before", "next_after")


class Difference(Struct, frozen=True):
    inventory: Inventory
    changes: Sequence[Change]
    owed: Sequence[Owed]


def diff(*, target: Shared[Target], show: Shared[Show]) -> int:
    """Show what a start of this code would change in the store; exits with 3 if there are changes, else with 0.

    Schedules that are added, changed or moved to other times, those that the app once declared and no longer does
    (undeclared: only rota sync --prune removes them), those that belong to someone else (taken), and tasks. Runs that
    overdue schedules would make at once are shown too, but do not count as changes.
    """
    found = target.run(_difference(target, target.app()))
    _show_difference(show, found)
    return CHANGES if found.changes else 0


def sync(
    *,
    prune: Annotated[bool, Flag, Parameter(help="Also delete what the app's code no longer declares.")] = False,
    target: Shared[Target],
    show: Shared[Show],
) -> int:
    """Put what the code says into the store, as a start would, and show what that changed.

    No task runs. Schedules keep their pause and, if their times are the same, their next tick. --prune deletes
    schedules that are in the store under this app's name but not in its code. Exits with 1 if one of the
    code's schedules belongs to someone else.
    """
    app = target.app()
    if prune and app.settings.source("name") == "default":
        raise InvalidOptions(
            f"--prune deletes what the app {app.settings.name!r} no longer declares, but that name is only the "
            "default, which other apps have too; give this one its own with Rota(name=…), ROTA_NAME or name in "
            "the project file"
        )
    check_shared(app.backend)
    found = target.run(_sync(target, app, prune))
    left = [change for change in found.changes if change.kind == "undeclared" and not prune]
    _show_difference(
        show, Difference(found.inventory, [change for change in found.changes if change not in left], ()), done=True
    )
    if left:
        names = ", ".join(change.id for change in left)
        show.note(f"no longer in the code, and left alone: {names}; --prune deletes what is")
    return int(any(change.kind == "taken" for change in found.changes))


async def _difference(target: Target, app: Rota) -> Difference:
    inventory = await read_inventory(target, app)
    try:
        changes = schedule_changes(inventory.declared, inventory.stored, inventory.owner, inventory.now)
        due = owed(inventory.started(), inventory.now)
    except ValueError as error:
        raise InvalidOptions(str(error)) from None
    return Difference(inventory, [*changes, *task_changes(inventory.specs, inventory.published)], due)


async def _sync(target: Target, app: Rota, prune: bool) -> Difference:
    """Apply the changes and return them. Schedules that belong to someone else are left alone."""
    found = await _difference(target, app)
    async with app.client() as client:
        await client.declare(core_of(app).registry.published())
        await core_of(app).declare_schedules()
        moves = [moved_tick(found.inventory.stored[change.id]) for change in found.changes if change.kind == "moved"]
        await client.fire([move for move in moves if move is not None])
        if prune:
            await app.schedules.prune(
                app.settings.name, [schedule.id for schedule in core_of(app).registry.declared()], who()
            )
    return found


def _show_difference(show: Show, found: Difference, done: bool = False) -> None:
    records = [change_view(change) for change in found.changes]
    if show.json:
        show.value({"changes": records, "catch_up": [owed_view(each) for each in found.owed]})
        return
    show.records(records, COLUMNS, render=lambda: change_page(found.changes, found.owed, found.inventory, done))
    if not show.terminal:
        for each in found.owed:
            show.note(f"{each.schedule} would make {plural(each.runs, 'run')} at once")
