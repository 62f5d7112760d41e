"""app.events: what happens in a store, for whoever asks, in any process."""

import asyncio
from itertools import pairwise

import pytest

from rota import Event, EventStream, InvalidOptions, Rota, State
from rota.store import SUBSCRIBED
from rota.stores.memory import MemoryBackend
from storekit.faults import FaultyBackend


async def take(stream: EventStream, number: int) -> list[Event]:
    """Return the next events; a stream that brings fewer fails."""
    async with asyncio.timeout(20):
        return [await anext(stream) for _ in range(number)]


def app_on(backend: MemoryBackend | FaultyBackend) -> Rota:
    app = Rota(backend)

    @app.task
    async def greet(name: str) -> str:
        return f"hello {name}"

    @app.task
    async def wave(name: str) -> None: ...

    return app


async def test_a_run_of_another_app_is_followed_to_its_end() -> None:
    backend = MemoryBackend()
    watching, working = Rota(backend), app_on(backend)
    async with watching.client():
        events = await watching.events(of="runs").start()
        async with working:
            run = await working.tasks["greet"].submit("Ada")
            await run.result(timeout=10)
        found = await take(events, 3)
    assert [(event.name, event.id, event.task) for event in found] == [
        (name, run.id, "greet") for name in ("queued", "started", "succeeded")
    ]
    assert found[-1].state == State.SUCCEEDED
    assert all(one.at is not None and other.at is not None and one.at <= other.at for one, other in pairwise(found))


async def test_a_stream_goes_on_after_a_cursor() -> None:
    app = app_on(MemoryBackend())
    async with app.client():
        events = await app.events().start()
        runs = [await app.tasks["greet"].submit(str(n)) for n in range(3)]
        first, *others = await take(events, 3)
        again = app.events(cursor=first.cursor)
        assert await take(again, 2) == others
        assert again.cursor == events.cursor
        assert [event.id for event in (first, *others)] == [run.id for run in runs]


async def test_a_stream_brings_only_what_it_was_asked_for_and_its_cursor_moves_all_the_same() -> None:
    app = app_on(MemoryBackend())
    async with app.client():
        everything, some, tasks = [
            await stream.start() for stream in (app.events(), app.events(task="wave"), app.events(of=["tasks"]))
        ]
        await app.tasks["greet"].submit("Ada")
        wave = await app.tasks["wave"].submit("Ada")
        await app.tasks["greet"].submit("Ada")
        await app.pause("greet")
        found = await take(everything, 4)
        assert [event.id for event in await take(some, 1)] == [wave.id]
        assert [(event.name, event.id) for event in await take(tasks, 1)] == [("paused", "greet")]
        assert tasks.cursor == everything.cursor == found[-1].cursor


async def test_a_stream_wakes_when_something_happens() -> None:
    """The memory store is asked again after five seconds without a hint."""
    app = app_on(MemoryBackend())
    async with app.client():
        events = await app.events().start()
        waiting = asyncio.create_task(anext(events))
        await asyncio.wait([waiting], timeout=0.01)
        run = await app.tasks["greet"].submit("Ada")
        async with asyncio.timeout(4):
            assert (await waiting).id == run.id


async def test_a_stream_without_hints_looks_from_time_to_time() -> None:
    backend = FaultyBackend(MemoryBackend(), mute=True)
    app = app_on(backend)
    async with app.client():
        events = await app.events().start()
        waiting = asyncio.create_task(anext(events))
        await asyncio.wait([waiting], timeout=0.01)
        run = await app.tasks["greet"].submit("Ada")
        async with asyncio.timeout(20):
            assert (await waiting).id == run.id


@pytest.mark.parametrize("fault", ["request lost", "reply lost"])
async def test_a_stream_survives_a_store_that_was_away(fault: str, caplog: pytest.LogCaptureFixture) -> None:
    backend = FaultyBackend(MemoryBackend())
    app = app_on(backend)
    async with app.client():
        backend.fail("events", "reply lost" if fault == "reply lost" else "request lost", times=2)
        events = await app.events().start()
        runs = [await app.tasks["greet"].submit(str(n)) for n in range(2)]
        backend.fail("events", "reply lost" if fault == "reply lost" else "request lost", times=1)
        assert [event.id for event in await take(events, 2)] == [run.id for run in runs]


async def test_a_put_whose_reply_was_lost_is_one_event() -> None:
    backend = FaultyBackend(MemoryBackend())
    app = app_on(backend)
    async with app.client():
        events = await app.events().start()
        backend.fail("put", "reply lost")
        run = await app.tasks["greet"].submit("Ada")
        await app.pause("greet")
        assert [event.id for event in await take(events, 2)] == [run.id, "greet"]


async def test_whoever_was_away_for_long_hears_of_a_gap() -> None:
    backend = MemoryBackend()
    app = app_on(backend)
    async with app.client():
        events = await app.events(task="greet").start()
        await app.tasks["greet"].submit("Ada")
        backend.skew += SUBSCRIBED + 1
        assert [event.name for event in await take(events, 1)] == ["gap"]
        run = await app.tasks["greet"].submit("Bob")
        assert [event.id for event in await take(events, 1)] == [run.id]


async def test_a_stream_of_nothing_that_exists_is_refused() -> None:
    app = app_on(MemoryBackend())
    with pytest.raises(InvalidOptions, match="no events of 'jobs'; there are those of runs, tasks, schedules"):
        app.events(of="jobs")
    async with app.client():
        with pytest.raises(InvalidOptions, match="cursor 'x' is not where a list of events ended"):
            await anext(app.events(cursor="x"))
