"""Hand-over: a put on some stores leases its run to an idle worker and sends it with a hint, which saves a claim."""

import secrets

from rota.engine.seats import Seat
from rota.store import Claim, ClaimRequest, Handed, Store


class HandOver:
    """Sends the claims of one worker. On a store that hands runs over, a claim also says whether the worker is ready
    for one, and which one it got since its last claim."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._handing = store.hands_over
        self._hears = False
        self._token: str | None = None
        self.took: Seat | None = None
        """The handed run that was started, until a claim has told the store."""

    @property
    def hints_on(self) -> bool:
        """The store hints this worker for more runs after a hand-over."""
        return self._handing is not None and self._handing.hints_on

    @property
    def wants_claim(self) -> bool:
        """An idle worker should claim: the store hands runs over and does not know that this worker is ready."""
        return self._hears and self._token is None

    async def claim(self, request: ClaimRequest, idle: bool) -> Claim:
        """Send one claim. `idle`: the worker holds no run, so that it can start a handed one at once."""
        if self._handing is None:
            return await self._store.claim(request)
        self._token = None  # while a claim is on its way, that claim returns what is handed
        took = None if self.took is None else self.took.run.id
        hears = await self._handing.hears(request.worker)
        token = secrets.token_hex(8) if idle and hears else None
        claim = await self._handing.claim_ready(request, token, took)
        self._hears = hears
        if not claim.runs:
            self._token = token
        return claim

    def accepts(self, handed: Handed) -> bool:
        """True if the worker may start the handed run. With another token than that of the last claim, a newer claim
        returns the run, or has returned it already."""
        if self._token != handed.token:
            return False
        self._token = None
        return True
