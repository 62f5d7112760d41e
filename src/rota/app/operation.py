"""rota.operation: the built-in task that carries out `app.runs(...).cancel()` and the other actions on many runs."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from rota.client.client import Client
from rota.client.operations import OPERATION, Action, Operated, Operation, Reached, perform, progress_words
from rota.domain.policy import Retry
from rota.engine.context import Context
from rota.engine.handler import Handler
from rota.task import Definition, Submitter, TaskOptions

AGAIN = Retry(20, backoff="exponential", delay=2, max_delay=300)
"""The store may be away for a while; the operation goes on from its last page."""


def operation_handler(client: Callable[[], Client], submitter: Submitter) -> Handler:
    """Return the handler of `rota.operation`, for the engine of an app."""

    async def operation(
        ctx: Context,
        action: Action | Literal["undo"],
        filter: dict[str, Any],
        due_at: float | None = None,
        note: str | None = None,
        by: str | None = None,
        of: str | None = None,
    ) -> Operated:
        """Act on all runs that a filter finds, page by page."""
        came = ctx.run.created_at
        asked = Operation(action=action, filter=filter, due_at=due_at, note=note, by=by, asked_at=came, of=of)
        reached = Reached() if ctx.saved is None else msgspec.convert(ctx.saved, Reached)
        words = await progress_words(client(), asked.query)

        def record(reached: Reached) -> None:
            ctx.checkpoint(msgspec.to_builtins(reached))
            ctx.progress(*words(reached))

        return await perform(client(), asked, ctx.run.id, reached, record)

    options = TaskOptions(name=OPERATION, retry=AGAIN)
    return Definition(operation, options, submitter).handler()
