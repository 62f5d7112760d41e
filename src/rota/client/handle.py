"""RunHandle: the result of a submit, and how to follow a run from anywhere."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

from rota.client.client import Client
from rota.client.edits import Changes, edit_run
from rota.domain.answers import Why
from rota.domain.decision import Decision, Reason
from rota.domain.intake import Span, retry_of
from rota.domain.run import Run, State
from rota.errors import IdConflict, InvalidOptions, QueueFull, Refused, RunCancelled, RunFailed, UsageError
from rota.store import Command

R_co = TypeVar("R_co", covariant=True)


def any_json(encoded: bytes) -> Any:
    """Decode the result of a task that this process does not know, as plain JSON values."""
    return msgspec.json.decode(encoded)


class RunHandle(Generic[R_co]):
    """One run, by its id. `created` is False if the submit joined an existing run."""

    __slots__ = ("_access", "_decode", "decision", "id")

    def __init__(
        self,
        client: Client,
        id: str,
        decode: Callable[[bytes], Any] = any_json,
        decision: Decision | None = None,
    ) -> None:
        self.id = id
        self.decision = Decision(id, Reason.ACCEPTED) if decision is None else decision
        self._access = client
        self._decode = decode

    @property
    def created(self) -> bool:
        return self.decision.reason is Reason.ACCEPTED

    def __bool__(self) -> bool:
        """False for the handle of a call that `submit_many` could not submit."""
        return bool(self.decision)

    @property
    def _client(self) -> Client:
        accept(self.decision)
        return self._access

    def __repr__(self) -> str:
        return f"<RunHandle {self.id}>"

    async def refresh(self) -> Run:
        """Return the run as it is now; raise RunNotFound if the store has forgotten it."""
        return await self._client.run(self.id)

    async def result(self, timeout: float | None = None) -> R_co:
        """Wait for the end of the run and return the handler's result.

        Raises RunFailed, RunCancelled, or TimeoutError after `timeout` seconds; then the run goes on. The TimeoutError
        says in which state the run is. It comes up to 2 seconds late if the store does not answer.
        """
        run = await self._client.ended(self.id, timeout)
        if run.state is State.FAILED:
            raise RunFailed(run)
        if run.state is State.CANCELLED:
            raise RunCancelled(run)
        return self._decode(run.result if run.result is not None else b"null")  # type: ignore[no-any-return]

    async def cancel(self, note: str | None = None) -> bool:
        """Cancel the run: a queued run ends at once, a running one is stopped by its worker.

        Returns False if the run had ended before. If the handler finishes first, its result counts.
        """
        changed = await self._control(Command.CANCEL, note)
        await self._client.ended_here([self.id] if changed else [])
        return changed

    async def pause(self, note: str | None = None) -> bool:
        """Pause the run: a queued run waits at once; the handler of a running one is stopped, and continues from its
        last checkpoint after a resume. Returns False if the run had ended or was paused already."""
        return await self._control(Command.PAUSE, note)

    async def resume(self, note: str | None = None) -> bool:
        """Queue a paused run again. Returns False if the run was not paused."""
        return await self._control(Command.RESUME, note)

    async def reschedule(
        self, *, at: datetime | None = None, delay: Span | None = None, note: str | None = None
    ) -> bool:
        """Give the run another due time: `at` an instant, or `delay` from now. Its expiry moves along.

        Returns False if the run is not queued: it has started, was paused or has ended.
        """
        return await edit_run(self._client, self.id, Changes(at=at, delay=delay), note)

    async def update(
        self,
        *,
        priority: int | None = None,
        expires: Span | datetime | None = None,
        args: Mapping[str, object] | None = None,
        note: str | None = None,
    ) -> bool:
        """Change the run while it is queued. `expires` is an instant, or a time after the run is due.

        `args` is a JSON merge patch: it has the arguments to change, and None takes an argument away. A run with other
        arguments starts afresh, and keeps its key. Returns False if the run is not queued.
        """
        return await edit_run(self._client, self.id, Changes(priority=priority, expires=expires, args=args), note)

    async def delete(self, note: str | None = None) -> bool:
        """Delete the run from the store, a minute after its end or later. Its mark stays: `unique="done"` and flows
        still know that the work was done. Returns False if the run has not ended, or ended within the last minute."""
        return await self._control(Command.DELETE, note)

    async def why(self) -> Why:
        """Return what keeps the run from running, or what became of it; print the answer to read it."""
        explain = self._client.explain
        if explain is None:
            raise UsageError("a client that no app has made cannot explain runs; use app.why(id) or `rota why`")
        return await explain(self._client, self.id)

    async def _control(self, command: Command, note: str | None) -> bool:
        return bool((await self._client.control(command, [self.id], note)).items[0])

    async def retry(self) -> "RunHandle[R_co]":
        """Submit a new run that does the same again. A second retry of the same run returns the same new run."""
        run = await self.refresh()
        if not run.state.final:
            raise InvalidOptions(f"{run.task} {run.id} is {run.state}; only an ended run can be retried")
        new = retry_of(run)
        accept((await self._client.put([new])).items[0])
        return RunHandle(self._client, new.id, self._decode)

    # -- the same from synchronous code; raises where an event loop runs ---------------------------------------------

    def refresh_sync(self) -> Run:
        """`refresh` from synchronous code, as the methods below. Raises NotRunning where an event loop runs."""
        return self._client.portal.call(self.refresh)

    def result_sync(self, timeout: float | None = None) -> R_co:
        return self._client.portal.call(lambda: self.result(timeout))

    def cancel_sync(self, note: str | None = None) -> bool:
        return self._client.portal.call(lambda: self.cancel(note))

    def pause_sync(self, note: str | None = None) -> bool:
        return self._client.portal.call(lambda: self.pause(note))

    def resume_sync(self, note: str | None = None) -> bool:
        return self._client.portal.call(lambda: self.resume(note))

    def reschedule_sync(
        self, *, at: datetime | None = None, delay: Span | None = None, note: str | None = None
    ) -> bool:
        return self._client.portal.call(lambda: self.reschedule(at=at, delay=delay, note=note))

    def update_sync(
        self,
        *,
        priority: int | None = None,
        expires: Span | datetime | None = None,
        args: Mapping[str, object] | None = None,
        note: str | None = None,
    ) -> bool:
        return self._client.portal.call(lambda: self.update(priority=priority, expires=expires, args=args, note=note))

    def why_sync(self) -> Why:
        return self._client.portal.call(self.why)

    def delete_sync(self, note: str | None = None) -> bool:
        return self._client.portal.call(lambda: self.delete(note))

    def retry_sync(self) -> "RunHandle[R_co]":
        return self._client.portal.call(self.retry)


def accept(decision: Decision) -> Decision:
    """Return `decision` if the run was accepted; else raise QueueFull or Refused."""
    if decision:
        return decision
    if decision.reason is Reason.QUEUE_FULL:
        raise QueueFull(decision, "the queue is full; wait for workers to catch up, then submit again")
    if decision.reason is Reason.ID_CONFLICT:
        raise IdConflict(
            decision, f"a run {decision.run} exists with another task or other arguments; choose an id of its own"
        )
    raise Refused(decision)
