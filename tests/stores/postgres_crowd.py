"""A crowd that uses every verb of a PostgreSQL store at once, on few names: rings of locks show here."""

import asyncio
from contextlib import AsyncExitStack
from random import Random

from msgspec.structs import replace

from rota.domain import needs
from rota.domain.guards import Mark
from rota.domain.lifecycle import Discarded, Failed, Lost, Outcome, Released, Snoozed, Succeeded, settlement_of
from rota.domain.policy import Limit, Rate
from rota.domain.run import Member, NewRun, Run
from rota.domain.schedule import Missed, Schedule
from rota.domain.spec import TaskSpec
from rota.store import Backend, ClaimRequest, Command, EventQuery, MarkRow, Plan, Retention, RowQuery, Scope, Store
from storekit.contract import new_run
from storekit.contract.stage import BOOM
from storekit.contract.timetable import new_schedule, new_tick

TASKS = ("a", "b", "c", "d")
KEYS = ("k", "l", "m")
STEPS = tuple(f"s{n}" for n in range(6))
GROUPS = ("day@1", "day@2")
SHORT = Retention(succeeded=0, failed=0, most=50, least=0)
OUTCOMES: tuple[Outcome, ...] = (Succeeded(), Succeeded(), Discarded(BOOM), Failed(BOOM), Snoozed(1), Released())


class Actor:
    """One of the crowd, on an open store of its own. What it does next is up to the dice."""

    def __init__(self, name: str, store: Store, dice: Random) -> None:
        self._name = name
        self._store = store
        self._dice = dice
        self._claims = 0
        self._seen: list[str] = []

    async def act(self) -> None:
        acts = (self.put, self.step, self.plan, self.work, self.work, self.control, self.declare, self.fire, self.mark)
        await self._dice.choice((*acts, self.control_task, self.sweep))()

    async def put(self) -> None:
        dice = self._dice
        runs = [
            new_run(
                dice.choice(TASKS),
                key=dice.choice(KEYS),
                unique=dice.choice((None, "queued", "active")),
                join=dice.choice(("keep", "push", "set")),
                delay=dice.choice((0, 0, 1)),
                expires_after=dice.choice((None, None, 0.05)),
                behind=dice.random() < 0.2,
            )
            for _ in range(dice.choice((1, 3, 30)))
        ]
        await self._store.put(runs)
        self._seen = [run.id for run in runs][-20:]

    def _step(self, task: str, group: str, name: str) -> NewRun:
        dice = self._dice
        before = [step for step in STEPS if step < name]
        wanted = [
            dice.choice((needs.done, needs.ended))(dice.choice(TASKS), f"{step}@{group}")
            for step in dice.sample(before, min(2, len(before)))
        ]
        member = Member(group, name, stops=dice.random() < 0.5)
        return new_run(task, key=f"{name}@{group}", unique="done", join="set", needs=wanted, member=member)

    async def step(self) -> None:
        group = self._dice.choice(GROUPS)
        await self._store.put([self._step(self._dice.choice(TASKS), group, name) for name in STEPS])

    async def plan(self) -> None:
        group = self._dice.choice(GROUPS)
        names = self._dice.sample(STEPS, 3)
        await self._store.put([self._step(self._dice.choice(TASKS), group, name) for name in names], Plan(group))

    async def work(self) -> None:
        self._claims += 1
        claim = await self._store.claim(
            ClaimRequest(self._name, self._claims, TASKS, self._dice.choice((1, 5, 20)), 30.0)
        )
        runs = self._dice.sample(claim.runs, len(claim.runs))
        await asyncio.gather(*(self._settle(part) for part in (runs[::2], runs[1::2])))
        if claim.lapsed:
            await self._store.settle([settlement_of(run, Lost()) for run in claim.lapsed])
        self._seen += [run.id for run in claim.runs]

    async def _settle(self, runs: list[Run]) -> None:
        if runs:
            await self._store.renew([run.lease for run in runs], 30.0)
            await self._store.settle([settlement_of(run, self._dice.choice(OUTCOMES)) for run in runs])

    async def control(self) -> None:
        found = self._dice.sample(self._seen, min(5, len(self._seen)))
        await self._store.control(self._dice.choice(tuple(Command)), found)

    async def control_task(self) -> None:
        tasks = self._dice.sample(TASKS, 2)
        await self._store.control(
            self._dice.choice((Command.PAUSE, Command.RESUME, Command.RESUME)), tasks, of=Scope.TASKS
        )

    async def declare(self) -> None:
        """Tasks and schedules of the same names, in any order, as apps declare them when they start."""
        dice = self._dice
        items: list[TaskSpec | Schedule] = []
        for task in TASKS:
            limit = dice.choice((Limit(dice.randint(2, 4)), Limit(per_key=dice.randint(1, 2)), None))
            items += [
                TaskSpec(task, limit=limit, rate=dice.choice((None, None, Rate(1000, 1.0)))),
                new_schedule(task, 1.0, task=task, key=f"schedule:{dice.random()}"),
            ]
        dice.shuffle(items)
        await self._store.declare(items)

    async def fire(self) -> None:
        found = (await self._store.rows(Schedule, RowQuery(names=TASKS))).items
        self._dice.shuffle(found)
        ticks = [
            new_tick(
                schedule,
                replace(
                    new_run(schedule.task, key=schedule.key, unique="queued", behind=True), at=schedule.next_at or 0.0
                ),
                missed=self._dice.choice((None, Missed(1.0, 2.0, 2))),
            )
            for schedule in found
        ]
        await self._store.fire(ticks)

    async def mark(self) -> None:
        group = self._dice.choice(GROUPS)
        pairs = [(task, f"{step}@{group}") for task in TASKS for step in STEPS]
        marks = (None, Mark(None, 1.0, 1), Mark(1.0, 1.0, 0))
        await self._store.mark([MarkRow(*pair, self._dice.choice(marks)) for pair in self._dice.sample(pairs, 5)])

    async def sweep(self) -> None:
        await self._store.sweep(SHORT)


async def mingle(backends: list[Backend], acts: int, seed: int) -> None:
    """So many acts by one actor on each of these backends, all at the same time."""
    async with AsyncExitStack() as opened:
        stores = [await opened.enter_async_context(backend.open()) for backend in backends]
        actors = [Actor(f"w{place}", store, Random(f"{seed}-{place}")) for place, store in enumerate(stores)]
        await actors[0].declare()
        await stores[0].events(EventQuery())  # so that all verbs record events
        await asyncio.gather(*(_many(actor, acts) for actor in actors))


async def _many(actor: Actor, acts: int) -> None:
    for _ in range(acts):
        await actor.act()
