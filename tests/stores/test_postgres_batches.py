"""Big batches of guarded runs come in by one statement: the same answers as one by one."""

import asyncio
from random import Random

from rota.domain.decision import Reason
from rota.domain.lifecycle import Succeeded, settlement_of
from rota.domain.run import NewRun
from rota.store import ClaimRequest, Store
from rota.stores.postgres import PostgresBackend
from storekit.contract import new_run

KEYS = [f"k{place}" for place in Random(7).sample(range(100), 40)]


def equals(**options: str) -> list[NewRun]:
    """One for each key, in no order of the keys."""
    return [new_run(key=key, unique="active", **options) for key in KEYS]  # type: ignore[arg-type]


async def reasons(store: Store, runs: list[NewRun]) -> set[Reason]:
    return {decision.reason for decision in (await store.put(runs)).items}


async def test_they_arrive_in_the_order_of_the_batch_and_hold_their_keys(postgres_backend: PostgresBackend) -> None:
    async with postgres_backend.open() as store:
        first = equals()
        assert await reasons(store, first) == {Reason.ACCEPTED}
        assert await reasons(store, first) == {Reason.ACCEPTED}
        refused = (await store.put(equals(join="refuse"))).items
        assert [(decision.run, decision.reason) for decision in refused] == [
            (run.id, Reason.ALREADY_QUEUED) for run in first
        ]
        assert await reasons(store, equals()) == {Reason.JOINED}
        claimed = (await store.claim(ClaimRequest("ada", 1, ["greet"], 100, 30))).runs
        assert [run.id for run in claimed] == [run.id for run in first]
        assert await reasons(store, equals()) == {Reason.ALREADY_RUNNING}
        assert await reasons(store, first) == {Reason.ACCEPTED}
        assert [(depth.queued, depth.running) for depth in (await store.depths()).items] == [(0, 40)]


async def test_equals_within_a_batch_meet_each_other(postgres_backend: PostgresBackend) -> None:
    async with postgres_backend.open() as store:
        batch = [*equals(), *equals()]
        decisions = (await store.put(batch)).items
        assert [decision.reason for decision in decisions] == [Reason.ACCEPTED] * 40 + [Reason.JOINED] * 40
        assert [decision.run for decision in decisions] == [run.id for run in batch[:40]] * 2


async def test_many_who_put_the_same_keys_at_once_make_one_run_of_each(postgres_backend: PostgresBackend) -> None:
    async with postgres_backend.open() as near, postgres_backend.open() as far:
        batches = [Random(place).sample(equals(), 40) for place in range(8)]
        await asyncio.gather(*((near, far)[place % 2].put(batch) for place, batch in enumerate(batches)))
        claimed = (await near.claim(ClaimRequest("ada", 1, ["greet"], 1000, 30))).runs
        assert sorted(run.key or "" for run in claimed) == sorted(KEYS)


async def test_a_plain_batch_whose_ids_are_partly_taken_adds_the_others(postgres_backend: PostgresBackend) -> None:
    """One is queued, one runs, one has ended, and two are new: two tasks, one with a queue of its own."""
    async with postgres_backend.open() as store:
        old = [new_run() for _ in range(3)]
        await store.put(old)
        ran, runs = (await store.claim(ClaimRequest("ada", 1, ["greet"], 2, 30))).runs
        await store.settle([settlement_of(ran, Succeeded())])
        fresh = [new_run(), new_run(task="wave", queue="slow")]
        decisions = (await store.put([*old, *fresh])).items
        assert [(decision.run, decision.reason) for decision in decisions] == [
            (run.id, Reason.ACCEPTED) for run in (*old, *fresh)
        ]
        found = (await store.claim(ClaimRequest("bob", 1, ["greet", "wave"], 10, 30))).runs
        assert {(run.id, run.queue) for run in found} == {
            (old[2].id, "default"),
            (fresh[0].id, "default"),
            (fresh[1].id, "slow"),
        }
        assert [(depth.task, depth.queued, depth.running) for depth in (await store.depths()).items] == [
            ("greet", 0, 3),
            ("wave", 0, 1),
        ]
        assert runs.id != ran.id
