"""simulate: the real engine in virtual time. Days take moments, and the same seed gives the same history."""

import asyncio
import inspect
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from msgspec.structs import replace

from rota.app.app import Rota
from rota.app.core import core_of
from rota.client.client import attach
from rota.client.portal import stand_in
from rota.client.session import Session
from rota.domain.event import Event
from rota.domain.ids import uuid7
from rota.domain.policy import FAR
from rota.domain.run import DIGITS, Run
from rota.engine.gathered import in_virtual_time
from rota.engine.handler import Handler
from rota.engine.hooks import Hook
from rota.engine.supervisor import Resources, Supervisor
from rota.engine.world import World
from rota.errors import InvalidOptions, NotSimulated, UsageError
from rota.stores.memory import MemoryBackend
from rota.task import Task, id_source
from rota.testing.virtual_loop import VirtualLoop, doing, owner
from rota.testing.virtual_store import VirtualBackend

log = logging.getLogger("rota")

T = TypeVar("T")
Scenario = Callable[["Simulation"], Awaitable[object]]
AnyTask = Task[..., ..., Any, Any]
SWEEP = 6 * 3600.0
"""Seconds between sweeps, which only keep the store small in a simulation."""
INSTANT = 10.0**-DIGITS


def simulate(
    app: Rota,
    start: datetime,
    until: datetime,
    *,
    seed: int = 0,
    scenario: Scenario | None = None,
    workers: int = 1,
    resources: Resources | None = None,
) -> "Simulation":
    """Run the app's tasks from `start` until just before `until`, in virtual time, in a store of its own.

    `scenario` is an async function that is given the simulation: it submits, sleeps (in virtual time), crashes
    workers. What it or a handler submits goes to the simulated store; the app's own store is never touched. Plain
    functions and process tasks are called on the loop and take no time. A handler that waits for the real world is
    an error that names its task. Python's `random` is seeded too, and put back afterwards.
    """
    for name, moment in (("start", start), ("until", until)):
        if moment.tzinfo is None:
            raise InvalidOptions(f"{name}={moment!r} has no time zone; use e.g. datetime(2026, 1, 1, tzinfo=UTC)")
    if until.timestamp() <= start.timestamp():
        raise InvalidOptions(f"until={until!r} is not after start={start!r}")
    if workers < 1:
        raise InvalidOptions(f"workers={workers!r}: at least 1")
    _refuse_inside_a_loop()
    simulation = Simulation(app, start, until, seed, resources)
    chance = random.getstate()
    random.seed(seed)
    try:
        copy_context().run(simulation.run, scenario, workers)
    finally:
        random.setstate(chance)
    return simulation


class Simulation:
    """A simulation while it runs, and its history afterwards. Instants are datetimes in the zone of `start`."""

    def __init__(
        self, app: Rota, start: datetime, until: datetime, seed: int = 0, resources: Resources | None = None
    ) -> None:
        self.app = app
        self.start = start
        self.until = until
        self._start = start.timestamp()
        self.random = random.Random(f"{seed} scenario")
        """A seeded random generator for scenarios."""
        self._resources = resources
        self._ids = random.Random(f"{seed} ids")
        self._loop = VirtualLoop()
        self._began = self._loop.time()
        tuning = core_of(app).tuning
        self._tuning = replace(tuning, rescue=FAR, sweep=SWEEP)
        pause = min(MemoryBackend.poll, tuning.rescue_every)
        self._backend = VirtualBackend(self._wall, pause)
        self._hooks = core_of(app).hooks.adapted(self._adapt_hook)
        self._world = World(
            monotonic=self._loop.time,
            wall=self._wall,
            stopwatch=self._loop.time,
            threads=False,
            adapt=self._adapt_handler,
        )
        self._engines: dict[str, Supervisor] = {}
        self._hired = 0
        self._calls: Counter[str] = Counter()
        self._starts: list[tuple[str, datetime]] = []
        self._graves: set[asyncio.Task[Any]] = set()  # kept: Python runs the clean-up of a collected task
        self._problem: BaseException | None = None
        self._over: list[Run] | None = None

    # -- reading --------------------------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        if self._over is not None:
            return self.until
        passed = timedelta(seconds=round(self._loop.time() - self._began, DIGITS))
        return (self.start.astimezone(UTC) + passed).astimezone(self.start.tzinfo)

    @property
    def runs(self) -> list[Run]:
        """All runs, in the order of their arrival; the simulated store forgets none."""
        return self._backend.store.history() if self._over is None else list(self._over)

    def of(self, task: AnyTask | str) -> list[Run]:
        """Return the runs of one task."""
        name = _name(task)
        return [run for run in self.runs if run.task == name]

    def starts(self, task: AnyTask | str | None = None) -> list[datetime]:
        """Return the instants at which handlers were called: of one task, or of all tasks."""
        return [at for name, at in self._starts if task is None or name == _name(task)]

    @property
    def workers(self) -> list[str]:
        """The workers that are alive, the oldest first."""
        return list(self._engines)

    @property
    def claims(self) -> int:
        """How often workers claimed."""
        return self._backend.store.claims

    @property
    def leaps(self) -> int:
        """How often time jumped, which is the cost of a simulation in which nothing happens."""
        return self._loop.leaps

    # -- disturbing ------------------------------------------------------------------------------------------------

    def crash(self, worker: str | None = None, restart: float | None = 0.0) -> str:
        """Cut a worker off in the middle of its work: nothing of the worker runs any more, and its leases lapse.

        Unless one is named, it is the oldest that has a run in hand, else the oldest. `restart` seconds later a new
        one starts in its place; None for never. Gives the name of the crashed worker.
        """
        if self._over is not None:
            raise UsageError("the simulation is over")
        if worker is None:
            busy = [name for name, engine in self._engines.items() if engine.running]
            worker = next(iter(busy or self._engines), None)
        if worker is None or worker not in self._engines:
            raise UsageError(f"no worker {worker or ''} is alive; there are: {', '.join(self._engines) or 'none'}")
        del self._engines[worker]
        self._graves.update(self._loop.cut_off(worker))
        self._backend.store.gone(worker)
        log.info("worker %s crashes", worker)
        if restart is not None:
            self._loop.call_later(restart, self._rehire, context=self._root.copy())
        return worker

    # -- running ---------------------------------------------------------------------------------------------------

    def run(self, scenario: Scenario | None, workers: int) -> None:
        """Run the simulation; `simulate` calls this once."""
        id_source.set(self._new_id)
        self._root: Context = copy_context()
        self._loop.alarm, self._loop.thread_answered = self._finish, self._thread_answered
        attach(self.app.client(), self._loop, Session(self._backend, self._hooks.refused, FAR, self._world))
        try:
            self._loop.run_until_complete(self._live(scenario, workers))
        finally:
            self._loop.close()
        if self._problem is not None:
            raise self._problem

    async def _live(self, scenario: Scenario | None, workers: int) -> None:
        self._end = self._loop.create_future()
        lasts = self.until.timestamp() - self._start - INSTANT
        self._loop.call_at(self._began + lasts, self._finish)
        await self.app.client().news(0)  # now, so that the watcher of results belongs to no worker
        try:
            for _ in range(workers):
                await self._hire()
            if scenario is not None:
                self._playing = self._loop.create_task(self._play(scenario))
            await self._end
        finally:
            self._over = self._backend.store.history()
            await self._put_away()

    def _finish(self, problem: BaseException | None = None) -> None:
        self._problem = self._problem or problem
        if not self._end.done():
            self._end.set_result(None)

    async def _hire(self) -> None:
        """Start one more worker, in a context that marks everything the worker starts as its own."""
        self._hired += 1
        name = f"worker-{self._hired}"
        engine = core_of(self.app).build_engine(
            name, self._backend, self._tuning, self._hooks, self._resources, world=self._world
        )
        await core_of(self.app).declare_schedules()
        await core_of(self.app).begin_schedules()
        context = self._root.copy()
        context.run(owner.set, name)
        context.run(doing.set, "resources=")
        await self._loop.create_task(engine.start(), context=context)
        self._engines[name] = engine

    def _rehire(self) -> None:
        def started(hired: asyncio.Task[None]) -> None:
            if not hired.cancelled() and isinstance(error := hired.exception(), Exception):
                self._finish(error)

        self._loop.create_task(self._hire()).add_done_callback(started)

    async def _play(self, scenario: Scenario) -> None:
        doing.set("the scenario")
        try:
            await scenario(self)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # `pytest.fail` raises an error that is no Exception
            self._finish(error)

    async def _put_away(self) -> None:
        """Close everything after the end of the simulation, and report no errors."""
        self._loop.alarm, self._loop.thread_answered = lambda error: None, lambda: None
        self._loop.set_exception_handler(lambda loop, problem: None)
        await asyncio.gather(*(engine.stop(0) for engine in self._engines.values()), return_exceptions=True)
        await self.app.client().close()
        self._graves |= self._loop.stranded()
        rest = asyncio.all_tasks() - {asyncio.current_task()} - self._graves
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest, timeout=60)
        if not self._graves:  # the generators of workers that were cut off must not run
            await self._loop.shutdown_asyncgens()

    def _thread_answered(self) -> None:
        calls = " or ".join(f"task {name}" for name, n in sorted(self._calls.items()) if n) or "the scenario"
        self._finish(NotSimulated(f"{calls} waits for a thread: real waiting has no place in virtual time"))

    # -- the simulated world ---------------------------------------------------------------------------------------

    def _wall(self) -> float:
        return self._start + self._loop.time() - self._began

    def _new_id(self) -> str:
        return uuid7(int(self._wall() * 1000), self._ids.randbytes(10))

    def _adapt_handler(self, handler: Handler) -> Handler:
        """Return the handler as a coroutine on the virtual loop; a plain function takes no time there."""

        async def call(*args: Any, **kwargs: Any) -> Any:
            doing.set(f"task {handler.name}")
            self._starts.append((handler.name, self.now))
            self._calls[handler.name] += 1
            try:
                return await _called(handler.fn, *args, **kwargs)
            finally:
                self._calls[handler.name] -= 1

        return replace(handler, fn=call, executor="loop")

    def _adapt_hook(self, hook: Hook) -> Hook:
        async def call(event: Event) -> None:
            if self._over is None:
                doing.set(f"the hook {getattr(hook, '__qualname__', hook)}")
                await _called(hook, event)

        return call


async def _called(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call `fn`. A plain function runs here at once, and `portal.call` inside it works at once too."""
    if inspect.iscoroutinefunction(fn):
        return await fn(*args, **kwargs)
    token, virtual = stand_in.set(_at_once), in_virtual_time.set(True)
    try:
        return fn(*args, **kwargs)
    finally:
        stand_in.reset(token)
        in_virtual_time.reset(virtual)


def _at_once(work: Callable[[], Awaitable[T]]) -> T:
    """Return the result of async work that never waits, like a call of the memory store."""
    steps = work().__await__()
    try:
        next(steps)
    except StopIteration as done:
        result: T = done.value
        return result
    steps.close()
    raise NotSimulated(
        f"{doing.get()} blocks until something else happens; in a simulation a plain function cannot wait: "
        "make it async, or do not wait there"
    )


def _name(task: AnyTask | str) -> str:
    return task if isinstance(task, str) else task.name


def _refuse_inside_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError("simulate() runs an event loop of its own: call it from a plain function, not from an async one")
