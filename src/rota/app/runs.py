"""Runs: app.runs, the runs that a filter finds, to read one after the other or to act on all at once."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from rota.client.client import Client
from rota.client.edits import Changes
from rota.client.handle import RunHandle
from rota.client.operations import OPERATION, Action, Operated, Operation, checked, due_at, filter_of
from rota.domain.ids import derived
from rota.domain.intake import PRIORITY, Options, Span
from rota.domain.run import Run, State
from rota.domain.spec import TaskSpec
from rota.store import Count, RunQuery
from rota.store.paging import COUNT_LIMIT, count_runs
from rota.task.remote import call_by_spec

PAGE = 200
"""Runs that an iteration reads at once."""


class FoundRun(RunHandle[Any]):
    """A run as it was when it was read, and its handle. `seen` has all fields; `await run.refresh()` reads again."""

    __slots__ = ("seen",)

    def __init__(self, client: Client, seen: Run, decode: Callable[[bytes], Any]) -> None:
        super().__init__(client, seen.id, decode)
        self.seen = seen

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.seen.task} {self.seen.state}>"

    @property
    def task(self) -> str:
        return self.seen.task

    @property
    def key(self) -> str | None:
        return self.seen.key

    @property
    def state(self) -> State:
        return self.seen.state

    @property
    def reason(self) -> str | None:
        return self.seen.reason

    @property
    def error(self) -> str | None:
        """The type and the message of the last error; None without one."""
        return None if self.seen.error is None else str(self.seen.error)

    @property
    def args(self) -> dict[str, Any]:
        """The arguments as plain JSON values."""
        return dict(msgspec.json.decode(self.seen.args))


class Runs:
    """The runs that a filter finds. `async for run in app.runs(task="resize", state="failed"):` reads them, newest
    first.

    `retry`, `cancel`, `pause`, `resume`, `reschedule` and `delete` act on all of them: each submits one run of the
    built-in task `rota.operation`, which any worker of the app takes. It goes on after the death of its worker, shows
    its progress, and can be cancelled. Its result says how many runs it changed. Runs that come later are left alone.
    """

    def __init__(self, client: Client, query: RunQuery, decoder: Callable[[str], Callable[[bytes], Any]]) -> None:
        """`decoder` returns how the results of a task are read."""
        self._client = client
        self._query = query
        self._decoder = decoder

    async def __aiter__(self) -> AsyncIterator[FoundRun]:
        async with aclosing(self._client.all_runs(replace(self._query, limit=PAGE))) as found:
            async for run in found:
                yield FoundRun(self._client, run, self._decoder(run.task))

    async def count(self, at_most: int = COUNT_LIMIT) -> Count:
        """Return how many runs there are. The count stops at `at_most`, or after a second: then `more` is True."""
        return await count_runs(self._client, self._query, at_most)

    async def retry(self, note: str | None = None) -> RunHandle[Operated]:
        """Retry the runs that have ended, each as a new run. A run that was retried before is not retried again."""
        return await self._operate("retry", note)

    async def cancel(self, note: str | None = None) -> RunHandle[Operated]:
        """Cancel the runs: queued ones end at once, running ones are asked to stop."""
        return await self._operate("cancel", note)

    async def pause(self, note: str | None = None) -> RunHandle[Operated]:
        """Pause the runs that are queued or running."""
        return await self._operate("pause", note)

    async def resume(self, note: str | None = None) -> RunHandle[Operated]:
        """Queue the paused runs again."""
        return await self._operate("resume", note)

    async def reschedule(
        self, *, at: datetime | None = None, delay: Span | None = None, note: str | None = None
    ) -> RunHandle[Operated]:
        """Give the queued runs another due time: `at` an instant, or `delay` from now."""
        return await self._operate("reschedule", note, await due_at(self._client, Changes(at=at, delay=delay)))

    async def delete(self, note: str | None = None) -> RunHandle[Operated]:
        """Delete the runs that ended at least a minute ago. Their marks stay."""
        return await self._operate("delete", note)

    async def _operate(self, action: Action, note: str | None, due_at: float | None = None) -> RunHandle[Operated]:
        conditions = filter_of(checked(self._query))
        operation = Operation(action=action, filter=conditions, due_at=due_at, note=note)
        return await submit_operation(self._client, operation)


async def submit_operation(client: Client, operation: Operation) -> RunHandle[Operated]:
    """Submit a run of the built-in task. Every worker of every app has its code."""
    given = {name: value for name, value in msgspec.to_builtins(operation).items() if value is not None}
    call = call_by_spec(TaskSpec(OPERATION), (), given, Options(priority=PRIORITY))
    run = call.to_run()
    if operation.of is not None:  # a second undo of the same is the same run
        run = replace(run, id=derived("undo of", operation.of))
    decision = await client.submit(run)
    return RunHandle(client, decision.run, msgspec.json.Decoder(Operated).decode, decision)
