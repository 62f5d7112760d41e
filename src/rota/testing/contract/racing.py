"""Flows at one instant: two parents end while their child comes in, each on a connection of its own."""

import asyncio

from rota.domain import needs
from rota.domain.lifecycle import Succeeded, decide
from rota.domain.run import Member, NewRun, Run
from rota.store import Backend, Store
from rota.testing.contract.stage import GREET, Stage, Staged, ids, new_run

CHILD = "child"
PARTS = 100


def step(task: str, key: str, *after: str) -> NewRun:
    wanted = [needs.done(GREET, parent) for parent in after]
    return new_run(task, key=key, unique="done", needs=wanted, member=Member("day", key))


async def race(backend: Backend, number: int, child_first: bool) -> None:
    """So many children of two parents each: every one of them starts once, whoever comes first."""
    async with backend.open() as store, backend.open() as near, backend.open() as far:
        stage = Stage(backend, store)
        for first in range(0, number, PARTS):
            places = range(first, min(number, first + PARTS))
            children = [step(CHILD, f"{place}", f"{place}-a", f"{place}-b") for place in places]
            await stage.put(*(step(GREET, f"{place}-{side}") for place in places for side in "ab"))
            if child_first:
                await stage.put(*children)
            running = {run.key: run for run in (await stage.claim(free=2 * PARTS)).runs}
            for place, child in zip(places, children, strict=True):
                ends = end(near, running[f"{place}-a"]), end(far, running[f"{place}-b"])
                await asyncio.gather(*ends, *([] if child_first else [store.put([child])]))
            started = (await stage.claim("bob", 2 * PARTS, tasks=[CHILD])).runs
            assert sorted(ids(started)) == sorted(ids(children))
            await store.settle([decide(run, Succeeded()) for run in [*running.values(), *started]])
            assert (await stage.claim("eve", 2 * PARTS, tasks=[CHILD])).runs == []


async def end(store: Store, run: Run) -> None:
    await store.settle([decide(run, Succeeded())])


class RaceContract(Staged):
    async def test_two_parents_at_the_same_instant(self, backend: Backend) -> None:
        await race(backend, 60, child_first=True)

    async def test_a_child_comes_in_while_its_parents_end(self, backend: Backend) -> None:
        await race(backend, 60, child_first=False)
