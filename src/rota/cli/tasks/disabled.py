"""Tasks that the code or the settings here disable: where that is set, and what to do."""

from rota.app.app import Rota
from rota.app.core import core_of
from rota.cli.options.target import Target
from rota.domain.spec import TaskSpec
from rota.settings.model import fold
from rota.settings.reference import effective
from rota.store import Reads, RowQuery
from rota.why import Fact, Why


def refused_words(app: Rota | None, task: str) -> str:
    """Return why a submit of a disabled task made no run, and how to enable the task."""
    if app is not None and core_of(app).registry.is_disabled(task):
        return f"{task} is disabled ({disabled_by(app, task)}), so that no run was made; set enabled to true there"
    return (
        f"{task} is disabled by the code or the settings of its workers, so that no run was made; "
        "set enabled to true there and restart them"
    )


def disabled_by(app: Rota, task: str) -> str:
    """Return where the task is disabled: `rota.toml, line 4`, or `its code`."""
    name = core_of(app).registry.names()[task].name if task in core_of(app).registry.names() else task
    wanted = {f"tasks.{each}.enabled" for each in (name, fold(name))}
    found = [row.source for row in effective(app.settings) if row.name in wanted and row.value is False]
    return found[0] if found else "its code"


async def compared(answer: Why, task: str, store: Reads, target: Target) -> Why:
    """Return `answer`. If only the settings of this process disable the task, that is the first fact."""
    if target.reference is None or target.url is not None:  # a store that --url names is read without the app
        return answer
    app = target.app()
    published = (await store.rows(TaskSpec, RowQuery(names=[task]))).items
    if not core_of(app).registry.is_disabled(task) or any(not spec.enabled for spec in published):
        return answer
    text = (
        f"{task} is disabled here ({disabled_by(app, task)}): submits from here are refused; "
        "workers that run already go on with it until they are restarted"
    )
    return Why(answer.subject, answer.kind, text, (Fact("task", text, True), *answer.facts))
