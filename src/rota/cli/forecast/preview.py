"""`rota preview`: a calendar of what will fire, which schedules meet, and how many seats are busy."""

from typing import Annotated
from zoneinfo import ZoneInfo

from cyclopts import Parameter

from rota.cli.forecast.inventory import read_inventory
from rota.cli.forecast.view import calendar
from rota.cli.options.parameters import OnlyTask, Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Show, columns
from rota.cli.render.text import iso
from rota.domain.forecast import DAY, forecast
from rota.errors import InvalidOptions
from rota.views.forecast import forecast_lines, forecast_view

LONGEST = 366

COLUMNS = columns("at", "schedule", "task", "meets", "kind", "step")


def preview(
    *,
    days: Annotated[int, Parameter(help="So many days from now.")] = 7,
    task: OnlyTask = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Show when schedules will fire: those the app's code declares, as if it were started now, and those in the store.

    By day and hour of the app's zone, with schedules that meet in the same minute and the seats that will be busy,
    estimated from the usual durations of the last two days. A flow is shown once per period, with its steps and when
    they can be expected, and with its deadlines. Nothing is called and nothing is changed.
    """
    if not 1 <= days <= LONGEST:
        raise InvalidOptions(f"--days {days}: from 1 to {LONGEST}")
    inventory = target.run(read_inventory(target, target.app() if target.reference is not None else None))
    chosen = [each for each in inventory.started().values() if task is None or each.task == task]
    end = inventory.now + days * DAY
    firing = [each for each in chosen if not inventory.is_disabled(each)]
    found = forecast(firing, inventory.durations, inventory.now, end, ZoneInfo(inventory.tz), inventory.flows)
    if show.json:
        show.value(forecast_view(inventory, found, chosen))
    else:
        show.records(
            forecast_lines(found, inventory),
            COLUMNS,
            render=lambda: calendar(inventory, found, chosen),
        )
        if not show.terminal:
            for pace in found.frequent:
                show.note(f"{pace.schedule} fires {pace.per_day:,} times a day; its fires are not listed")
    if found.until < found.end:
        show.note(f"more than {len(found.fires):,} fires: told until {iso(found.until)}; fewer --days show all")
