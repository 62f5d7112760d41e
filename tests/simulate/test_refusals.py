"""What cannot be simulated is said, with the name of the task that does it."""

import asyncio
import socket
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from rota import Context, Retry, Rota, Snooze
from rota.domain.event import Event
from rota.errors import NotSimulated
from rota.testing import Simulation, simulate

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = START + timedelta(hours=1)


async def by_thread() -> None:
    await asyncio.to_thread(len, "abc")


async def by_name() -> None:
    await asyncio.open_connection("localhost", 9)


async def by_address() -> None:
    await asyncio.open_connection("127.0.0.1", 9)


async def by_socket() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        await asyncio.get_running_loop().sock_recv(ours, 1)


async def by_subprocess() -> None:
    await asyncio.create_subprocess_exec(sys.executable, "-V")


async def by_foreign_thread() -> None:
    loop, answered = asyncio.get_running_loop(), asyncio.Event()
    thread = threading.Thread(target=loop.call_soon_threadsafe, args=(answered.set,))
    thread.start()
    thread.join()
    await answered.wait()
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    ("wait", "what"),
    [
        (by_thread, "a thread"),
        (by_name, "the network"),
        (by_address, "the network"),
        (by_socket, "a socket"),
        (by_subprocess, "a subprocess"),
        (by_foreign_thread, "a thread"),
    ],
)
def test_a_handler_that_waits_for_the_real_world_is_named(wait: Callable[[], Awaitable[None]], what: str) -> None:
    app = Rota("memory://")

    @app.task(retry=Retry(3))
    async def innocent() -> None:
        await asyncio.sleep(1)

    @app.task(retry=Retry(3), timeout=60)
    async def fetch() -> None:
        await wait()

    async def scenario(_: Simulation) -> None:
        await innocent.submit()
        await asyncio.sleep(10)
        await fetch.submit()

    with pytest.raises(NotSimulated, match=f"task fetch waits for {what}"):
        simulate(app, START, HOUR, scenario=scenario)


def test_a_plain_function_that_would_block_is_named() -> None:
    app = Rota("memory://")

    @app.task(max_pending=1)
    async def full() -> None: ...

    @app.task
    def pusher() -> None:
        full.submit_sync()

    async def scenario(_: Simulation) -> None:
        await full.using(delay=60).submit()
        await pusher.submit()

    simulation = simulate(app, START, HOUR, scenario=scenario)
    (run,) = simulation.of(pusher)
    assert run.error is not None
    assert "task pusher blocks" in run.error.message


def test_a_hook_and_the_scenario_are_named_too() -> None:
    app = Rota("memory://")

    @app.task
    async def call() -> None: ...

    async def notify(_: Event) -> None:
        await by_thread()

    async def submitting(_: Simulation) -> None:
        await call.submit()

    async def waiting(_: Simulation) -> None:
        await by_thread()

    with pytest.raises(NotSimulated, match="the scenario waits for a thread"):
        simulate(app, START, HOUR, scenario=waiting)
    app.on("succeeded", notify)
    with pytest.raises(NotSimulated, match=r"the hook .*notify waits for a thread"):
        simulate(app, START, HOUR, scenario=submitting)


def test_resources_that_need_the_real_world_are_named_and_can_be_stood_in_for() -> None:
    closed: list[str] = []

    @asynccontextmanager
    async def real() -> AsyncGenerator[str]:
        await by_name()
        yield "real"

    @asynccontextmanager
    async def stand_in() -> AsyncGenerator[str]:
        yield "stand-in"
        closed.append("stand-in")

    app = Rota("memory://", resources=real)

    @app.task
    async def call(ctx: Context) -> str:
        return str(ctx.resources)

    async def scenario(_: Simulation) -> None:
        assert await (await call.submit()).result() == "stand-in"

    with pytest.raises(NotSimulated, match="resources= waits for the network"):
        simulate(app, START, HOUR, scenario=scenario)
    simulate(app, START, HOUR, scenario=scenario, resources=stand_in)
    assert closed == ["stand-in"]


def test_a_task_that_never_lets_time_pass_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.testing.virtual_loop.STANDSTILL", 5000)
    app = Rota("memory://")

    @app.task
    async def again() -> None:
        raise Snooze(0)

    async def scenario(_: Simulation) -> None:
        await again.submit()

    with pytest.raises(NotSimulated, match="time stands still"):
        simulate(app, START, HOUR, scenario=scenario)
