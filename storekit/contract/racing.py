"""Races in flows: two parents end, each on its own connection, while their child waits or is put."""

import asyncio
from typing import Literal, get_args

import pytest

from rota.domain import needs
from rota.domain.lifecycle import Discarded, Outcome, Succeeded, settlement_of
from rota.domain.policy import Policy
from rota.domain.run import Member, NewRun, Run
from rota.store import Backend, Store
from storekit.contract.stage import BOOM, GREET, Stage, Staged, ids, new_run

CHILD = "child"
PARTS = 100
Manner = Literal["apart", "meanwhile", "together", "continued", "retried"]
"""How the parents end: each by itself; while the child is put; both in one call; with a failure, for a child that needs
any end; and the same, with parents that are retried after the child has started."""
MANNERS: tuple[Manner, ...] = get_args(Manner)


def step(task: str, key: str, *after: str, any_end: bool = False) -> NewRun:
    wanted = [(needs.ended if any_end else needs.done)(GREET, parent) for parent in after]
    return new_run(task, key=key, unique="done", policy=Policy(), needs=wanted, member=Member("day", key))


async def race(backend: Backend, number: int, manner: Manner) -> None:
    """Put `number` children of two parents each and end the parents: every child starts once, whichever comes first."""
    failing = manner in ("continued", "retried")
    async with backend.open() as store, backend.open() as near, backend.open() as far:
        stage = Stage(backend, store)
        for first in range(0, number, PARTS):
            places = range(first, min(number, first + PARTS))
            parents = [step(GREET, f"{place}-{side}") for place in places for side in "ab"]
            children = [step(CHILD, f"{place}", f"{place}-a", f"{place}-b", any_end=failing) for place in places]
            await stage.put(*parents, *([] if manner == "meanwhile" else children))
            running = {run.key: run for run in (await stage.claim(free=2 * PARTS)).runs}
            outcome = Discarded(BOOM) if failing else Succeeded()
            for place, child in zip(places, children, strict=True):
                pair = running[f"{place}-a"], running[f"{place}-b"]
                if manner == "together":
                    await end(near, outcome, *pair)
                    continue
                coming = [store.put([child])] if manner == "meanwhile" else []
                await asyncio.gather(end(near, outcome, pair[0]), end(far, outcome, pair[1]), *coming)
            started = (await stage.claim("bob", 2 * PARTS, tasks=[CHILD])).runs
            assert sorted(ids(started)) == sorted(ids(children))
            if manner == "retried":
                await stage.put(*(step(GREET, f"{place}-{side}") for place in places for side in "ab"))
                await end(far, Succeeded(), *(await stage.claim(free=2 * PARTS)).runs)
            await end(store, Succeeded(), *running.values(), *started)
            assert (await stage.claim("eve", 2 * PARTS, tasks=[CHILD])).runs == []


async def end(store: Store, outcome: Outcome, *runs: Run) -> None:
    await store.settle([settlement_of(run, outcome) for run in runs])


class RaceContract(Staged):
    @pytest.mark.parametrize("manner", MANNERS)
    async def test_two_parents_at_the_same_instant(self, backend: Backend, manner: Manner) -> None:
        await race(backend, 40, manner)
