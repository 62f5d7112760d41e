"""`rota tasks`: list tasks with their depths; pause and resume them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated

from cyclopts import App, Parameter
from rich.text import Text

from rota.app.core import core_of
from rota.cli.options.names import check_known_somewhere
from rota.cli.options.parameters import LOOK, Flag, More, Shared, TaskName
from rota.cli.options.target import Target
from rota.cli.options.until import Until, instant_of
from rota.cli.options.user import who
from rota.cli.render.show import Column, Record, Show
from rota.cli.render.text import one_line, plural, span
from rota.client.pauses import pause_task
from rota.domain.activity import Activity
from rota.domain.policy import Limit, Rate
from rota.domain.run import DEFAULT_QUEUE
from rota.domain.spec import TaskSpec
from rota.domain.triggers.durations import spell_duration
from rota.flow import Flow
from rota.store import Command
from rota.views.tasks import TaskRow, TaskView, task_rows, task_view
from rota.views.values import record

Note = Annotated[str | None, Parameter(help="Why.")]
OneKey = Annotated[str | None, Parameter(help="Only the runs of this key.")]

tasks = App(name="tasks", help="List tasks; pause and resume them.", group=LOOK)

COLUMNS = [
    Column("task", lambda r: _name(r)),
    Column("parameters", lambda r: _takes(r), elastic=True),
    Column("executor", piped=True),
    Column("queue", lambda r: "" if r["queue"] == DEFAULT_QUEUE else str(r["queue"]), sparse=True, rank=7),
    Column(
        "retries", lambda r: "any" if r["retries"] is None else str(r["retries"] or ""), right=True, sparse=True, rank=2
    ),
    Column("timeout", lambda r: _timeout(r.get("timeout")), right=True, sparse=True, rank=3),
    Column("enabled", piped=True),
    Column("held", lambda r: _held(r), title="held back", flat=lambda r: _held(r).plain, sparse=True),
    Column("limit", lambda r: str(r["limit_text"]), lambda r: r["limit_text"], sparse=True, rank=4),
    Column("rate", lambda r: str(r["rate_text"]), lambda r: r["rate_text"], sparse=True, rank=5),
    Column("activity", lambda r: str(r["activity_text"]), lambda r: r["activity_text"], sparse=True, rank=6),
    Column("queued", right=True),
    Column("running", right=True),
    Column("paused", piped=True),
    Column("paused_runs", piped=True),
    Column("defined", piped=True),
    Column("kind", piped=True),
    Column("description", elastic=True, sparse=True, rank=1),
]


@tasks.default
def ls(*, target: Shared[Target], show: Shared[Show]) -> None:
    """List the app's tasks, and tasks that only the store knows. Without an app, --url names the store."""
    app = None if target.reference is None and target.url is not None else target.app()
    rows = target.run(_rows(target))
    own: list[str] = list(app.tasks) if app else []
    known = core_of(app).registry.names() if app else {}
    flows: Mapping[str, Flow] = app.flows if app else {}
    strangers = [name for name in rows if name not in known]
    views = [task_view(name, known.get(name), rows.get(name), flows.get(name)) for name in (*own, *strangers)]
    records = [record(view) if show.json else record(view) | _texts(view) for view in views]
    nothing = "The app has no tasks yet; define one with @app.task." if app else "No worker has published a task yet."
    show.records(records, COLUMNS, nothing)
    if app and strangers and show.terminal and not show.json:
        show.line("\n? the store knows it, but the app does not define it")


@tasks.command
def pause(
    name: TaskName,
    /,
    *names: More,
    key: OneKey = None,
    until: Until = None,
    note: Note = None,
    unknown_ok: Annotated[bool, Flag, Parameter(help="Take tasks that neither app nor store know.")] = False,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Start no more runs of these tasks anywhere, until they are resumed or --until; submits are still taken."""
    _control(Command.PAUSE, (name, *names), key, note, unknown_ok, target, show, until)


@tasks.command
def resume(
    name: TaskName,
    /,
    *names: More,
    key: OneKey = None,
    note: Note = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Let paused tasks go on."""
    _control(Command.RESUME, (name, *names), key, note, False, target, show)


def _control(
    command: Command,
    names: tuple[str, ...],
    key: str | None,
    note: str | None,
    unknown_ok: bool,
    target: Target,
    show: Show,
    until: str | None = None,
) -> None:
    """A command that changes nothing is no error."""

    async def control() -> list[dict[str, object]]:
        async with target.client() as client:
            if not unknown_ok:
                await check_known_somewhere(names, client, target)
            end = await instant_of(client, until, target)
            changed = [await pause_task(client, command, [name], key, note, who(), end) for name in names]
            specs = (await client.rows(TaskSpec)).items
            paused = {each.name for each in specs if (each.paused if key is None else key in each.paused_keys)}
            return [
                {"task": name, "changed": yes, "paused": name in paused}
                for name, yes in zip(names, changed, strict=True)
            ]

    show.records(target.run(control(), code=True), [Column("task", whole=True), Column("changed"), Column("paused")])


async def _rows(target: Target) -> dict[str, TaskRow]:
    async with target.client() as client:
        return await task_rows(client)


def _texts(view: TaskView) -> dict[str, object]:
    """Return what tables and TSV show instead of nested objects."""
    return {
        "limit_text": _limit(view.limit, view.limits),
        "rate_text": _rate(view.rate),
        "activity_text": _activity(view.activity),
    }


def _limit(limit: Limit | None, named: Sequence[Limit]) -> str:
    parts = [str(limit.total)] if limit and limit.total is not None else []
    parts += [f"{limit.per_key} per key"] if limit and limit.per_key is not None else []
    return ", ".join([*parts, *(f"{each.name} {each.total}" for each in named)])


def _rate(rate: Rate | None) -> str:
    if rate is None:
        return ""
    per = "s" if rate.per == 1 else "min" if rate.per == 60 else "h" if rate.per == 3600 else span(rate.per)
    return f"{rate.n}/{per}" + (f", burst {rate.burst}" if rate.burst > 1 else "") + (" per key" * rate.per_key)


def _activity(activity: Activity | None) -> str:
    """Return the options of `activity` as in code, without defaults."""
    if activity is None:
        return ""
    spans = {
        name: getattr(activity, name) for name in activity.__struct_fields__ if name not in ("key", "mode", "breaker")
    }
    parts = [f"{name} {spell_duration(timedelta(seconds=value))}" for name, value in spans.items() if value is not None]
    breaker = [] if activity.breaker is None else [f"breaker {activity.breaker.failures}"]
    return ", ".join([*parts, *([activity.mode] if activity.mode != "coalesce" else []), *breaker])


def _name(record: Record) -> Text:
    name = one_line(str(record["task"]))
    return Text(name, style="bold") if record["defined"] else Text(f"{name} ?", style="yellow")


def _takes(record: Record) -> str | Text:
    """Return the parameters; for a flow, the number of its steps, because a flow takes no arguments."""
    if record["kind"] == "flow":
        return Text(f"flow of {plural(int(str(record['steps'])), 'step')}", style="cyan")
    return str(record["parameters"] or "")


def _held(record: Record) -> Text:
    """Return why no run of the task starts, or why submits are refused."""
    here = record["enabled"] and record["enabled_here"] is False  # the workers have not read the settings yet
    paused = f"paused until {record['paused_until']}" if record["paused_until"] else "paused"
    states = (("disabled", not record["enabled"]), ("disabled here", here), (paused, record["paused"]))
    words = [word for word, yes in states if yes]
    if isinstance(given := record["overrides"], dict):
        words.append(f"overridden by {given['by']}" if given["by"] else "overridden")
    return Text(", ".join(words), style="magenta")


def _timeout(seconds: object) -> str:
    return span(seconds) if isinstance(seconds, float | int) else ""
