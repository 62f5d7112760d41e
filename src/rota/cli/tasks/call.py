"""`rota call`: call a task's function in this process, without a store or a worker."""

import asyncio
import inspect
import os
import sys
import time
import traceback
from typing import Any

from rota.app.app import Rota
from rota.app.core import core_of
from rota.cli.options.arguments import Document, gather_for
from rota.cli.options.names import check_known
from rota.cli.options.parameters import Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Show
from rota.domain.arguments import encode_result
from rota.domain.ids import uuid7
from rota.domain.results import judged
from rota.domain.run import Progress, Run, State
from rota.engine.context import Context, context_here
from rota.errors import RotaError
from rota.task import Call, Definition, definition_of
from rota.views.values import from_json


def call(
    task: str,
    /,
    *values: str,
    args: Document = None,
    target: Shared[Target],
    show: Shared[Show],
) -> int:
    """Call a task's function in this process and print its result as JSON; nothing is stored.

    The arguments are encoded and checked as for a submit. Retries, timeouts and limits do not apply. If the function
    raises, the traceback is shown and the exit code is 1; so it is if the task's fail_on takes the result for a
    failure.

    Parameters
    ----------
    task
        The task's name.
    values
        Its arguments as name=value; a value that reads as JSON is JSON, except where the task takes text.
    """
    app = target.app()
    check_known([task], core_of(app).registry.names())
    chosen = core_of(app).registry.names()[task]
    given = gather_for(chosen, list(values), args)
    own = definition_of(chosen)
    made = own.call(tuple(given.positional), given.named)
    try:
        result = _called(app, own, made, show)
    except (Exception, asyncio.CancelledError) as error:
        _show_error(error)
        return 1
    try:
        show.value(from_json(encode_result(result)))
    except (TypeError, ValueError) as error:
        raise RotaError(f"{chosen.name} returned what cannot be stored as JSON: {error}") from None
    report = judged(result, own.fail_on)
    if report.status != "success":
        show.note(f"{report.status}: {report.words}")
    return 0 if report.ok else 1


def _called(app: Rota, task: Definition, made: Call, show: Show) -> object:
    positional, keyword = task.signature.decode(made.args)
    context = _Local(_run_of(made), show)
    before = context_here.set(context)
    if task.takes_context:
        positional.insert(0, context)
    try:
        if inspect.iscoroutinefunction(task.fn):
            return asyncio.run(_awaited(app, task, positional, keyword))
        return task.fn(*positional, **keyword)
    finally:
        context_here.reset(before)
        asyncio.run(app.stop())  # the portal, if the function submitted something through it


async def _awaited(app: Rota, task: Definition, positional: list[Any], keyword: dict[str, Any]) -> object:
    try:
        return await task.fn(*positional, **keyword)
    finally:
        await app.client().close()


class _Local(Context):
    """A context whose progress goes to the terminal, because there is no store."""

    def __init__(self, run: Run, show: Show) -> None:
        super().__init__(run, changed=self._say)
        self._show = show
        self._shown: Progress | None = None

    def warn(self, message: str) -> None:
        super().warn(message)
        self._show.note(f"warning: {message}")

    def _say(self) -> None:
        note = self.note()
        progress = note.progress if note else None
        if progress is not None and progress != self._shown:
            self._shown = progress
            self._show.note(f"{progress.share:4.0%}  {progress.message}".rstrip())


def _run_of(made: Call) -> Run:
    """Return the run that a submit of this call would make."""
    now = time.time()
    return Run(
        id=uuid7(int(now * 1000), os.urandom(10)),
        task=made.spec.name,
        args=made.args,
        key=made.options.key,
        policy=made.spec.policy,
        priority=made.spec.priority,
        state=State.RUNNING,
        fence=1,
        worker="rota call",
        created_at=now,
        due_at=now,
        claimed_at=now,
    )


def _show_error(error: BaseException) -> None:
    """Print the traceback, beginning with the user's own code."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None and _ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    sys.stderr.write("".join(traceback.format_exception(error.with_traceback(trace))))


def _ours(file: str) -> bool:
    return file == __file__ or file.startswith(os.path.dirname(asyncio.__file__))
