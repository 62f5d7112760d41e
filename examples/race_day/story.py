"""One day in a moment: the app as it is, in virtual time, in a world where things go wrong."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from examples.journal import listening
from examples.race_day.app import app, log
from examples.race_day.day import day
from examples.race_day.racing import PARIS, Racing, a_program
from rota import FlowStatus
from rota.testing import Simulation, simulate

MORNING = datetime(2026, 11, 15, 3, 0, tzinfo=PARIS)
Playing = Callable[["Story"], Awaitable[object]]


class Story:
    """A day of the app, and what was said in it."""

    def __init__(self, hours: float = 24) -> None:
        self.world: Racing = a_program(MORNING.date())
        self.journal: list[str] = []
        self.end = MORNING + timedelta(hours=hours)
        self.seen: dict[str, FlowStatus] = {}
        self.simulation: Simulation

    def play(self, playing: Playing | None = None, workers: int = 2) -> "Story":
        async def scenario(simulation: Simulation) -> None:
            self.simulation = simulation
            if playing is not None:
                await playing(self)

        with listening(log, self.tell):
            self.simulation = simulate(
                app, MORNING, self.end, scenario=scenario, workers=workers, resources=self._open_world
            )
        return self

    @asynccontextmanager
    async def _open_world(self) -> AsyncGenerator[Racing]:
        yield self.world

    @staticmethod
    def at(clock: str) -> datetime:
        """`14:30` of the day."""
        hour, minute = map(int, clock.split(":"))
        return MORNING.replace(hour=hour, minute=minute)

    async def until(self, clock: str, seconds: float = 0) -> None:
        await asyncio.sleep((self.at(clock) - self.simulation.now).total_seconds() + seconds)

    def tell(self, what: str) -> None:
        self.journal.append(f"{self.simulation.now:%H:%M}  {what}")

    async def look(self, name: str) -> FlowStatus:
        self.seen[name] = await day.status()
        return self.seen[name]


async def a_bad_day(story: Story) -> None:
    """What the world does to the app. The races at 14:30 and 14:15 are the ones to watch."""
    world = story.world
    world.model_asleep = True
    await story.until("04:36")
    await story.look("04:36")
    story.tell("-- the model wakes up")
    world.model_asleep = False

    await story.until("04:42", seconds=1)
    story.tell("-- the worker that is reading careers dies")
    story.simulation.crash()

    await story.until("10:20")
    world.silent_courses.add("Auteuil")
    await story.until("10:40")
    world.silent_courses.clear()

    await story.until("12:01")
    story.tell("-- R1C3 is put off from 14:30 to 15:05")
    world.move("R1C3", story.at("15:05"))
    await story.until("13:02")
    story.tell("-- R2C2 is cancelled")
    world.cancel("R2C2")
    await story.until("13:50")
    story.tell("-- an inquiry into R2C1 begins")
    world.inquiries.add("R2C1")
    await story.until("13:58", seconds=30)
    story.tell("-- and ends")
    world.inquiries.clear()
    await story.until("14:41")
    story.tell("-- R1C3 is put off again, to 15:20")
    world.move("R1C3", story.at("15:20"))

    await story.until("23:59")
    await story.look("23:59")
