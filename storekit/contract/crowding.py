"""A crowd: eight workers and random operations. No limit is exceeded at any instant, and in the end no run waits."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from random import Random

import pytest

from rota.domain.lifecycle import Failed, Lost, Outcome, Paused, Released, Snoozed, Succeeded, settlement_of
from rota.domain.policy import Limit, Policy, Retry
from rota.domain.run import Run, State
from rota.domain.settlement import Settlement
from rota.domain.spec import TaskSpec
from rota.store import Backend, ClaimRequest, Command, RunQuery, Store
from storekit.contract.stage import BOOM, LEASE, Staged, new_run

LIMITS = {"a": Limit(6, per_key=2), "b": Limit(4), "c": Limit(per_key=1)}
KEYS = (None, "k", "l", "m")
POLICY = Policy(retry=Retry(3, backoff="fixed", delay=5, jitter=0), max_losses=1000)
OUTCOMES: list[Outcome] = [Succeeded(), Succeeded(), Failed(BOOM), Released(), Snoozed(3), Paused()]
BACKLOG = 100

Place = tuple[str, str | None]


class Worker:
    """One worker that claims, settles, puts and cancels at random."""

    def __init__(self, name: str, store: Store, dice: Random) -> None:
        self.name = name
        self.done = 0
        self._store = store
        self._dice = dice
        self._claims = 0
        self._leased: list[Run] = []
        self._known: list[str] = []

    async def act(self, full: bool) -> None:
        match self._dice.choice(("claim", "claim", "settle", "settle", "command", "claim" if full else "put")):
            case "claim":
                await self.claim(self._dice.randint(1, 9))
            case "settle":
                await self.settle(self._dice.randint(1, 9))
            case "put":
                await self.put(self._dice.randint(5, 20))
            case _:
                await self.command(self._dice.randint(1, 5))

    async def claim(self, free: int) -> int:
        """Claim up to `free` runs and rescue lapsed ones."""
        self._claims += 1
        tasks = self._dice.sample(sorted(LIMITS), len(LIMITS))
        claim = await self._store.claim(ClaimRequest(self.name, self._claims, tasks, free, LEASE))
        self._leased += claim.runs
        await self._send(settlement_of(run, Lost()) for run in claim.lapsed)
        self.done += 1
        return len(claim.runs)

    async def settle(self, most: int) -> None:
        await self._send(settlement_of(run, self._dice.choice(OUTCOMES)) for run in self._leave(most))

    async def finish(self) -> None:
        await self._send(settlement_of(run, Succeeded()) for run in self._leave(len(self._leased)))

    async def put(self, count: int) -> None:
        dice = self._dice
        batch = [
            new_run(
                dice.choice(sorted(LIMITS)),
                key=dice.choice(KEYS),
                priority=dice.randint(-1, 1),
                delay=dice.choice([0, 0, 0, 4]),
                policy=POLICY,
            )
            for _ in range(count)
        ]
        await self._store.put(batch)
        self._known += [new.id for new in batch]
        self.done += count

    async def command(self, count: int) -> None:
        ids = self._dice.choices(self._known[-40:], k=count) if self._known else []
        await self._store.control(
            self._dice.choice((Command.CANCEL, Command.PAUSE, Command.RESUME, Command.RESUME)), ids
        )
        self.done += count

    def _leave(self, most: int) -> list[Run]:
        self._dice.shuffle(self._leased)
        left, self._leased = self._leased[:most], self._leased[most:]
        return left

    async def _send(self, settlements: Iterable[Settlement]) -> None:
        batch = list(settlements)
        if batch:
            await self._store.settle(batch)
            self.done += len(batch)


def places(run: Run) -> list[Place]:
    """Return what a run counts for: its task, and its key in that task."""
    return [(run.task, None)] if run.key is None else [(run.task, None), (run.task, run.key)]


def allowed(place: Place) -> int | None:
    task, key = place
    return LIMITS[task].total if key is None else LIMITS[task].per_key


def check(counts: Counter[Place]) -> None:
    over = {place: n for place, n in counts.items() if (most := allowed(place)) is not None and n > most}
    assert not over


def most_at_once(runs: Iterable[Run]) -> Counter[Place]:
    """Return the most runs of each task and key that ran at the same time, by the stored attempts."""
    moments = sorted(
        moment
        for run in runs
        for attempt in run.attempts
        for moment in ((attempt.claimed_at, 1, run.id), (attempt.ended_at, -1, run.id))
    )
    known = {run.id: run for run in runs}
    running, most = Counter[Place](), Counter[Place]()
    for _, change, id in moments:
        for place in places(known[id]):
            running[place] += change
            most[place] = max(most[place], running[place])
    return most


async def crowd(backend: Backend, operations: int, seed: int) -> None:
    """Do `operations` by eight workers on two open stores, then end all runs."""
    dice = Random(seed)
    async with backend.open() as near, backend.open() as far:
        await near.declare([TaskSpec(task, limit=limit) for task, limit in LIMITS.items()])
        workers = [Worker(f"w{i}", (near, far)[i % 2], dice) for i in range(8)]
        while sum(worker.done for worker in workers) < operations:
            queued = sum(depth.queued for depth in (await near.depths()).items)
            await asyncio.gather(*(worker.act(queued > BACKLOG) for worker in workers))
            running = (await near.runs(RunQuery(state=[State.RUNNING], limit=1000))).runs
            check(Counter(place for run in running for place in places(run)))
            backend.skew += dice.choice([0.0, 1.0, 3.0, 0.0, 8.0])
        await drain(backend, near, workers)
        runs = (await near.runs(RunQuery(limit=1_000_000))).runs
        most = most_at_once(runs)
        check(most)
        assert all(most[place] == allowed(place) for place in (("a", None), ("b", None), ("a", "k"), ("c", "m")))


async def drain(backend: Backend, store: Store, workers: list[Worker]) -> None:
    """Run all waiting runs to their end. Nothing new is put."""
    paused = (await store.runs(RunQuery(state=[State.PAUSED], limit=1_000_000))).runs
    await store.control(Command.RESUME, [run.id for run in paused])
    for _ in range(200 + len(paused)):
        await asyncio.gather(*(worker.finish() for worker in workers))
        if not (await store.depths()).items:
            return
        backend.skew += LEASE + 1
        await asyncio.gather(*(worker.claim(20) for worker in workers))
    raise AssertionError("some runs never start")


class CrowdContract(Staged):
    @pytest.mark.parametrize("seed", [1])
    async def test_limits_hold_through_ten_thousand_operations_and_nobody_waits_for_ever(
        self, backend: Backend, seed: int
    ) -> None:
        await crowd(backend, 10_000, seed)
