"""Finding: the verbs of an app that read the runs and tasks of all processes."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from rota.app.core import Core
from rota.app.runs import FoundRun, Runs
from rota.client.handle import any_json
from rota.client.operations import Operated, undo
from rota.domain.intake import instant
from rota.domain.spec import TaskSpec
from rota.domain.text import did_you_mean
from rota.errors import InvalidOptions, UnknownTask
from rota.store import Instant, RowQuery, RunQuery
from rota.task import definition_of


class Finding:
    """A part of `Rota`."""

    _core: Core

    async def run(self, id: str) -> FoundRun:
        """Return the run with this id as it is now, with its handle; raise RunNotFound if the store does not know it.

        Its result has the type that the task returns, if this app defines the task.
        """
        client = self._core.client
        run = await client.run(id)
        return FoundRun(client, run, self._decoder(run.task))

    def runs(
        self,
        *,
        ids: Sequence[str] | None = None,
        state: str | Sequence[str] = (),
        task: str | Sequence[str] | None = None,
        key: str | None = None,
        queue: str | Sequence[str] | None = None,
        group: str | None = None,
        schedule: str | None = None,
        flow: str | None = None,
        period: str | None = None,
        origin: str | None = None,
        worker: str | None = None,
        error: str | None = None,
        reason: str | None = None,
        retry_of: str | None = None,
        since: datetime | float | None = None,
        until: datetime | float | None = None,
        by: Instant = "created",
        q: str | None = None,
        order: Instant = "created",
    ) -> Runs:
        """Find runs of all processes: `async for run in app.runs(task="resize", state="failed", since=yesterday)`.

        A run meets all conditions; RunQuery describes each. `since` and `until` are instants of what `by` names. The
        answer also counts the runs and acts on all of them: `await app.runs(state="failed").retry()`.
        """
        query = RunQuery(
            ids=ids,
            state=state,
            task=task,
            key=key,
            queue=queue,
            group=group,
            schedule=schedule,
            flow=flow,
            period=period,
            origin=origin,
            worker=worker,
            error=error,
            reason=reason,
            retry_of=retry_of,
            since=unix_time(since, "since"),
            until=unix_time(until, "until"),
            by=by,
            q=q,
            order=order,
        )
        return Runs(self._core.client, query, self._decoder)

    def _decoder(self, task: str) -> Callable[[bytes], Any]:
        """Return how the results of a task are read: as plain JSON values, unless the code of the task is here."""
        known = self._core.registry.find(task)
        return any_json if known is None else definition_of(known).signature.decode_result

    async def undo(self, id: str, note: str | None = None) -> Operated:
        """Undo an operation (`id` is that of its run) or a single act (`id` is that of its audit entry) of the last 24
        hours.

        A pause and a resume are taken back; rescheduled runs get their old due time if they still wait for the new
        one; runs that were cancelled while they waited are put again, each as a new run. Raises NotUndoable with the
        reason for everything else. Returns how many were changed back, and how many were not, because they have
        changed since.
        """
        return await undo(self._core.client, id, note)

    async def published(self, task: str) -> TaskSpec:
        """Return what a worker published of a task, perhaps one whose code is in another process: its parameters,
        limits, retries and whether it is paused. Raises UnknownTask if no worker has published the task."""
        found = (await self._core.client.rows(TaskSpec, RowQuery(names=[task]))).items
        if not found or not found[0].executor:
            known = [spec.name for spec in (await self._core.client.rows(TaskSpec)).items if spec.executor]
            hint = did_you_mean(task, known, "; start one that has its code, or run `rota sync` with it")
            raise UnknownTask(f"no worker has published a task {task}{hint}")
        return found[0]


def unix_time(moment: datetime | float | None, name: str) -> float | None:
    """Return an instant as Unix seconds. A number is Unix seconds already."""
    if moment is None or (isinstance(moment, float | int) and not isinstance(moment, bool)):
        return moment
    try:
        return instant(moment, name)
    except (TypeError, ValueError) as error:
        raise InvalidOptions(str(error)) from None
