"""The client: opened when needed, per event loop, and gone with it."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rota import Rota, RunCancelled, RunHandle, RunNotFound, State
from rota.client.fleet import Attendance
from rota.domain.lifecycle import Succeeded, settlement_of
from rota.store import ClaimRequest, Page, RunQuery
from rota.stores.memory.store import MemoryStore

SUBMIT_ONLY = """
import asyncio
from rota import Rota

app = Rota({url!r})

@app.task
async def greet(name: str) -> str:
    return name

async def main() -> None:
    await greet.submit("Ada")

asyncio.run(main())
asyncio.run(main())  # another loop, another connection
"""


SLOW = re.compile(r"Executing <.*> took [\d.]+ seconds")
"""What asyncio says in its debug mode of a machine that is busy."""


def test_a_program_that_only_submits_needs_no_ceremony(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/rota.db"
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", SUBMIT_ONLY.format(url=url)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    shown = [line for line in done.stderr.splitlines() if not SLOW.match(line)]
    assert (done.returncode, shown) == (0, [])

    async def states() -> list[State]:
        from rota.store import RunQuery

        app = Rota(url)
        page = await (await app.client().store()).runs(RunQuery())
        await app.stop()
        return [run.state for run in page.runs]

    assert asyncio.run(states()) == [State.QUEUED, State.QUEUED]


async def test_many_waiters_share_one_reader(tmp_path: Path) -> None:
    app = Rota(f"sqlite:///{tmp_path}/rota.db", concurrency=50)

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    async with app:
        handles = await app.submit_many([double.bind(n) for n in range(200)])
        assert await asyncio.gather(*(h.result(timeout=30) for h in handles)) == [2 * n for n in range(200)]


async def test_waiting_can_time_out_and_the_run_goes_on() -> None:
    app = Rota("memory://")

    @app.task
    async def later() -> str:
        return "done"

    run = await later.submit()
    with pytest.raises(TimeoutError) as caught:
        await run.result(timeout=0.01)
    assert str(caught.value) == (
        f"later {run.id} has not ended within 0.01 s: it is queued and was due 0 s ago; "
        "no worker is alive: start one with `rota worker`"
    )
    assert caught.value.__suppress_context__, "one traceback, not those of the wait as well"
    async with app:
        assert await run.result(timeout=10) == "done"


async def test_waiting_in_vain_says_where_the_run_stands() -> None:
    app = Rota("memory://")
    began, end = asyncio.Event(), asyncio.Event()

    @app.task
    async def slow() -> None:
        began.set()
        await end.wait()

    async def late(run: RunHandle[None]) -> str:
        with pytest.raises(TimeoutError) as caught:
            await run.result(timeout=0)
        return str(caught.value).partition(": ")[2]

    delayed, paused = await slow.using(delay=60).submit(), await slow.submit()
    await paused.pause("later")
    assert await late(delayed) == "it is queued and due in 60 s"
    assert await late(paused) == "it is paused (later)"
    async with app:
        running = await slow.submit()
        await began.wait()
        assert (await late(running)).startswith("it is running, for 0 s now, on worker ")
        end.set()
        await running.result(timeout=10)


async def test_a_result_that_comes_in_the_last_moment_counts() -> None:
    app = Rota("memory://")

    @app.task
    async def quick() -> str:
        return "done"

    async with app:
        run = await quick.submit()
        assert await run.result(timeout=10) == "done"
        assert await run.result(timeout=0) == "done"


async def test_who_awaits_a_run_that_nobody_does_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rota.client.session.PATIENCE", 0.0)
    app = Rota("memory://")

    @app.task
    async def lonely() -> None: ...

    first, second = await lonely.submit(), await lonely.submit()
    for run in (first, second):
        with pytest.raises(TimeoutError):
            await run.result(timeout=0.05)
    lines = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert lines == [f"lonely {first.id} is awaited, but no worker is alive: start one with `rota worker`"]
    await app.stop()


async def test_a_forgotten_run_is_not_waited_for() -> None:
    app = Rota("memory://")
    with pytest.raises(RunNotFound, match="no run nowhere"):
        await app.handle("nowhere").result(timeout=10)
    with pytest.raises(RunNotFound):
        await app.handle("nowhere").refresh()


async def test_a_result_in_another_process_wakes_the_waiter(tmp_path: Path) -> None:
    """Two backends on one file are strangers, as two processes are: only the file tells them."""
    url = f"sqlite:///{tmp_path}/rota.db"
    here, there = Rota(url), Rota(url)

    @here.task(name="greet")
    async def greet(name: str) -> str:
        return "not here"

    @there.task(name="greet")
    async def greet_there(name: str) -> str:
        return f"hello {name}"

    async with there:
        run = await greet.submit("Ada")
        assert await run.result(timeout=4) == "hello Ada", "the worker's poll comes after 5 s only"
    await here.stop()


async def test_a_cancel_from_another_process_reaches_the_handler(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/rota.db"
    here, there = Rota(url), Rota(url)
    started = asyncio.Event()

    @there.task
    async def endless() -> None:
        started.set()
        await asyncio.Event().wait()

    async with there:
        run = await endless.submit()
        await started.wait()
        assert await here.handle(run.id).cancel()
        with pytest.raises(RunCancelled):
            await run.result(timeout=8)  # the next renewal by itself comes after 10 s
    await here.stop()


async def test_a_hint_about_one_run_reads_that_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands may be waited for, and each ending is a hint."""
    app, read, asked = Rota("memory://"), MemoryStore.runs, list[list[str]]()

    async def recorded(store: MemoryStore, query: RunQuery) -> Page:
        asked.append(list(query.ids or ()))
        return await read(store, query)

    monkeypatch.setattr(MemoryStore, "runs", recorded)

    @app.task
    async def quick(n: int) -> int:
        return n

    async with app.client() as client:
        handles = await app.submit_many([quick.bind(n) for n in range(50)])
        waits = [asyncio.create_task(client.ended(handle.id)) for handle in handles]
        while not any(len(ids) == 50 for ids in asked):  # noqa: ASYNC110
            await asyncio.sleep(0)
        store = await client.store()
        (run,) = (await store.claim(ClaimRequest("ada", 1, ["quick"], 1, 30))).runs
        await store.settle([settlement_of(run, Succeeded(b"0"))])
        done, left = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        assert [task.result().id for task in done] == [run.id]
        assert [run.id] in asked
        for task in left:
            task.cancel()
        await asyncio.wait(left)


async def test_a_missing_worker_is_told_once_however_long_one_waits(caplog: pytest.LogCaptureFixture) -> None:
    app = Rota("memory://")

    @app.task
    async def lonely() -> None: ...

    run = await (await lonely.submit()).refresh()
    store, attendance = await app.client().store(), Attendance()
    for clock in (0.0, 5.0, 60.0, 600.0):
        await attendance.look(store, [run], run.due_at, clock)
    assert len(caplog.records) == 1
    await app.stop()
