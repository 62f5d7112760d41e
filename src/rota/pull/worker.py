"""PullWorker: claim, renew and settle in Python, over a store or over the URL of a service."""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Protocol, Self, TypeVar

import msgspec

from rota.client.client import Client
from rota.client.service import API, Service
from rota.engine.outcomes import failure
from rota.errors import RotaError, ServiceError, StaleClaim
from rota.pull.pulling import Pulling
from rota.pull.values import (
    ClaimBody,
    Pulled,
    PulledRun,
    PullError,
    PullLease,
    PullNote,
    PullOutcome,
    RenewBody,
    Renewed,
    SettleBody,
    Settled,
    WorkerReport,
)
from rota.store import Backend
from rota.stores import connect

log = logging.getLogger("rota")

T = TypeVar("T")
PAUSES = (0.2, 1.0, 4.0)
"""Seconds between two tries of a request that got no answer."""


class _Side(Protocol):
    """Where the runs are: a store, or a service."""

    async def claim(self, asked: ClaimBody) -> Pulled: ...
    async def renew(self, asked: RenewBody) -> Renewed: ...
    async def settle(self, asked: SettleBody) -> Settled: ...
    async def close(self) -> None: ...


class PullWorker:
    """A worker that your own code drives: it claims runs, calls what it likes, and says what became of them.

    Each request can be lost and is sent again: a claim with the same number answers the same batch, and a settle that
    was applied answers `already`. While you work on a run, renew its lease; the answer says if somebody cancels it.
    """

    def __init__(
        self,
        at: "str | Backend",
        tasks: Sequence[str],
        *,
        name: str | None = None,
        token: str | None = None,
        queues: Sequence[str] = (),
        lease: float = 30.0,
    ) -> None:
        """`at`: the URL of a service (http://, https://) with its `token`, or a store (its URL or a Backend). `name`
        is new for every start unless you give one; then no other process may use it."""
        self.name = name or f"{socket.gethostname()[:60]}-{os.getpid()}-{secrets.token_hex(4)}"
        self.tasks = list(tasks)
        self._queues = list(queues)
        self._lease = lease
        self._claims = 0
        self._begun = False
        self._report = WorkerReport(socket.gethostname()[:200], os.getpid(), version("rota"))
        remote = isinstance(at, str) and at.split(":", 1)[0] in ("http", "https")
        self._side: _Side = _Remote(Service(str(at), token)) if remote else _Here(at, self.name)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        try:
            if self._begun:
                await self._say_goodbye()
        except RotaError as why:  # what is leased to this worker lapses
            log.warning("pull worker %s cannot say goodbye: %s", self.name, why)
        finally:
            await self._side.close()

    async def _say_goodbye(self) -> None:
        """Tell that this worker claims no more, and give back the batch of a claim whose answer got lost."""
        asked = ClaimBody(worker=self.name, n=self._claims + 1, tasks=[], free=0, lease=self._lease)
        answer = await self._side.claim(asked)
        lost = [PullOutcome(run=run.id, fence=run.fence, outcome="release") for run in answer.runs]
        if lost:
            await self.settle(*lost)

    async def claim(self, free: int = 1, wait: float = 20.0) -> list[PulledRun]:
        """Return at most `free` runs that are leased to this worker; an empty list after `wait` seconds without any."""
        asked = ClaimBody(
            worker=self.name,
            n=self._claims + 1,
            tasks=self.tasks,
            free=free,
            lease=self._lease,
            wait=wait,
            queues=self._queues,
            report=self._report,
        )
        return (await self._claim(asked)).runs

    async def _claim(self, asked: ClaimBody) -> Pulled:
        """The number counts up with an answer only: after a lost reply, the same batch is asked for."""
        checked = _checked(asked)
        self._begun = True
        answer = await self._side.claim(checked)
        self._claims = asked.n
        return answer

    async def renew(self, runs: Sequence[PulledRun], notes: Mapping[str, PullNote] | None = None) -> list[str]:
        """Extend the leases. `lost`: drop the run. `cancel`, `pause`: stop, and settle it with that outcome."""
        leases = [PullLease(run.id, run.fence) for run in runs]
        asked = RenewBody(worker=self.name, leases=leases, lease=self._lease, notes=dict(notes or {}))
        return [str(item) for item in (await self._side.renew(_checked(asked))).items]

    async def settle(self, *outcomes: PullOutcome) -> list[str]:
        """Say what became of runs. `stale`: the run was no longer this worker's, and nothing has changed."""
        return [str(item) for item in (await self._side.settle(_checked(SettleBody(self.name, list(outcomes))))).items]

    async def succeed(self, run: PulledRun, result: Any = None) -> str:
        return (await self.settle(PullOutcome(run=run.id, fence=run.fence, outcome="succeeded", result=result)))[0]

    async def fail(self, run: PulledRun, error: BaseException | str) -> str:
        """Say that the call has failed. The rules of the task decide whether the run is tried again."""
        if isinstance(error, str):
            said = PullError(error)
        else:
            found = failure(error)
            said = PullError(found.message, found.type, found.traceback)
        return (await self.settle(PullOutcome(run=run.id, fence=run.fence, outcome="failed", error=said)))[0]


def _checked(asked: T) -> T:
    """Return the request if its numbers are within bounds, as the service does."""
    return msgspec.convert(msgspec.to_builtins(asked), type(asked))


class _Here:
    """The store itself: the rules of the tasks are applied in this process."""

    def __init__(self, at: "str | Backend", worker: str) -> None:
        self._client = Client(connect(at) if isinstance(at, str) else at)
        self._pulling = Pulling(self._client)
        self._worker = worker

    async def claim(self, asked: ClaimBody) -> Pulled:
        return await self._pulling.claim(self._worker, asked)

    async def renew(self, asked: RenewBody) -> Renewed:
        return await self._pulling.renew(self._worker, asked)

    async def settle(self, asked: SettleBody) -> Settled:
        return await self._pulling.settle(self._worker, asked.outcomes)

    async def close(self) -> None:
        await self._client.close()


class _Remote:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def claim(self, asked: ClaimBody) -> Pulled:
        try:
            return await self._send("claim", asked, Pulled, asked.wait)
        except ServiceError as error:
            if error.status == 409 and isinstance(n := error.fields.get("n"), int):
                raise StaleClaim(n) from None
            raise

    async def renew(self, asked: RenewBody) -> Renewed:
        return await self._send("renew", asked, Renewed)

    async def settle(self, asked: SettleBody) -> Settled:
        return await self._send("settle", asked, Settled)

    async def close(self) -> None:
        return

    async def _send(self, verb: str, body: object, kind: type[T], wait: float = 0.0) -> T:
        answer = await _again(lambda: self._service.call("POST", f"{API}/{verb}", body, wait))
        return msgspec.json.decode(answer.body, type=kind)


async def _again(send: Callable[[], Awaitable[T]]) -> T:
    """Send a request until there is an answer: each can be sent twice."""
    for pause in PAUSES:
        try:
            return await send()
        except ServiceError as error:
            if not error.passing:
                raise
            await asyncio.sleep(pause)
    return await send()
