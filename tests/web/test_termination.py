"""A SIGTERM that no server handles: the engine gives its runs back, and then the process dies of the signal."""

import signal
from pathlib import Path

from rota import Rota
from rota.domain.run import State
from tests.processes import Process

PROGRAM = """
import asyncio, sys

from rota import Rota
from rota.web.lifespans import working

app = Rota(sys.argv[1])


@app.task
async def linger() -> None:
    print("holds", flush=True)
    await asyncio.Event().wait()


async def serve() -> None:
    async with working(app):
        print("run", (await linger.submit()).id, flush=True)
        await asyncio.Event().wait()


asyncio.run(serve())
"""


async def test_a_process_that_is_terminated_gives_its_runs_back_before_it_dies(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/rota.db"
    with Process("-c", PROGRAM, url, env={"ROTA_GRACE": "0.1"}) as serving:
        (line,) = serving.wait_for("run ")
        serving.wait_for("holds")
        serving.signal(signal.SIGTERM)
        assert serving.wait() == -signal.SIGTERM
    async with Rota(url).client() as client:
        assert (await client.run(line.split()[1])).state is State.QUEUED
