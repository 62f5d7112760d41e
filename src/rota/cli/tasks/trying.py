"""`rota tasks try`: what a submit would answer now, guard by guard."""

from typing import Annotated

from cyclopts import Parameter

from rota.cli.options.arguments import Document
from rota.cli.options.parameters import Shared, TaskName
from rota.cli.options.target import Target
from rota.cli.options.times import seconds_of
from rota.cli.render.show import Column, Show
from rota.cli.runs.submit import call_named, instant_of
from rota.client.client import Client
from rota.domain.guards import Unique
from rota.domain.intake import Options
from rota.domain.trial import Trial
from rota.task import Call
from rota.views.values import iso, record

COLUMNS = [Column("guard"), Column("says"), Column("rule", elastic=True)]


def try_(
    task: TaskName,
    /,
    *values: str,
    args: Document = None,
    delay: Annotated[str | None, Parameter(help="Due so long from now: seconds, or 5m, 2h, 1d.")] = None,
    at: Annotated[str | None, Parameter(help="Due at an instant, as 2026-11-15T09:00:00Z.")] = None,
    key: Annotated[str | None, Parameter(help="What the run is about, instead of the task's own key.")] = None,
    unique: Annotated[Unique | None, Parameter(help="Make none while an equal one is queued, active or done.")] = None,
    queue: Annotated[str | None, Parameter(help="The queue of the run, instead of the task's.")] = None,
    id: Annotated[str | None, Parameter(help="The id that the run would have.")] = None,
    target: Shared[Target],
    show: Shared[Show],
) -> int:
    """Say what a submit would answer now, guard by guard. The store judges, and nothing changes.

    The exit code is 1 if the submit would be refused.

    Parameters
    ----------
    task
        The task's name.
    values
        Its arguments as name=value, as for a submit.
    """
    app = target.app()
    options = Options(delay=seconds_of(delay, "--delay"), at=instant_of(at), key=key, unique=unique, queue=queue, id=id)
    made = call_named(app, task, values, args, options, unknown_ok=False)
    trial = target.run(_tried(app.client(), made))
    if show.json:
        show.value(record(trial))
    else:
        show.line(_headline(trial))
        show.records([record(guard) for guard in trial.guards], COLUMNS, "No guard would be asked.")
    return 0 if trial else 1


def _headline(trial: Trial) -> str:
    if trial and trial.run is None:
        return f"accepted: a new run would be due at {iso(trial.due_at)}"
    about = "" if trial.run is None else f", by run {trial.run}"
    return f"{'accepted' if trial else 'refused'}: {trial.reason}{about}"


async def _tried(client: Client, call: Call) -> Trial:
    try:
        return await client.try_put(call.to_run_at(0.0 if call.once is None else await client.now()))
    finally:
        await client.close()
