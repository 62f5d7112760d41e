"""The racing service that the day is about, in place of a real one: no network, no chance, no clock of its own."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct

from rota import Context

PARIS = ZoneInfo("Europe/Paris")


class Race(Struct, frozen=True):
    """`start` is in milliseconds, as such services have it."""

    id: str
    start: int
    starters: int = 12


class ModelAsleep(Exception):
    """The predictions are not to be had now."""


@dataclass
class Chat:
    """Where people are told what is about to start. Its client is async only."""

    posts: list[str] = field(default_factory=list)

    async def post(self, text: str) -> None:
        self.posts.append(text)


@dataclass
class Racing:
    """All that the app knows of the world. Whoever plays the world changes it: races move, a model falls asleep."""

    races: dict[str, Race]
    chat: Chat = field(default_factory=Chat)
    archived: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    model_asleep: bool = False
    silent_courses: set[str] = field(default_factory=set)
    inquiries: set[str] = field(default_factory=set)

    async def program(self) -> list[Race]:
        return sorted(self.races.values(), key=lambda race: (race.start, race.id))

    async def predict(self) -> dict[str, float]:
        if self.model_asleep:
            raise ModelAsleep("the model is asleep")
        return {race.id: 1 / race.starters for race in await self.program()}

    async def horses(self, race: str) -> list[str]:
        return [f"{race}-{number}" for number in range(1, self.races[race].starters + 1)]

    async def wins(self, horse: str) -> int | None:
        """None for a horse that has never run."""
        number = int(horse.rpartition("-")[2])
        return None if number == 12 else 12 - number

    async def odds(self, race: str) -> float:
        return float(self.races[race].starters)

    async def ground(self, course: str) -> str | None:
        return None if course in self.silent_courses else "soft"

    async def winner(self, race: str) -> str | None:
        """None until the result is official."""
        return None if race in self.inquiries else f"{race}-1"

    # -- what happens there ----------------------------------------------------------------------------------------

    def move(self, race: str, start: datetime) -> None:
        self.races[race] = Race(race, milliseconds(start), self.races[race].starters)

    def cancel(self, race: str) -> None:
        del self.races[race]


def milliseconds(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)


def a_program(day: date) -> Racing:
    """Two meetings of an autumn day. The fourth race of the first has too few starters to talk about."""
    at = {
        "R1C1": time(13, 30),
        "R2C1": time(13, 47),
        "R1C2": time(14, 0),
        "R2C2": time(14, 15),
        "R1C3": time(14, 30),
        "R1C4": time(15, 0),
    }
    starts = {race: milliseconds(datetime.combine(day, start, PARIS)) for race, start in at.items()}
    return Racing({race: Race(race, start, 6 if race == "R1C4" else 12) for race, start in starts.items()})


def a_race_a_minute(day: date) -> Racing:
    """For those who do not want to wait until the afternoon."""
    midnight = datetime.combine(day, time(), PARIS)
    starts = (midnight + timedelta(minutes=minute) for minute in range(24 * 60))
    races = [Race(f"R{start:%H}C{start:%M}", milliseconds(start)) for start in starts]
    return Racing({race.id: race for race in races})


@asynccontextmanager
async def open_racing() -> AsyncGenerator[Racing]:
    """Opened once by every worker, for all its handlers."""
    yield a_race_a_minute(datetime.now(PARIS).date())


def racing(ctx: Context) -> Racing:
    """What the worker of this run has opened."""
    found: Racing = ctx.resources
    return found
