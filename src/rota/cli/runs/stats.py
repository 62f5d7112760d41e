"""`rota stats`: what ran, how often it failed, how long it took: of the last hour, or of the last year."""

from typing import Annotated

from cyclopts import Parameter

from rota.cli.options.parameters import Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Column, Show
from rota.cli.runs.filters import instant_of
from rota.errors import InvalidOptions
from rota.store import DAY
from rota.views.stats import KEPT, Every, GroupBy, StatView, read_stats, stat_views
from rota.views.values import record

COLUMNS = [
    Column("minute", title="since"),
    Column("task", elastic=True),
    Column("origin", sparse=True),
    Column("succeeded", right=True),
    Column("failed", right=True),
    Column("retried", right=True, rank=1),
    Column("cancelled", right=True, rank=2),
    Column("lost", right=True, rank=2),
    Column("wait_p95", title="waited p95", right=True),
    Column("run_p95", title="took p95", right=True),
    Column("run_seconds", title="took, in all", right=True, rank=3),
]
NOTHING = "Nothing: no worker has reported a run in that time."


def stats(
    *,
    every: Annotated[Every, Parameter(help="The length of a slot: minute, hour, day, or all for one row.")] = "all",
    since: Annotated[str, Parameter(help="Since when: an ISO 8601 time, or 2h for two hours ago.")] = "1h",
    task: Annotated[str | None, Parameter(help="Only this task.")] = None,
    origin: Annotated[str | None, Parameter(help="Only runs of this origin: submit, schedule, retry …")] = None,
    group_by: Annotated[list[GroupBy] | None, Parameter(help="A row for each task, each origin, or both.")] = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Show what workers counted: how runs ended, how long they waited and took.

    The store keeps minutes for 2 days, hours for 60 and days for 400, long after the runs are forgotten.
    """

    async def read() -> list[StatView]:
        async with target.client() as client:
            start = await instant_of(client, since, "--since", target) or 0.0
            minutes = max(1, int((await client.now() - start) // 60) + 1)
            if minutes > KEPT[every]:
                longer = next((name for name, kept in KEPT.items() if minutes <= kept), None)
                advice = f"; ask for --every {longer}" if longer else ""
                days = KEPT[every] // DAY
                raise InvalidOptions(f"--since {since}: slots of {every} are kept for {days} days{advice}")
            found = (await read_stats(client, minutes, every)).items
            wanted = [one for one in found if task in (None, one.tally.task) and origin in (None, one.tally.origin)]
            return stat_views(wanted, group_by or ["task"], every == "all")

    rows = [record(view) for view in target.run(read())]
    show.records(rows, COLUMNS, NOTHING)
