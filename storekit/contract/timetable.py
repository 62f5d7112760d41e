"""The stage of the contract tests about schedules: schedules, ticks, and what the store keeps of them."""

from dataclasses import dataclass
from typing import Any

from rota.domain import codec
from rota.domain.run import NewRun, Origin
from rota.domain.schedule import Missed, Schedule, Tick
from rota.store import Command, Declared, Fired, RowQuery, Scope
from storekit.contract.stage import ARGS, GREET, STUBBORN, Stage, new_run

REPORT = "report"
MINUTE = 60.0
OWNER = "app"


def new_schedule(id: str = REPORT, at: float | None = None, **fields: Any) -> Schedule:
    """Return a schedule that fires at `at`. Stores do not read triggers, so any text will do."""
    body = codec.encode(ARGS, Origin(), STUBBORN).decode()
    given: dict[str, Any] = {
        "next_at": at,
        "fires_at": at,
        "trigger": "every 1m",
        "task": GREET,
        "body": body,
        "key": f"schedule:{id}",
        "owner": OWNER,
    }
    return Schedule(id=id, **(given | fields))


def new_tick(
    schedule: Schedule,
    *runs: NewRun,
    then: float | None = None,
    last: bool = False,
    missed: Missed | None = None,
    left: int | None = None,
) -> Tick:
    """Return a tick of the schedule. The next nominal time is `then`, by default a minute later, or none with
    `last`."""
    nominal = schedule.next_at or 0.0
    on = None if last else nominal + MINUTE if then is None else then
    nominals = tuple(nominal + place for place in range(len(runs)))
    return Tick(schedule.id, schedule.version, schedule.next_at, on, on, runs, nominals, missed, left)


@dataclass(frozen=True)
class Timetable:
    """The schedules of a stage, each call in one line."""

    stage: Stage

    async def declare(self, *schedules: Schedule) -> list[Declared]:
        return (await self.stage.store.declare(schedules)).items

    async def add(self, id: str = REPORT, delay: float = MINUTE, **fields: Any) -> Schedule:
        """Declare a schedule that fires after `delay` seconds, and return it as stored."""
        at = await self.stage.now() + delay
        assert await self.declare(new_schedule(id, at, **fields)) == [Declared.ADDED]
        return await self.see(id)

    async def due(self, id: str = REPORT, **fields: Any) -> Schedule:
        """Declare a schedule whose tick was due a second ago, and return it as stored."""
        schedule = await self.add(id, **fields)
        self.stage.wait(MINUTE + 1)
        return schedule

    async def find(self, *ids: str) -> list[Schedule]:
        return (await self.stage.store.rows(Schedule, RowQuery(names=ids))).items

    async def see(self, id: str = REPORT) -> Schedule:
        (schedule,) = await self.find(id)
        return schedule

    async def fire(self, *ticks: Tick) -> list[Fired]:
        return (await self.stage.store.fire(ticks)).items

    async def fired(self, *ticks: Tick) -> list[bool]:
        return [fired.applied for fired in await self.fire(*ticks)]

    async def control(self, command: Command, *ids: str, note: str | None = None, by: str | None = None) -> list[int]:
        return (await self.stage.store.control(command, ids or [REPORT], note, by, Scope.SCHEDULES)).items

    async def offered(self, worker: str = "ada", **fields: Any) -> list[str]:
        """Return the ids of the schedules that the next claim of a worker offers."""
        return [schedule.id for schedule in (await self.stage.claim(worker, **fields)).schedules]

    async def idle(self, *workers: str) -> list[float | None]:
        """Let each worker claim nothing, and return their wake times."""
        return [(await self.stage.claim(worker)).wake for worker in workers]


def tick_run(id: str | None = None, **fields: Any) -> NewRun:
    """Return a run as a tick makes it."""
    return new_run(id=id, key=f"schedule:{REPORT}", **fields)
