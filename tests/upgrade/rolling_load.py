"""Submit runs until the process is killed, and print the id of each that the store has accepted.

python -m tests.upgrade.rolling_load NAME
"""

import asyncio
import sys
from contextlib import suppress

from rota import Refused
from tests.upgrade.rolling_app import alone, app, once, work

PACE = 0.01
"""Seconds between two rounds: a load, and not the most that a store can take."""


async def main(name: str) -> None:
    number = 0
    async with app.client():
        while True:
            for task in (work, work, work, alone):
                number += 1
                run = await task.using(id=f"{name}-{number}").submit(number)
                print(f"accepted {run.id}\n", end="", flush=True)  # by one write: a kill leaves no half of a line
            with suppress(Refused):
                await once.submit(number)  # the other process submits the same numbers
            await asyncio.sleep(PACE)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
