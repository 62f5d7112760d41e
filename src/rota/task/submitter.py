"""Submitter: how the calls of an app's tasks reach the store, whether or not the app has the code of the task."""

import logging
from collections.abc import Callable

from msgspec import Struct

from rota.client.client import Client, submit_sync
from rota.client.handle import accept
from rota.client.portal import Portal
from rota.domain.decision import Decision, Reason
from rota.domain.run import NewRun
from rota.domain.trial import Trial
from rota.errors import InvalidOptions, StoreError
from rota.store import SubmitsWithin
from rota.task.call import Call

log = logging.getLogger("rota")

Wait = float | bool | None
"""Seconds to wait while `max_pending` is reached: None for the usual 30, False for not at all."""
WAIT = 30.0


class Submitter(Struct, frozen=True):
    """The client and the portal of an app. Both are functions, because `app.bound_to` replaces them for a while."""

    client: Callable[[], Client]
    portal: Callable[[], Portal]

    async def put(self, call: Call, wait: Wait = None) -> Decision:
        """Put the run of `call` into the store; raises Refused if a guard refuses the run."""
        run = call.to_run() if call.once is None else await self._run_of(call)
        return accept(await self.client().submit(run, _seconds(wait)))

    async def try_put(self, call: Call) -> Trial:
        """Return what `put` would answer; nothing changes."""
        return await self.client().try_put(await self._run_of(call))

    def put_sync(self, call: Call, wait: Wait = None) -> Decision:
        """The same as `put`, from synchronous code; raises if an event loop runs here."""
        if call.once is not None:  # the store's time decides the period
            return self.portal().call(lambda: self.put(call, wait))
        return accept(submit_sync(self.client(), call.to_run(), _seconds(wait), self.portal()))

    async def put_within(self, call: Call, connection: object) -> Decision:
        """Put the run of `call` in the transaction that is open on `connection`."""
        client = self.client()
        await client.store()  # the first submit of a process creates the schema
        run = client.prepared(await self._run_of(call))
        refusal = client.refusal(run)
        return accept(await self._within().put_within(connection, run) if refusal is None else refusal)

    def put_within_sync(self, call: Call, connection: object) -> Decision:
        """The same as `put_within`, on the connection of a synchronous driver."""
        run = call.to_run() if call.once is None else self.portal().call(lambda: self._run_of(call))
        run = self.client().prepared(run)
        refusal = self.client().refusal(run)
        return accept(self._within().put_within_sync(connection, run) if refusal is None else refusal)

    async def touch(self, run: NewRun) -> Decision:
        """Put the run of a touch. A store that does not answer is a no, because nobody waits for a touch."""
        try:
            return await self.client().touch(run)
        except StoreError as error:
            return unavailable(run.task, error, run.id)

    async def _run_of(self, call: Call) -> NewRun:
        return call.to_run() if call.once is None else call.to_run_at(await self.client().now())

    def _within(self) -> SubmitsWithin:
        backend = self.client().backend
        if backend.submits_within is None:
            raise InvalidOptions(f"using(connection=...) needs a PostgreSQL store, and this app's is {backend.url}")
        return backend.submits_within


def _seconds(wait: Wait) -> float:
    return WAIT if wait is None or wait is True else float(wait)


def unavailable(task: str, error: StoreError, run: str = "") -> Decision:
    """Return the decision about a touch that did not reach the store."""
    log.warning("a touch of %s is lost, the store cannot be reached: %s", task, error)
    return Decision(run, Reason.UNAVAILABLE)
