"""Between the statement that looks and the one that locks, a run may change: it is judged again as it stands.

Each test widens one such gap: in its own schema, the function waits there for a lock that the test holds.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import asyncpg
import pytest

from rota.domain.guards import Join
from rota.domain.policy import Limit
from storekit.contract import Stage, new_run
from storekit.contract.stage import ids

GAP = 4711
SOURCE = "SELECT pg_get_functiondef(to_regproc($1))"
SOMEBODY_WAITS = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND NOT granted)"

Widen = Callable[[str, str], Awaitable[None]]


@pytest.fixture
async def widen(beside: asyncpg.Connection) -> AsyncIterator[Widen]:
    """Make a function wait for the lock in front of this statement; afterwards it is as it was."""
    before: list[str] = []

    async def wait_in(function: str, statement: str) -> None:
        source = str(await beside.fetchval(SOURCE, function))
        assert source.count(statement) == 1, f"{function} has no longer one {statement!r}"
        before.append(source)
        await beside.execute(source.replace(statement, f"PERFORM pg_advisory_xact_lock({GAP}); {statement}"))

    yield wait_in
    for source in before:
        await beside.execute(source)


@asynccontextmanager
async def in_the_gap(beside: asyncpg.Connection, verb: Awaitable[object]) -> AsyncIterator[None]:
    """While the body runs, the verb stands in its gap."""
    await beside.execute("SELECT pg_advisory_lock($1)", GAP)
    task = asyncio.ensure_future(verb)
    while not await beside.fetchval(SOMEBODY_WAITS, GAP):
        await asyncio.sleep(0)
        assert not task.done(), "the verb never came to the gap"
    yield
    await beside.execute("SELECT pg_advisory_unlock($1)", GAP)
    await task


class Claim:
    """A claim of two lanes that has looked and not yet locked what it found: one run, and its neighbour."""

    def __init__(self, stage: Stage, other: Stage, beside: asyncpg.Connection) -> None:
        self.stage, self.other, self.beside = stage, other, beside
        self.run, self.neighbour = new_run(key="k", unique="queued"), new_run(priority=5)
        self.found: list[str] = []

    @asynccontextmanager
    async def in_the_gap(self) -> AsyncIterator[None]:
        await self.stage.put(self.run, self.neighbour)
        async with in_the_gap(self.beside, self._claim()):
            yield

    async def _claim(self) -> None:
        self.found = ids((await self.stage.claim(free=5)).runs)


@pytest.fixture
async def claim(stage: Stage, beside: asyncpg.Connection, widen: Widen) -> AsyncIterator[Claim]:
    await widen("take", "WITH ours AS MATERIALIZED")
    async with stage.backend.open() as store:
        yield Claim(stage, Stage(stage.backend, store), beside)


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("join", ["push", "set"])
async def test_a_run_that_is_moved_to_later_beside_a_claim_is_not_taken(
    claim: Claim, join: Join, limited: bool
) -> None:
    if limited:
        await claim.stage.declare(Limit(5))
    async with claim.in_the_gap():
        later = new_run(key="k", unique="queued", join=join, delay=60)
        put = asyncio.ensure_future(claim.other.admit(later))
        if not limited:
            await put
    await put
    # A join of a limited task waits for the claim, which holds the limit: then the run was due when it was taken.
    assert claim.found == ids([claim.neighbour, claim.run] if limited else [claim.neighbour])
    claim.stage.wait(61)
    assert ids((await claim.stage.claim("bob")).runs) == [later.id if limited else claim.run.id]


async def test_a_run_that_expires_beside_a_claim_is_not_taken(claim: Claim, beside: asyncpg.Connection) -> None:
    async with claim.in_the_gap():
        await beside.execute("UPDATE queue SET expires_at = 1 WHERE id = $1", claim.run.id)
    assert claim.found == [claim.neighbour.id]


async def test_a_run_that_is_joined_beside_a_claim_is_taken_with_the_newest_arguments(claim: Claim) -> None:
    async with claim.in_the_gap():
        await claim.other.admit(new_run(key="k", unique="queued", args=b'{"name":"Bob"}'))
    assert claim.found == ids([claim.neighbour, claim.run])
    assert (await claim.stage.see(claim.run)).args == b'{"name":"Bob"}'
