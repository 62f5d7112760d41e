"""What lint finds in the code of tasks: a returned status that nothing reads."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, is_typeddict

from rota.app.app import Rota
from rota.domain.arguments import type_hints
from rota.domain.lint import Finding
from rota.domain.lint.returns import returns_a_status
from rota.domain.once import Once
from rota.domain.period import Period
from rota.task import definition_of


def lint_tasks(app: Rota) -> Iterator[tuple[str, Finding]]:
    """Yield the names of tasks whose success is remembered although they may return a failure, with the finding."""
    for name, remembered in sorted(_remembered(app)):
        if returns_status(app.tasks[name].fn):
            yield name, unread_status(name, remembered)


def _remembered(app: Rota) -> Iterator[tuple[str, str]]:
    """Tasks that are done once, by themselves or as a step, and whose results nothing judges."""
    for name, task in app.tasks.items():
        own = definition_of(task)
        if own.once is not None and own.fail_on is None:
            yield name, _how_often(own.once)
    for flow in app.flows.values():
        for step in flow.steps.values():
            if step.code.fail_on is None and definition_of(step.call.task).fail_on is None:
                yield step.call.task.name, f"as step {step.name} of flow {flow.name}"


def _how_often(once: Once) -> str:
    return f"once per {once.unit}" if isinstance(once, Period) else "once per period"


def unread_status(task: str, of: str) -> Finding:
    """Return the finding about a task done once `of` (a period, a flow) whose returned status nothing reads."""
    return Finding(
        "unread-status",
        "warning",
        f"{task} may return a dict whose status says that it failed, and nothing reads it: it would count as done "
        f"({of}), and not be done again.",
        "Give fail_on=status_dict to the task, its flow or the app; fail_on=lambda result: False if the status is "
        "no verdict.",
    )


def returns_status(fn: Callable[..., Any]) -> bool:
    """Return whether the function is annotated with a TypedDict that has a status, or its source returns such a
    dict."""
    kind = type_hints(fn).get("return")
    if is_typeddict(kind) and "status" in kind.__annotations__:
        return True
    try:
        return returns_a_status(inspect.getsource(fn))
    except (OSError, TypeError):  # no source: typed at a prompt, or built at run time
        return False
