"""The gaps between a look and a lock made wide: the functions with a pause before each statement that locks or writes.

Under READ COMMITTED a row may change between the statement that finds it and the one that locks it. The pauses make
that likely, and the contract's concurrent parts show who does not judge again.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from random import Random

import asyncpg
import pytest

from rota.domain.lifecycle import Snoozed, Succeeded, settlement_of
from rota.domain.policy import Limit
from rota.domain.settlement import Verdict
from rota.domain.spec import TaskSpec
from rota.store import Backend, ClaimRequest, Store
from rota.stores.postgres import PostgresBackend
from storekit.contract import StoreContract, new_run
from storekit.contract.crowding import crowd
from storekit.contract.racing import MANNERS, Manner, race
from storekit.servers import PostgresServer
from tests.stores.postgres_builds import install, widened
from tests.stores.postgres_crowd import mingle

PAUSE, LONG_PAUSE = 0.002, 0.005
"""Seconds that a gap lasts at most."""
KEYS = ("k", "l", "m", "n")

Make = Callable[[], PostgresBackend]


@pytest.fixture
async def make(postgres: PostgresServer, namespace: str) -> AsyncIterator[Make]:
    """Backends of one schema, as many processes have them."""

    def backend() -> PostgresBackend:
        return PostgresBackend.from_url(f"{postgres.url}&schema={namespace}")

    await install(backend(), widened(PAUSE))
    yield backend
    connection = await asyncpg.connect(postgres.url)
    await connection.execute(f"DROP SCHEMA {namespace} CASCADE")
    await connection.close()


def test_every_lock_and_write_has_a_gap_before_it() -> None:
    assert widened(1).count("PERFORM gap(); ") > 100


async def test_a_run_that_is_pushed_while_it_is_claimed_starts_when_it_is_due(make: Make) -> None:
    await push_and_claim([make() for _ in range(4)], 25)


async def push_and_claim(backends: list[PostgresBackend], rounds: int) -> None:
    """Runs of two tasks are pushed to later just when they are due, while workers look for them."""

    async def push(store: Store, dice: Random) -> None:
        for _ in range(rounds):
            for task in ("a", "b"):
                run = new_run(task, key=dice.choice(KEYS), unique="queued", join="push", delay=0.05)
                await store.put([run])

    async def work(store: Store, name: str) -> None:
        for n in range(1, 3 * rounds):
            claim = await store.claim(ClaimRequest(name, n, ["a", "b"], 3, 30))
            early = [run.id for run in claim.runs if run.due_at > claim.now]
            assert not early, "claimed before it is due"
            await store.settle([settlement_of(run, Succeeded()) for run in claim.runs])

    async with (
        backends[0].open() as one,
        backends[1].open() as two,
        backends[2].open() as three,
        backends[3].open() as four,
    ):
        await asyncio.gather(push(one, Random(1)), push(two, Random(2)), work(three, "ada"), work(four, "bob"))


async def test_counted_runs_of_tasks_that_lost_their_limits_end_without_a_ring(make: Make) -> None:
    """Their gates are not locked any more. That no deadlock happened is seen at the end of the session."""
    async with make().open() as one, make().open() as two:
        for n in range(1, 11):
            await one.declare([TaskSpec(task, limit=Limit(9, per_key=9)) for task in ("a", "z")])
            await one.put([new_run(task, key="k") for task in ("a", "z", "a", "z")])
            first, last, *others = (await one.claim(ClaimRequest("ada", n, ["a", "z"], 4, 30))).runs
            await one.declare([TaskSpec(task) for task in ("a", "z")])
            back = [settlement_of(last, Snoozed(3600)), settlement_of(first, Succeeded())]
            ends = [settlement_of(run, Succeeded()) for run in others]
            verdicts = await asyncio.gather(one.settle(back), two.settle(ends))
            assert [verdict for reply in verdicts for verdict in reply.items] == [Verdict.APPLIED] * 4


@pytest.mark.parametrize("manner", MANNERS)
async def test_two_parents_at_the_same_instant(make: Make, manner: Manner) -> None:
    await race(make(), 4, manner)


async def test_a_crowd_meets_in_no_ring(make: Make) -> None:
    """That no deadlock happened is seen at the end of the session."""
    await mingle([make() for _ in range(4)], 15, seed=3)


@pytest.mark.soak
@pytest.mark.timeout(3600)
class TestWideGaps(StoreContract):
    """The whole contract, with a crowd that does less and steps that take less: each operation pauses many times."""

    THOUSANDS = 500

    @pytest.fixture
    async def backend(self, make: Make) -> Backend:
        backend = make()
        await install(backend, widened(LONG_PAUSE))
        return backend

    @pytest.mark.parametrize("seed", [1])
    async def test_limits_hold_through_ten_thousand_operations_and_nobody_waits_for_ever(
        self, backend: Backend, seed: int
    ) -> None:
        await crowd(backend, 1_500, seed)

    async def test_pushes(self, make: Make) -> None:
        await push_and_claim([make() for _ in range(4)], 500)

    async def test_rings(self, make: Make) -> None:
        await mingle([make() for _ in range(6)], 400, seed=4)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("manner", MANNERS)
async def test_two_parents_at_the_same_instant_many_times(make: Make, manner: Manner) -> None:
    await race(make(), 200, manner)
