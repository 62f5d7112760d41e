"""The schedules of the target's store, found by name."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

from cyclopts import Parameter

from rota.cli.options.target import Target
from rota.client.client import Client
from rota.domain.schedule import Schedule
from rota.domain.text import did_you_mean
from rota.errors import ScheduleNotFound
from rota.schedules.schedules import Schedules

ScheduleId = Annotated[str, Parameter(help="The schedule's name.")]


@asynccontextmanager
async def opened(target: Target) -> AsyncGenerator[tuple[Schedules, Client], None]:
    async with target.client() as client:
        yield Schedules(lambda: client, target.tz()), client


async def find_schedule(stored: Schedules, id: str) -> Schedule:
    """Return the schedule `id`; an unknown name is refused with a suggestion."""
    try:
        return await stored.get(id)
    except ScheduleNotFound:
        names = [schedule.id for schedule in await stored.list()]
        hint = did_you_mean(id, names, "; `rota schedules ls` shows those there are") if names else "; there are none"
        raise ScheduleNotFound(f"no schedule {id}{hint}") from None
