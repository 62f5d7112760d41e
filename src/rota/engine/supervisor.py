"""The supervisor: starts the parts in order, watches every loop, and stops them so that nothing is lost."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

from msgspec import Struct

from rota.domain.backoff import Backoff
from rota.domain.plain import plural
from rota.domain.spec import TaskSpec
from rota.domain.tuning import Tuning
from rota.engine.calls import Calls
from rota.engine.events import Announcer
from rota.engine.handler import Handler
from rota.engine.heart import Heart, LoopHeart
from rota.engine.hooks import Hooks
from rota.engine.janitor import Janitor
from rota.engine.logs import worker_here
from rota.engine.offers import Offers
from rota.engine.reports import Reports
from rota.engine.runner import Runner
from rota.engine.seats import Seats
from rota.engine.settler import Settler
from rota.engine.slate import Line, RenewerAt, Slate
from rota.engine.steps import FlowCode, Steps
from rota.engine.ticks import Ticks
from rota.engine.watchdog import Watchdog
from rota.engine.worker import BACKLOG, Worker
from rota.engine.world import REAL, World
from rota.errors import StoreError
from rota.store import Backend, Store

log = logging.getLogger("rota")

FIRST_PAUSE, LAST_PAUSE = 0.5, 2.0
"""Seconds before a loop that failed starts again; the last is short, so that work goes on soon after a fault ends."""
STOP_CLAIMING = 5.0
"""Seconds for a claim under way to come back; what it claimed after that comes back when its lease lapses."""
DECLARE_AGAIN = 30.0
"""Seconds after which the schedules of an app are declared again, where the store refused them."""
CALM = 60.0
"""A loop that ran this long without an accident starts over with short pauses."""


Resources = Callable[[], AbstractAsyncContextManager[Any]]


class Loop(Struct):
    """One watched loop, as it stands."""

    name: str
    task: asyncio.Task[None] | None = None
    restarts: int = 0
    error: str | None = None

    @property
    def alive(self) -> bool:
        return self.task is not None and not self.task.done()


class Supervisor:
    """One running engine on one event loop."""

    def __init__(
        self,
        name: str,
        backend: Backend,
        handlers: Mapping[str, Handler],
        specs: Sequence[TaskSpec],
        tuning: Tuning,
        hooks: Hooks,
        resources: Resources | None = None,
        world: World = REAL,
        flows: FlowCode = FlowCode(),  # noqa: B008
        renewer: RenewerAt | None = None,
    ) -> None:
        self.name = name
        self.loops: list[Loop] = []
        self._backend = backend
        self._handlers = {name: world.adapt(handler) for name, handler in handlers.items()}
        self._specs = specs
        self._tuning = tuning
        self._hooks = hooks
        self._resources = resources
        self._world = world
        self._flows = flows
        self._stack = AsyncExitStack()
        self._renewer = renewer
        self._stopped: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._late: Callable[[], Awaitable[object]] | None = None
        self.undeclared: set[str] = set()
        """Schedules that the code of the app no longer declares."""
        self._started_at = 0.0
        self._watchdog: Watchdog | None = None
        self.ended = False  # stopped, whatever became of its parts, or given up

    def declare_late(self, declare: Callable[[], Awaitable[object]]) -> None:
        """Once started, declare what the store refused for now, and try until it takes it."""
        self._late = declare

    async def _declare_late(self, declare: Callable[[], Awaitable[object]]) -> None:
        while True:
            await asyncio.sleep(DECLARE_AGAIN)
            try:
                await declare()
            except StoreError as error:
                log.warning("the store still refuses the schedules of this app: %s", error)
            else:
                log.info("the schedules of this app are declared now")
                return

    async def start(self) -> None:
        """Recording works before anything can end, leases are renewed before anything is claimed."""
        self.loop = asyncio.get_running_loop()
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise

    async def _start(self) -> None:
        store = await self._stack.enter_async_context(self._backend.open())
        await store.declare(self._specs)
        if off := sorted(spec.name for spec in self._specs if not spec.enabled):
            log.info("disabled, so that no run of them starts and their schedules make none: %s", ", ".join(off))
        resources = None if self._resources is None else await self._stack.enter_async_context(self._resources())
        slate = self._share_leases()
        self._seats = Seats(self.name, self._tuning.concurrency, slate)
        heart = Heart if self._world.threads else LoopHeart
        self._heart = heart(self._backend, self._seats, self._tuning, self._world, slate)
        announcer = Announcer(store, self._hooks)
        self._settler = Settler(store, self._seats, announcer.recorded)
        ticks = Ticks(store, self._hooks, self.undeclared)
        runner = Runner(self._handlers, self._world, Steps(store, self._flows))
        self._calls = Calls(runner, self._seats, self._heart, self._settler, announcer, resources, self._flows.written)
        self._worker = Worker(
            store,
            self._seats,
            self._calls,
            self._settler,
            Offers(self._seats, self._heart, self._settler, ticks, announcer),
            Reports(self._seats, announcer.tallies, self._tuning, self._world),
            self._tuning,
            self._backend.poll,
            self._world,
        )
        self._heart.start()
        if self._world.threads:
            self._watchdog = Watchdog()
            self._watchdog.start()
            self._stack.callback(self._watchdog.stop)
        self._watch("settler", self._settler.run)
        self._watch("hints", lambda: self._listen(store))
        self._watch("ticks", ticks.run)
        self._started_at = self._world.monotonic()
        self._watch("worker", self._worker.run)
        self._watch("janitor", Janitor(store, self._tuning.sweep, self._tuning.retention, announcer).run)
        if self._late is not None:
            late = asyncio.create_task(self._declare_late(self._late), name="rota declare")
            self._stack.callback(late.cancel)
        log.info("worker %s started on %s", self.name, self._backend.url)

    def _share_leases(self) -> Slate | None:
        """Where the renewer sees the leases of this worker, if there is a renewer."""
        if self._renewer is None:
            return None
        try:
            slate = Slate(self._tuning.concurrency * (1 + BACKLOG))  # an ending keeps its place until it is recorded
        except OSError as error:
            log.warning("worker %s shares no leases with the renewer: %s", self.name, error)
            return None
        self._stack.callback(slate.close)
        line = Line(self._renewer, slate, self.name, self._tuning)
        line.start()
        self._stack.callback(line.stop)
        return slate

    async def stop(self, grace: float) -> None:
        """Stop claiming, let handlers end, record everything, then let go. A second call only waits."""
        if self._stopped is None:
            self._stopped = asyncio.create_task(self._stop(grace))
        await asyncio.shield(self._stopped)

    def hurry(self) -> None:
        """Whoever waits for running handlers stops waiting."""
        self._hurry.set()

    @property
    def running(self) -> dict[str, int]:
        """Runs in hand, by task."""
        return self._seats.running()

    @property
    def free(self) -> int:
        return max(0, self._seats.free)

    @property
    def overdue(self) -> int:
        """Calls that outlived their runs and still take a seat."""
        return self._seats.overdue

    @property
    def alive(self) -> bool:
        """False once it has stopped or cannot go on: its event loop was closed, or its worker was cancelled there."""
        if self.ended or self.loop.is_closed():
            return False
        return self._stopped is not None or any(loop.name == "worker" and loop.alive for loop in self.loops)

    @property
    def healthy(self) -> bool:
        """Proof of claiming: the worker has talked to the store lately, and the loop answers. The start has talked to
        the store as well."""
        claimed = self._started_at if self._worker.claimed_at is None else self._worker.claimed_at
        patience = 3 * max(self._tuning.rescue_every, self._backend.poll)
        lately = self._world.monotonic() - claimed < patience
        return lately and self.alive and self.loop.is_running() and self._heart.silent_for < self._tuning.silence

    def abandon(self) -> None:
        """Its event loop is gone: end what goes on without that loop. Safe from any thread."""
        self.ended = True
        self._heart.abandon()
        if self._watchdog is not None:
            self._watchdog.stop()

    async def _stop(self, grace: float) -> None:
        """Each step is tried, whatever became of the one before."""
        try:
            async with AsyncExitStack() as last:
                last.push_async_callback(self._stack.aclose)
                for name in ("settler", "janitor", "hints", "ticks"):
                    last.push_async_callback(self._end, name)
                last.push_async_callback(self._heart.stop)
                last.push_async_callback(self._record)
                await self._drain(grace)
        finally:
            self.ended = True
            log.info("worker %s stopped", self.name)

    async def _drain(self, grace: float) -> None:
        in_hand = plural(len(self._seats.leases()), "run")
        log.info("worker %s is stopping: %s in hand, for up to %.1f s", self.name, in_hand, grace)
        self._worker.stop_claiming()
        await self._end("worker", patience=STOP_CLAIMING)
        drain = asyncio.create_task(self._calls.drain(grace))
        hurry = asyncio.create_task(self._hurry.wait())
        await asyncio.wait((drain, hurry), return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if not drain.done():
            drain.cancel()
            await self._calls.drain(0)

    async def _record(self) -> None:
        """Wait for the store, but for no longer than a lease: other workers start again what is not recorded then."""
        try:
            async with asyncio.timeout(self._tuning.lease):
                await self._settler.flush()
        except TimeoutError:
            log.error("%s not recorded: the runs start again", plural(self._settler.backlog, "ending"))

    async def _listen(self, store: Store) -> None:
        async with store.changes(self.name) as hints:
            self._worker.look()  # a hint that came before we listened was not heard
            async for hint in hints:
                if self._worker.hint(hint):  # a command, or the echo of a note of its own
                    self._heart.beat_soon()

    def _watch(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        loop = Loop(name)
        loop.task = asyncio.create_task(self._keep_alive(loop, run), name=f"rota {name}")
        self.loops.append(loop)

    async def _keep_alive(self, loop: Loop, run: Callable[[], Awaitable[None]]) -> None:
        backoff = Backoff(FIRST_PAUSE, LAST_PAUSE)
        worker_here.set(self.name)  # of this asyncio task, and of those that it starts
        while True:
            began = self._world.monotonic()
            try:
                await run()
            except Exception as error:
                if self._world.monotonic() - began > CALM:
                    backoff.reset()
                pause = backoff.pause()
                loop.restarts += 1
                said, before = f"{type(error).__name__}: {error}", loop.error
                loop.error = said
                trace = None if isinstance(error, StoreError) or said == before else error  # told once, not each time
                log.error("the %s loop failed and is restarted in %.1f s: %s", loop.name, pause, said, exc_info=trace)
                await asyncio.sleep(pause)
            else:
                return

    async def _end(self, name: str, patience: float = 0.0) -> None:
        for loop in self.loops:
            if loop.name == name and loop.task is not None:
                await asyncio.wait((loop.task,), timeout=patience)
                loop.task.cancel()
                await asyncio.wait((loop.task,))
