"""What hooks hear: how a call went, and what ended without a call."""

import asyncio
import time

from rota import Activity, Context, Event, Period, Retry, Rota
from rota.app.core import core_of
from rota.engine.events import Announcer
from rota.engine.janitor import Janitor
from rota.store import Retention
from rota.stores.memory import MemoryBackend


class Heard:
    """Events as they come."""

    def __init__(self, app: Rota, *names: str) -> None:
        self.events: list[Event] = []
        self._new = asyncio.Event()
        for name in names:
            app.on(name, self._hear)  # type: ignore[arg-type]

    async def _hear(self, event: Event) -> None:
        self.events.append(event)
        self._new.set()

    async def wait(self, count: int) -> list[Event]:
        async with asyncio.timeout(20):
            while len(self.events) < count:
                self._new.clear()
                await self._new.wait()
        return self.events


async def test_an_event_says_how_long_a_call_took_and_which_it_was() -> None:
    app = Rota("memory://")
    heard = Heard(app, "started", "retried", "succeeded")
    before = time.time()

    @app.task(retry=Retry(1, delay=0), key="{n}")
    async def work(ctx: Context, n: int) -> None:
        if ctx.attempt == 1:
            raise ValueError("not yet")

    async with app:
        await (await work.submit(7)).result(timeout=10)
        events = await heard.wait(4)
        assert [(event.name, event.attempt) for event in events] == [
            ("started", 1),
            ("retried", 1),
            ("started", 2),
            ("succeeded", 2),
        ]
        last = events[-1]
        assert last.seconds is not None
        assert last.seconds >= 0
        assert last.ended_at is not None
        assert before - 1 < last.ended_at < time.time() + 1
        assert (last.worker, last.origin, last.key) == (core_of(app).engine.name, "submit", "7")
        assert events[0].seconds is None


async def test_an_event_says_that_a_touch_made_the_run() -> None:
    app = Rota("memory://")
    heard = Heard(app, "succeeded")

    @app.task(activity=Activity(after=0))
    async def sync_user() -> None: ...

    async with app:
        assert await sync_user.touch()
        assert await app.touch("sync_user")
        assert {event.origin for event in await heard.wait(1)} == {"touch"}


async def test_the_worker_that_finds_a_run_too_late_tells_its_hooks() -> None:
    backend = MemoryBackend()
    app, other = Rota(backend, concurrency=1, lease=0.6), Rota(backend)
    heard, elsewhere = Heard(app, "cancelled"), Heard(other, "cancelled")

    @app.task
    async def hold() -> None:
        await asyncio.Event().wait()

    @app.task
    async def soon() -> None: ...

    await hold.submit()
    late = await soon.using(expires=0, delay=0.05).submit()
    await app.start()
    (event,) = await heard.wait(1)
    assert (event.run and event.run.id, event.reason, event.attempt) == (late.id, "expired", 0)
    assert event.ended_at == (await late.refresh()).finished_at
    await app.stop(grace=0)
    assert elsewhere.events == []


async def test_a_sweep_tells_of_what_it_finds_too_late() -> None:
    app = Rota("memory://")
    heard = Heard(app, "cancelled")

    @app.task
    async def soon() -> None: ...

    late = await soon.using(expires=0).submit()
    store = await app.client().store()
    janitor = Janitor(store, 3600, Retention(), Announcer(store, core_of(app).hooks))
    sweeping = asyncio.create_task(janitor.run())
    (event,) = await heard.wait(1)
    assert (event.run and event.run.id, event.reason) == (late.id, "expired")
    sweeping.cancel()


async def test_whoever_cancels_a_run_in_the_queue_tells_its_hooks_once() -> None:
    app = Rota("memory://")
    heard = Heard(app, "cancelled")
    begun = asyncio.Event()

    @app.task
    async def work(n: int) -> None:
        begun.set()
        await asyncio.Event().wait()

    waiting = await work.submit(1)
    await waiting.cancel("not wanted")
    await waiting.cancel("again")
    (event,) = await heard.wait(1)
    assert (event.reason, event.note, event.run and event.run.id) == ("cancelled", "not wanted", waiting.id)

    await work.submit(2)
    await work.submit(3)
    assert await app.clear("work") == 2
    assert [event.reason for event in (await heard.wait(3))[1:]] == ["dropped", "dropped"]

    async with app:
        running = await work.submit(4)
        await begun.wait()
        await running.cancel()
        last = (await heard.wait(4))[-1]
        assert (last.run and last.run.id, last.worker) == (running.id, core_of(app).engine.name)
        await app.client().ended_here([running.id])  # as if its worker had been faster than the reply to the cancel
    assert len(heard.events) == 4


async def test_a_plan_tells_of_what_it_takes_out() -> None:
    app = Rota("memory://")
    heard = Heard(app, "cancelled")

    @app.task
    async def watch(n: int) -> None: ...

    soon = time.time() + 3600
    for items in ([1, 2], [2]):
        await app.plan(
            "races", items, call=lambda n: watch.bind(n), at=lambda n: soon, key=lambda n: n, period="2026-11-16"
        )
    (event,) = await heard.wait(1)
    assert (event.origin, event.note) == ("plan", "no longer in the plan")


async def test_the_worker_of_a_failed_step_tells_of_what_that_stopped() -> None:
    app = Rota("memory://")
    heard = Heard(app, "cancelled")

    @app.task
    async def first() -> None:
        raise ValueError("no program today")

    @app.task
    async def second() -> None: ...

    @app.task
    async def third() -> None: ...

    day = app.flow("day", once=Period.day(), on_failure="stop")
    one = day.step(first)
    two = day.step(second, after=[one])
    day.step(third, after=[two])
    async with app:
        await day.start("2026-11-16")
        events = await heard.wait(2)
        assert {(event.task, event.reason, event.origin) for event in events} == {
            ("second", "stopped", "flow"),
            ("third", "stopped", "flow"),
        }
