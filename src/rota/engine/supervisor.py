"""The supervisor: builds and starts the parts of an engine, restarts failed loops, and stops without losing a run."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import Any

from msgspec import Struct

from rota.domain.backoff import Backoff
from rota.domain.spec import TaskSpec
from rota.domain.text import plural
from rota.domain.tuning import Tuning
from rota.engine.calls import Calls
from rota.engine.events import Announcer
from rota.engine.handler import Handler
from rota.engine.heart import Heart, LoopHeart
from rota.engine.hooks import Hooks
from rota.engine.injection import Overrides
from rota.engine.janitor import Janitor
from rota.engine.logs import worker_here
from rota.engine.offers import Offers
from rota.engine.reports import Reports
from rota.engine.runner import Runner
from rota.engine.seats import Seats
from rota.engine.settler import Settler
from rota.engine.slate import RenewerAt, RenewerConnection, Slate
from rota.engine.steps import FlowCode, Steps
from rota.engine.ticks import Ticks
from rota.engine.watchdog import Watchdog
from rota.engine.wear import Wear
from rota.engine.worker import BACKLOG, Worker
from rota.engine.world import REAL, World
from rota.errors import StoreError
from rota.store import Backend, Store

log = logging.getLogger("rota")

FIRST_PAUSE, LAST_PAUSE = 0.5, 2.0
"""Seconds before a failed loop is restarted: the first and the longest pause."""
STOP_CLAIMING = 5.0
"""Seconds that a stop waits for a claim under way. Runs that arrive later start again when their leases lapse."""
DECLARE_AGAIN = 30.0
"""Seconds after which the schedules of an app are declared again, if the store refused them."""
STUCK = 90.0
"""Seconds after which a worker that has not tried to claim is stuck. A store that does not answer takes less."""
CALM = 60.0
"""Seconds without a failure after which the next pause of a loop is the first one again."""


Resources = Callable[[], AbstractAsyncContextManager[Any]]


class Loop(Struct):
    """One loop that the supervisor watches."""

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
        wear: Wear | None = None,
        drain_seconds: float = 30.0,
        overrides: Callable[[], Overrides] = dict,
    ) -> None:
        """`drain_seconds` is how long a stop that was asked for from afar waits for handlers. `overrides` says which
        dependencies are replaced by others now."""
        self.name = name
        self.loops: list[Loop] = []
        self._backend = backend
        self._handlers = {name: world.adapt(handler) for name, handler in handlers.items()}
        self._specs = specs
        self._tuning = tuning
        self.queues = tuning.queues
        self._hooks = hooks
        self._resources = resources
        self._world = world
        self._flows = flows
        self._stack = AsyncExitStack()
        self._renewer = renewer
        self._wear = wear
        self._drain_seconds = drain_seconds
        self._overrides = overrides
        self._leaving: asyncio.Task[None] | None = None
        self._stopped: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self.undeclared: set[str] = set()
        """Schedules that the code of the app no longer declares."""
        self._started_at = 0.0
        self._watchdog: Watchdog | None = None
        self.ended = False
        """Stopped, also if a part failed to stop, or abandoned."""
        self.left = asyncio.Event()
        """The engine has stopped by itself, without a call of `stop`."""
        self.cleanup = True
        """Whether handlers that a stop interrupts have time to clean up before their runs are given back."""
        self.worn = False
        """The engine stops by itself because its worker has done enough."""

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

    async def start(self, declare_late: Callable[[], Awaitable[object]] | None = None) -> None:
        """Start the settler and the heart before the worker: then every ending can be recorded and every lease renewed.

        `declare_late` declares the schedules that the store refuses for now; it is called until it succeeds.
        """
        self.loop = asyncio.get_running_loop()
        try:
            await self._start()
            if declare_late is not None:
                late = asyncio.create_task(self._declare_late(declare_late), name="rota declare")
                self._stack.callback(late.cancel)
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
        self._seats.on_unrenewed = announcer.tallies.unrenewed
        traced = self._tuning.trace_store
        self._settler = Settler(store, self._seats, announcer.recorded, announcer.tallies.stale, traced)
        ticks = Ticks(store, self._hooks, announcer.tallies, self.undeclared)
        runner = Runner(self._handlers, self._world, Steps(store, self._flows), self._overrides)
        self._calls = Calls(runner, self._seats, self._heart, self._settler, announcer, resources, self._flows.written)
        reports = Reports(self._seats, announcer.tallies, self._tuning, self._world)
        self._worker = Worker(
            store,
            self._seats,
            self._calls,
            self._settler,
            Offers(self._seats, self._heart, self._settler, ticks, announcer),
            reports,
            self._tuning,
            self._backend.poll,
            self._world,
            self._wear,
            self._leave,
        )
        self._heart.start()
        if self._world.threads:
            self._watchdog = reports.stalls.watchdog = Watchdog()
            self._watchdog.start()
            self._stack.callback(self._watchdog.stop)
        self._watch("settler", self._settler.run)
        self._watch("hints", lambda: self._listen(store))
        self._watch("ticks", ticks.run)
        self._started_at = self._world.monotonic()
        self._watch("worker", self._worker.run)
        self._watch("janitor", Janitor(store, self._tuning.sweep, self._tuning.retention, announcer).run)
        log.info("worker %s started on %s", self.name, self._backend.url)

    def _share_leases(self) -> Slate | None:
        """Return where the renewer sees the leases of this worker, if there is a renewer."""
        if self._renewer is None:
            return None
        try:
            slate = Slate(self._tuning.concurrency * (1 + BACKLOG))  # an ending keeps its place until it is recorded
        except OSError as error:
            log.warning("worker %s shares no leases with the renewer: %s", self.name, error)
            return None
        self._stack.callback(slate.close)
        line = RenewerConnection(self._renewer, slate, self.name, self._tuning)
        line.start()
        self._stack.callback(line.stop)
        return slate

    async def stop(self, drain_seconds: float) -> None:
        """Stop claiming, wait for handlers, record their endings, then close the store. A second call only waits."""
        if self._stopped is None:
            self._stopped = asyncio.create_task(self._stop(drain_seconds))
        await asyncio.shield(self._stopped)

    def hurry(self) -> None:
        """A stop under way no longer waits for running handlers."""
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
        """False once the engine has stopped or cannot go on: its event loop is closed, or its worker was cancelled."""
        if self.ended or self.loop.is_closed():
            return False
        return self._stopped is not None or any(loop.name == "worker" and loop.alive for loop in self.loops)

    @property
    def claimed_for(self) -> float:
        """Seconds since the store has answered a claim, or since the start."""
        claimed = self._started_at if self._worker.claimed_at is None else self._worker.claimed_at
        return self._world.monotonic() - claimed

    @property
    def healthy(self) -> bool:
        """True if the store has answered a claim (or the start) lately and the event loop answers the heart."""
        lately = self.claimed_for < 3 * max(self._tuning.rescue_every, self._backend.poll)
        return lately and self.alive and self.loop.is_running() and self._heart.silent_for < self._tuning.silence

    @property
    def given_up(self) -> bool:
        """True while the event loop has been silent for so long that the heart renews its leases no more."""
        return self.alive and self._heart.silent_for >= self._tuning.silence

    @property
    def live(self) -> bool:
        """True while the engine tries to claim, or stops. A store that does not answer does not change it: an engine
        that waits for the store goes on when the store is back, and another start would not help."""
        if self._stopped is not None:
            return not self.ended
        lately = self._world.monotonic() - self._worker.turned_at < STUCK
        waits = self._settler.backlog > BACKLOG * self._tuning.concurrency  # the worker waits for the settler
        return self.alive and (lately or waits)

    def abandon(self) -> None:
        """The event loop is gone: end the threads that do not need it. Safe from any thread."""
        self.ended = True
        self._heart.abandon()
        if self._watchdog is not None:
            self._watchdog.stop()

    async def _stop(self, drain_seconds: float) -> None:
        """Try every part of the stop, also after one has failed."""
        try:
            async with AsyncExitStack() as last:
                last.push_async_callback(self._stack.aclose)
                for name in ("settler", "janitor", "hints", "ticks"):
                    last.push_async_callback(self._end, name)
                last.push_async_callback(self._heart.stop)
                last.push_async_callback(self._report_counts)
                last.push_async_callback(self._record)
                await self._drain(drain_seconds)
        finally:
            self.ended = True
            log.info("worker %s stopped", self.name)

    def _leave(self, words: str, worn: bool) -> None:
        """The worker starts no more runs: stop the engine. A worn worker lets the runs in hand end first, however long
        that takes."""
        self.worn = worn
        log.info("worker %s %s: %s", self.name, "ends with its last run" if worn else "stops", words)

        async def leave() -> None:
            if worn:
                await self._seats.emptied(None)
            try:
                await self.stop(self._drain_seconds)
            finally:
                self.left.set()

        self._leaving = asyncio.create_task(leave(), name="rota leave")

    async def _drain(self, drain_seconds: float) -> None:
        in_hand = plural(len(self._seats.leases()), "run")
        log.info("worker %s is stopping: %s in hand, for up to %.1f s", self.name, in_hand, drain_seconds)
        self._worker.stop_claiming()
        self._heart.drain()
        await self._end("worker", patience=STOP_CLAIMING)
        drain = asyncio.create_task(self._calls.drain(drain_seconds, self.cleanup))
        hurry = asyncio.create_task(self._hurry.wait())
        await asyncio.wait((drain, hurry), return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if not drain.done():
            drain.cancel()
            await self._calls.drain(0, self.cleanup)

    async def _record(self) -> None:
        """Wait for the store up to one lease: after that, other workers start runs with unrecorded endings again."""
        try:
            async with asyncio.timeout(self._tuning.lease):
                await self._settler.flush()
        except TimeoutError:
            log.error("%s not recorded: the runs start again", plural(self._settler.backlog, "ending"))

    async def _report_counts(self) -> None:
        """The last report was sent before the last calls ended: tell the store of those, too."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_CLAIMING):
                await self._worker.report_counts()

    async def _listen(self, store: Store) -> None:
        async with store.changes(self.name) as hints:
            self._worker.look()  # a hint that came before this subscription was not heard
            async for hint in hints:
                if self._worker.hint(hint):  # a command for a run in hand, or the echo of a note of its handler
                    self._heart.beat_soon()

    def _watch(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        loop = Loop(name)
        loop.task = asyncio.create_task(self._keep_alive(loop, run), name=f"rota {name}")
        self.loops.append(loop)

    async def _keep_alive(self, loop: Loop, run: Callable[[], Awaitable[None]]) -> None:
        backoff = Backoff(FIRST_PAUSE, LAST_PAUSE)
        worker_here.set(self.name)  # for this asyncio task and the tasks that it starts
        while True:
            began = self._world.monotonic()
            try:
                await run()
            except Exception as error:
                if self._world.monotonic() - began > CALM:
                    backoff.reset()
                pause = backoff.pause()
                loop.restarts += 1
                message, before = f"{type(error).__name__}: {error}", loop.error
                loop.error = message
                known = isinstance(error, StoreError) or message == before
                log.error(
                    "the %s loop failed and is restarted in %.1f s: %s",
                    loop.name,
                    pause,
                    message,
                    exc_info=None if known else error,
                )
                await asyncio.sleep(pause)
            else:
                return

    async def _end(self, name: str, patience: float = 0.0) -> None:
        for loop in self.loops:
            if loop.name == name and loop.task is not None:
                await asyncio.wait((loop.task,), timeout=patience)
                loop.task.cancel()
                await asyncio.wait((loop.task,))
