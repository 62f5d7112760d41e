"""One of several processes that submit, claim and settle on one store as fast as they can, for a while.

    python -m tests.faults.hammer URL SECONDS

Prints what it did as one line of JSON.
"""

import asyncio
import json
import sys
import time
import uuid

from rota.domain import codec
from rota.domain.lifecycle import Succeeded, settlement_of
from rota.domain.policy import Policy
from rota.domain.run import NewRun, Origin
from rota.domain.settlement import Verdict
from rota.store import ClaimRequest, Store
from rota.stores import connect

WIRE = codec.encode(b"{}", Origin(), Policy())


class Hammer:
    def __init__(self, store: Store, until: float) -> None:
        self.store = store
        self.until = until
        self.submitted = self.applied = self.refused = 0

    async def submit(self) -> None:
        while time.monotonic() < self.until:
            runs = [NewRun(id=uuid.uuid4().hex, task="t", body=WIRE) for _ in range(5)]
            reply = await self.store.put(runs)
            self.submitted += sum(map(bool, reply.items))

    async def work(self) -> None:
        worker, n = uuid.uuid4().hex, 0
        while time.monotonic() < self.until:
            n += 1
            claim = await self.store.claim(ClaimRequest(worker, n, ["t"], 10, 60))
            if claim.runs:
                reply = await self.store.settle([settlement_of(run, Succeeded()) for run in claim.runs])
                self.applied += reply.items.count(Verdict.APPLIED)
                self.refused += len(reply.items) - reply.items.count(Verdict.APPLIED)


async def main(url: str, seconds: float) -> None:
    async with connect(url).open() as store:
        hammer = Hammer(store, time.monotonic() + seconds)
        await asyncio.gather(hammer.submit(), hammer.submit(), hammer.work(), hammer.work())
    done = {"submitted": hammer.submitted, "applied": hammer.applied, "refused": hammer.refused}
    sys.stdout.write(json.dumps(done) + "\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
