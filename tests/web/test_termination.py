"""A SIGTERM that no server handles: the engine gives its runs back, and then the process dies of the signal."""

import asyncio
import signal
from pathlib import Path

import pytest

from rota import Rota
from rota.app.servers import heard_first
from rota.domain.run import State
from tests.processes import Process

LINGER = """
import asyncio, signal, sys

from rota import Rota
from rota.web.lifespans import working

app = Rota(sys.argv[1])


@app.task
async def linger() -> None:
    print("holds", flush=True)
    await asyncio.Event().wait()
"""

PROGRAM = (
    LINGER
    + """

async def serve() -> None:
    async with working(app):
        print("run", (await linger.submit()).id, flush=True)
        await asyncio.Event().wait()


asyncio.run(serve())
"""
)

HANDLED = (
    LINGER
    + """

async def serve() -> None:
    told, loop = asyncio.Event(), asyncio.get_running_loop()
    if sys.argv[2] == "loop":
        loop.add_signal_handler(signal.SIGTERM, told.set)
    else:
        signal.signal(signal.SIGTERM, lambda number, frame: loop.call_soon_threadsafe(told.set))
    before = signal.getsignal(signal.SIGTERM)
    async with working(app):
        first = await linger.submit()
        await told.wait()
        while (await first.refresh()).state != "queued":
            await asyncio.sleep(0.01)
        print("runs", first.id, (await linger.submit()).id, flush=True)
    assert signal.getsignal(signal.SIGTERM) is before
    print("served", flush=True)


asyncio.run(serve())
"""
)


@pytest.mark.parametrize("way", ["loop", "signal"])
async def test_a_server_that_handles_the_signal_lets_the_engine_end_first_and_requests_go_on(
    way: str, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/rota.db"
    with Process("-c", HANDLED, url, way, env={"ROTA_GRACE": "0.1"}) as serving:
        serving.wait_for("holds")
        serving.signal(signal.SIGTERM)
        assert serving.wait() == 0, serving.output
        assert serving.lines[-1] == "served\n"
        (line,) = serving.wait_for("runs ")
    async with Rota(url).client() as client:
        first, second = [await client.run(id) for id in line.split()[1:]]
    assert [run.state for run in (first, second)] == [State.QUEUED] * 2
    assert (first.fence, second.fence) == (1, 0), "nothing is claimed after the signal"


async def test_a_process_that_is_terminated_gives_its_runs_back_before_it_dies(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/rota.db"
    with Process("-c", PROGRAM, url, env={"ROTA_GRACE": "0.1"}) as serving:
        (line,) = serving.wait_for("run ")
        serving.wait_for("holds")
        serving.signal(signal.SIGTERM)
        assert serving.wait() == -signal.SIGTERM
    async with Rota(url).client() as client:
        assert (await client.run(line.split()[1])).state is State.QUEUED


def test_a_server_gets_its_signal_even_if_nothing_can_begin_to_end() -> None:
    """Another library has put its handler before ours and keeps ours as the next one, also when our loop is closed."""
    got, closed = list[int](), asyncio.new_event_loop()
    closed.close()
    before = signal.signal(signal.SIGTERM, lambda number, frame: got.append(number))
    try:
        with heard_first(lambda: closed.call_soon_threadsafe(print)):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert got == [signal.SIGTERM]
