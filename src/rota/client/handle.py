"""RunHandle: what a submit gives back, and how to follow a run from anywhere."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from rota.client.client import Client
from rota.domain.decision import Decision, Reason
from rota.domain.intake import retry_of
from rota.domain.run import Run, State
from rota.errors import InvalidOptions, QueueFull, Refused, RunCancelled, RunFailed
from rota.store import Command

R_co = TypeVar("R_co", covariant=True)


def any_json(encoded: bytes) -> Any:
    """A result whose task is not known here, as plain JSON values."""
    return msgspec.json.decode(encoded)


class RunHandle(Generic[R_co]):
    """One run, by its id. `created` is False if the submit joined a run that was there already."""

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
        """False for the handle of a call that `submit_many` could not place."""
        return bool(self.decision)

    @property
    def _client(self) -> Client:
        accept(self.decision)
        return self._access

    def __repr__(self) -> str:
        return f"<RunHandle {self.id}>"

    async def refresh(self) -> Run:
        """The run as it stands now; RunNotFound if the store has forgotten it."""
        return await self._client.run(self.id)

    async def result(self, timeout: float | None = None) -> R_co:
        """Waits for the end and gives the handler's return value.

        Raises RunFailed, RunCancelled, or TimeoutError after `timeout` seconds; the run goes on then. The
        TimeoutError says where the run stands: a store that does not answer makes it up to 2 seconds late.
        """
        run = await self._client.ended(self.id, timeout)
        if run.state is State.FAILED:
            raise RunFailed(run)
        if run.state is State.CANCELLED:
            raise RunCancelled(run)
        return self._decode(run.result if run.result is not None else b"null")  # type: ignore[no-any-return]

    async def cancel(self, note: str | None = None) -> bool:
        """Ask for the run's end: at once while it is queued, through its worker while it runs.

        False if it had ended before. A handler that finishes first wins.
        """
        changed = await self._control(Command.CANCEL, note)
        await self._client.ended_here([self.id] if changed else [])
        return changed

    async def pause(self, note: str | None = None) -> bool:
        """Hold the run: at once while it is queued; while it runs, its handler is stopped and can go on from its
        last checkpoint. False if there is nothing to hold."""
        return await self._control(Command.PAUSE, note)

    async def resume(self, note: str | None = None) -> bool:
        """Let a paused run go on. False if it was not paused."""
        return await self._control(Command.RESUME, note)

    async def _control(self, command: Command, note: str | None) -> bool:
        return bool((await self._client.control(command, [self.id], note)).items[0])

    async def retry(self) -> "RunHandle[R_co]":
        """A new run that does the same again; retrying twice gives the same new run."""
        run = await self.refresh()
        if not run.state.final:
            raise InvalidOptions(f"{run.task} {run.id} is {run.state}; only an ended run can be retried")
        new = retry_of(run)
        accept((await self._client.put([new])).items[0])
        return RunHandle(self._client, new.id, self._decode)

    # -- the same from synchronous code; raises where an event loop runs ---------------------------------------------

    def refresh_sync(self) -> Run:
        """`refresh` from synchronous code."""
        return self._client.portal.call(self.refresh)

    def result_sync(self, timeout: float | None = None) -> R_co:
        """`result` from synchronous code."""
        return self._client.portal.call(lambda: self.result(timeout))

    def cancel_sync(self, note: str | None = None) -> bool:
        """`cancel` from synchronous code."""
        return self._client.portal.call(lambda: self.cancel(note))

    def pause_sync(self, note: str | None = None) -> bool:
        """`pause` from synchronous code."""
        return self._client.portal.call(lambda: self.pause(note))

    def resume_sync(self, note: str | None = None) -> bool:
        """`resume` from synchronous code."""
        return self._client.portal.call(lambda: self.resume(note))

    def retry_sync(self) -> "RunHandle[R_co]":
        """`retry` from synchronous code."""
        return self._client.portal.call(self.retry)


def accept(decision: Decision) -> Decision:
    """The decision, if it is a yes."""
    if decision:
        return decision
    if decision.reason is Reason.QUEUE_FULL:
        raise QueueFull(decision, "the queue is full; wait for workers to catch up, then submit again")
    raise Refused(decision)
