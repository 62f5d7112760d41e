"""The schedules of the store that a command is about, found by name."""

import difflib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

from cyclopts import Parameter

from rota.cli.options.target import Target
from rota.domain.schedule import Schedule
from rota.errors import ScheduleNotFound
from rota.schedules.schedules import Schedules
from rota.store import Store

ScheduleId = Annotated[str, Parameter(help="The schedule's name.")]


@asynccontextmanager
async def opened(target: Target) -> AsyncGenerator[tuple[Schedules, Store], None]:
    async with target.client() as client:
        yield Schedules(lambda: client, target.tz()), await client.store()


async def find_schedule(stored: Schedules, id: str) -> Schedule:
    """Of this name; an unknown one is refused with the likely one."""
    try:
        return await stored.get(id)
    except ScheduleNotFound:
        names = [schedule.id for schedule in await stored.list()]
        close = difflib.get_close_matches(id, names, n=1)
        hint = f"did you mean {close[0]}?" if close else "`rota schedules ls` shows those there are"
        raise ScheduleNotFound(f"no schedule {id}; {hint}" if names else f"no schedule {id}; there are none") from None
