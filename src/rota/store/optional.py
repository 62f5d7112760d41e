"""Optional capabilities: what some stores and backends can do beyond the verbs. `Store.hands_over` and
`Backend.submits_within` are None where the capability is missing, other backends have no `put_directly`, and a backend
without a server is no `OnServer`."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from rota.domain.decision import Decision
from rota.domain.run import NewRun, Run
from rota.store.claims import Claim, ClaimRequest
from rota.store.queries import RunCounts, RunQuery
from rota.store.values import Hint

UNHEARD = 6.0
"""Seconds for which a handed run is leased, until the next claim of its worker says that the worker took it."""


class Handed(Hint, frozen=True, kw_only=True):
    """A hint that carries a run, which a put has leased to an idle worker."""

    worker: str
    """The worker that the run is leased to."""
    token: str
    """The token of that worker's last claim. With another token, the worker drops the hint and claims."""
    run: Run


class HandsOver(Protocol):
    """A store whose `put` may lease a run to an idle worker and send it with a `Handed` hint, which saves a claim.

    The hint can get lost. The lease is therefore short (UNHEARD) until the worker's next claim, which says what the
    worker got.
    """

    hints_on: bool
    """After a hand-over the store hints the worker for more runs, if it has free seats: it need not claim at once."""

    async def hears(self, worker: str) -> bool:
        """Return whether a `Handed` hint for `worker` would arrive at this open store now."""
        ...

    async def claim_ready(self, request: ClaimRequest, token: str | None, took: str | None) -> Claim:
        """`Store.claim`, for a worker that can be handed runs.

        With a `token`, and if this claim finds nothing, puts may hand one run to the worker until its next claim; the
        `Handed` hint carries the token. `took` is the id of the run that the worker was handed and has started since
        its last claim: from now on its lease lasts `request.lease`. This claim returns a run that the worker was handed
        and that `took` does not name.
        """
        ...


@runtime_checkable
class OnServer(Protocol):
    """A backend whose data are kept by another program, or by a library that has versions of its own."""

    @property
    def server_version(self) -> str:
        """The version of that program; empty before a store was opened."""
        ...


@runtime_checkable
class CountsRuns(Protocol):
    """A store that counts runs where they are kept."""

    async def counted(self, query: RunQuery, at_most: int) -> RunCounts:
        """Return how many runs `query` finds, if `query.counts`. The counts stop at `at_most + 1` in all."""
        ...


class SubmitsWithin(Protocol):
    """A backend that can put a run in a transaction which is open on a database connection of the caller.

    The run exists once that transaction commits, and never existed if it is rolled back.
    """

    async def put_within(self, connection: object, run: NewRun) -> Decision:
        """Put `run` over `connection`, a connection of an asynchronous driver."""
        ...

    def put_within_sync(self, connection: object, run: NewRun) -> Decision:
        """Put `run` over `connection`, a connection of a synchronous driver."""
        ...


PutDirectly = Callable[[NewRun], Decision | None]
"""Puts one run in the thread of a synchronous caller, while this process has the store open.

It tries once. None: it did not try, or nobody knows whether the store has the run now; the caller sends the same put
through the open store, which is done once however often it is sent.
"""


def put_directly(backend: object) -> PutDirectly | None:
    """Return the direct put of `backend`; None if it has none."""
    return getattr(backend, "put_directly", None)
