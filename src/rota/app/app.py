"""Rota: the composition root. It collects tasks, gives out the client, and runs the engine."""

import logging
import math
import time
import uuid
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, ParamSpec, Self, TypeVar

from rota.app.life import AsyncOnly, Life
from rota.app.registry import Definitions
from rota.app.status import Health, Status, health_of, status_of
from rota.client.client import Client
from rota.client.handle import RunHandle
from rota.client.leftovers import UnknownNames, tell_leftovers
from rota.client.portal import Portal
from rota.domain.deadline import deadline_id
from rota.domain.decision import Decision
from rota.domain.intake import check_name
from rota.domain.results import FailOn
from rota.domain.run import State
from rota.domain.spec import TaskSpec
from rota.domain.tuning import Tuning
from rota.engine.hooks import Event, EventName, Hooks
from rota.engine.slate import RenewerAt
from rota.engine.steps import FlowCode
from rota.engine.supervisor import Resources, Supervisor
from rota.engine.world import REAL, World
from rota.errors import InvalidOptions, NotRunning, StoreError, StoreUnavailable, UnknownTask, UsageError
from rota.schedules.plans import Planning
from rota.schedules.schedules import Schedules
from rota.settings import load, passed_over, unknown_tasks
from rota.store import Backend, Command, Declared, Depth, Reads, RowQuery, RunQuery, Scope
from rota.stores import connect
from rota.task import Bound, Task, call_of, definition_of
from rota.task.remote import RemoteTask
from rota.task.submitter import unavailable
from rota.why import Why, why

log = logging.getLogger("rota")

P = ParamSpec("P")
R = TypeVar("R")

Coro = Coroutine[Any, Any, R]
AnyTask = Task[..., ..., Any, Any]
SPEC_MEMORY = 5.0
"""Seconds for which what is published of a task elsewhere is taken for true."""


class Rota(Definitions, Planning, AsyncOnly):
    """One app: its tasks and the store they live in.

    What is not said here comes from `ROTA_*` variables, then from rota.toml or `[tool.rota]` in pyproject.toml.
    `url` is by default an SQLite file in `.rota/` beside the project file; a Backend is taken as it is.
    `namespace` keeps apps apart on one Redis or PostgreSQL; in memory, every app has a store of its own anyway.
    `async with app:` runs the engine; submitting needs nothing but the app. `resources` is an async context manager
    that is entered once per worker process; handlers find what it gives as `ctx.resources`.
    `fail_on` says which returned values are failures, for every task that has no `fail_on` of its own and is no step
    of a flow that has one: `fail_on=status_dict` reads `{"status": "failed", "message": "no data"}`.
    """

    _current: ClassVar["Rota | None"] = None

    def __init__(
        self,
        url: str | Backend | None = None,
        *,
        namespace: str | None = None,
        name: str | None = None,
        tz: str | None = None,
        concurrency: int | None = None,
        lease: float | None = None,
        grace: float | None = None,
        patience: float | None = None,
        enabled: bool | None = None,
        resources: Resources | None = None,
        fail_on: FailOn | None = None,
    ) -> None:
        if namespace is not None and not (url is None or isinstance(url, str)):
            raise InvalidOptions(f"namespace={namespace!r}: a Backend is taken as it is; name it in the URL instead")
        self.settings = load(
            url=url if url is None or isinstance(url, str) else url.url,
            namespace=namespace,
            name=name,
            tz=tz,
            concurrency=concurrency,
            lease=lease,
            grace=grace,
            patience=patience,
            enabled=enabled,
        )
        self.tuning = self.settings.tuning
        self.store_url: str | None = None
        """The URL of the store with its secrets; None if a Backend was given."""
        self.renewer: RenewerAt | None = None  # who keeps the leases while a call holds the interpreter
        if url is None or isinstance(url, str):
            self.store_url = self.settings.store_url
            self.backend = connect(self.store_url)
        else:
            self.backend = url
        super().__init__(fail_on)
        self.schedules = Schedules(self.client, self.settings.tz)
        self.portal = Portal()
        self._resources = resources
        self.hooks = Hooks()
        self._client = self._new_client(self.backend)
        self._unknown_names = UnknownNames()
        self._specs_seen: dict[str, tuple[TaskSpec | None, float]] = {}
        self._life = Life(lambda: self.portal, lambda: self._client, lambda: self.tuning.grace)
        Rota._current = self

    @classmethod
    def current(cls) -> "Rota":
        """The app of this process: the one made or started last."""
        if cls._current is None:
            raise NotRunning("no app has been made in this process; create one with Rota()")
        return cls._current

    # -- reacting --------------------------------------------------------------------------------------------------

    async def declare_schedules(self) -> dict[str, Declared]:
        """What a start does for the schedules of this app's code."""
        renamed = {task.name: list(task.aliases) for task in self.tasks.values()}
        renamed |= {deadline_id(name): [deadline_id(old) for old in former] for name, former in renamed.items()}
        return await self.schedules.declare(self.declared(), renamed)

    def on(self, event: EventName, hook: Callable[[Event], Any]) -> None:
        """Call `hook(event)` when something happens in this process: plain or async, never in anyone's way."""
        try:
            self.hooks.add(event, hook)
        except ValueError as error:
            raise InvalidOptions(str(error)) from None

    # -- submitting and following ----------------------------------------------------------------------------------

    async def submit(self, task: str, *args: Any, **kwargs: Any) -> RunHandle[Any]:
        """Submit by name, without the code: what workers published of the task says how. A task that nobody has
        published takes keyword arguments only, as they are; its run waits for a worker that knows it, which is logged
        as a warning with the name that was probably meant."""
        known = self.names().get(task) or await self._remote(self._client, task)
        if isinstance(known, RemoteTask) and not known.spec.executor:
            await self._unknown_names.tell(self._client, task, self.names())
        return await known.submit(*args, **kwargs)

    async def touch(self, task: str, *args: Any, **kwargs: Any) -> Decision:
        """Touch by name, without the code. Never raises for a task that is unknown, disabled or has no activity: it
        says no, and why."""
        try:
            known: AnyTask | RemoteTask | None = self.names().get(task)
            if known is None:  # the store is asked once and without retries, because nobody waits for a touch
                known = await self._remote(await self._client.store(), task)
        except StoreError as error:
            return unavailable(task, error)
        return await known.touch(*args, **kwargs)

    async def _remote(self, store: Reads, task: str) -> RemoteTask:
        """The task by its published spec, which is read again after SPEC_MEMORY seconds, so that most touches cost one
        round trip."""
        spec, known_at = self._specs_seen.get(task, (None, -math.inf))
        if spec is None or time.monotonic() - known_at > SPEC_MEMORY:
            found = (await store.rows(TaskSpec, RowQuery(names=[task]))).items
            spec = found[0] if found else None
            if spec is not None:  # names that nobody published come from outside, and are not kept
                self._specs_seen[task] = (spec, time.monotonic())
        return RemoteTask(spec or TaskSpec(task), self._submitter)

    async def submit_many(self, calls: Sequence[Bound[R]]) -> list[RunHandle[R]]:
        """Many runs in one step; one handle per call, in order.

        Raises before any is made if one has bad arguments. One that a guard refuses does not stop the others: its
        handle is false, and raises Refused when it is used.
        """
        once = any(call_of(bound).once is not None for bound in calls)
        now = await self._client.now() if once else 0.0
        runs = [call_of(bound).to_run_at(now) for bound in calls]
        decisions = (await self._client.put(runs)).items
        return [definition_of(bound.task).handle(decision) for bound, decision in zip(calls, decisions, strict=True)]

    def handle(self, id: str, task: str | None = None) -> RunHandle[Any]:
        """Follow any run by its id; its result comes typed if the task is named and known here."""
        if task is None:
            return RunHandle(self._client, id)
        if task not in self.names():
            raise UnknownTask(f"no task {task} is defined here")
        return self.names()[task].handle(id)

    def _new_client(self, backend: Backend) -> Client:
        client = Client(backend, self.hooks.refused, self.is_disabled, self.portal, self.hooks)
        client.patience = self.settings.patience
        return client

    def client(self) -> Client:
        """Only submitting and reading: `async with app.client():` opens the store here, without an engine."""
        self._life.notice_forks()
        return self._client

    # -- running ---------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the engine on this event loop; harmless if it runs already. With `enabled` off, only a client."""
        await self._life.start(self._started)

    def start_sync(self) -> None:
        """The same from synchronous code (Django, Flask, a script): the engine runs on a thread of its own, until
        `stop_sync` or the end of the process. Start it after a fork: a forked child has no engine."""
        self._life.start_sync(self.start)

    def stop_sync(self, grace: float | None = None) -> None:
        """`stop` from synchronous code, from any thread; also for an engine that an event loop of another thread
        started."""
        self._life.stop_sync(grace)

    @contextmanager
    def running(self, grace: float | None = None) -> Generator[Self]:
        """`with app.running():` runs the engine in synchronous code; it is stopped when the block ends."""
        self.start_sync()
        try:
            yield self
        finally:
            self.stop_sync(grace)

    async def _started(self) -> Supervisor | None:
        if not self.settings.enabled:
            log.info("the engine is switched off (enabled=false): this process only submits")
            return None
        for sentence in unknown_tasks(self.settings, self.tasks):
            log.warning(sentence)
        for sentence in passed_over(self.settings):
            log.info(sentence)
        engine = self.build_engine()
        try:
            await self.declare_schedules()
        except StoreUnavailable as error:
            if not error.passing:
                raise
            # A full server refuses what grows and still lets runs be worked off: whoever does that makes room.
            log.warning("the store refuses the schedules of this app for now, the worker starts without: %s", error)
            engine.declare_late(self.declare_schedules)
        owner = None if self.settings.source("name") == "default" else self.settings.name  # others have that name too
        declared = {schedule.id for schedule in self.declared()}
        engine.undeclared |= await tell_leftovers(self._client, self.names(), owner, declared)
        await engine.start()
        Rota._current = self
        return engine

    def build_engine(
        self,
        name: str | None = None,
        backend: Backend | None = None,
        tuning: Tuning | None = None,
        hooks: Hooks | None = None,
        resources: Resources | None = None,
        world: World = REAL,
    ) -> Supervisor:
        """An engine for this app's tasks, not started. What is not given is the app's own."""
        names = self.names()
        return Supervisor(
            name or f"{self.settings.name}-{uuid.uuid4().hex[:16]}",
            backend or self.backend,
            {name: definition_of(task).handler() for name, task in names.items()},
            self.specs(),
            tuning or self.tuning,
            hooks or self.hooks,
            resources or self._resources,
            world,
            FlowCode(
                {name: code for flow in self.flows.values() for name, code in flow.codes().items()},
                self.formats.written,
            ),
            self.renewer if backend is None else None,
        )

    @contextmanager
    def bound_to(self, url: str | Backend = "memory://") -> Generator[Self]:
        """For tests: until the block ends, the app lives in this store, and its own is left alone."""
        backend = connect(url) if isinstance(url, str) else url
        if self._life.running is not None:
            raise UsageError("the engine is running; bind the app to another store before it starts")
        before = self.backend, self._client, self.portal
        self.backend, self.portal = backend, Portal()
        self._client = self._new_client(backend)
        try:
            yield self
        finally:
            self.portal.close(self._client.close)
            self.backend, self._client, self.portal = before

    async def stop(self, grace: float | None = None) -> None:
        """Stop claiming, wait up to `grace` seconds for running handlers, give back the rest. Twice is fine, and so is
        an event loop other than the one that the engine runs on.

        The app is stopped afterwards, also where `resources` or a store fails to close: then that error is raised."""
        await self._life.stop(grace)

    @property
    def engine(self) -> Supervisor:
        engine = self._life.running
        if engine is None:
            raise NotRunning("the engine is not running; use `async with app:` or `await app.start()`")
        return engine

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    # -- seeing and steering ---------------------------------------------------------------------------------------

    def status(self) -> Status:
        """This process: is the engine running, what has it in hand, which loops are alive, when comes what next."""
        return status_of(self._life.engine, self.tasks, dict(self.schedules.seen))  # a copy: another thread may read

    async def health(self) -> Health:
        """Truthy if the store answers and, where an engine was started, it has claimed lately."""
        return await health_of(self._life.engine, self._client)

    async def why(self, subject: str, key: str | None = None) -> Why:
        """What keeps a task (or one key of it), a schedule or a run from running; `str(answer)` says it all."""
        return await why(self._client, subject, key)

    async def depths(self) -> dict[str, Depth]:
        """Unfinished runs per task, exactly; 0 for a task that is known, here or by what workers published, and has
        none."""
        known = {*self.tasks, *(spec.name for spec in (await self._client.rows(TaskSpec)).items)}
        found = {depth.task: depth for depth in (await self._client.depths()).items}
        return {name: found.get(name) or Depth(name, 0, 0) for name in sorted({*known, *found})}

    async def clear(self, task: str) -> int:
        """End all waiting runs of a task; how many there were. Running ones go on."""
        total = 0
        waiting = await self._waiting(task) if self.hooks.wanted("cancelled") else []
        while ended := sum((await self._client.control(Command.DROP, self._all_names(task), of=Scope.TASKS)).items):
            total += ended
        await self._client.ended_here(waiting)
        return total

    async def _waiting(self, task: str) -> list[str]:
        states = (State.QUEUED, State.PAUSED)
        queries = [RunQuery(task=name, states=states, limit=1000) for name in self._all_names(task)]
        return [run.id for query in queries async for run in self._client.all_runs(query)]

    async def pause(self, task: str, note: str | None = None) -> bool:
        """Start no more runs of a task anywhere, until it is resumed; submits are still taken."""
        return any((await self._client.control(Command.PAUSE, self._all_names(task), note, of=Scope.TASKS)).items)

    async def resume(self, task: str, note: str | None = None) -> bool:
        return any((await self._client.control(Command.RESUME, self._all_names(task), note, of=Scope.TASKS)).items)

    def _all_names(self, task: str) -> list[str]:
        known = self.names().get(task)
        if known is not None:
            return [known.name, *known.aliases]
        try:
            return [check_name(task)]
        except ValueError as error:
            raise InvalidOptions(str(error)) from None
