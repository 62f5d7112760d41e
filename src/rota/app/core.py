"""Core: the parts of one app, for rota's own packages: the command line, simulations and `drain`. Not for users."""

import logging
import uuid
from collections import ChainMap
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from rota.app.engine_lifecycle import EngineLifecycle
from rota.app.operation import operation_handler
from rota.app.registry import Registry
from rota.client.client import Client, move_to
from rota.client.late_store import LateStore
from rota.client.leftovers import log_leftovers
from rota.client.operations import OPERATION
from rota.client.portal import Portal
from rota.client.submissions import SubmitHook
from rota.domain.deadline import deadline_id
from rota.domain.results import FailOn
from rota.domain.starts import waits_for_start
from rota.domain.tuning import Tuning
from rota.engine.hooks import Hooks
from rota.engine.injection import Overrides
from rota.engine.middleware import Middleware
from rota.engine.slate import RenewerAt
from rota.engine.steps import FlowCode
from rota.engine.supervisor import Resources, Supervisor
from rota.engine.wear import Wear
from rota.engine.world import REAL, World
from rota.errors import NotRunning, StoreUnavailable, UsageError
from rota.flow import codes_of
from rota.schedules.schedules import Schedules
from rota.schedules.starting import begin
from rota.settings import Settings, passed_over, unknown_tasks
from rota.store import Backend, Declared
from rota.stores import connect
from rota.task import Submitter, definition_of
from rota.why import why

if TYPE_CHECKING:
    from rota.app.app import Rota

log = logging.getLogger("rota")


def core_of(app: "Rota") -> "Core":
    """Return the core of an app. Users have no use for it, so `Rota` shows it to no one but rota's own packages."""
    return app._core  # pyright: ignore[reportPrivateUsage]


class Core:
    """What `Rota` is made of. The parts that `bound_to` replaces are read through functions, never kept elsewhere."""

    def __init__(
        self,
        settings: Settings,
        backend: Backend | LateStore | None,
        resources: Resources | None,
        fail_on: FailOn | None,
        middleware: Sequence[Middleware] = (),
    ) -> None:
        """Without a `backend`, the settings name the store."""
        self.settings = settings
        self.tuning: Tuning = settings.tuning
        self._store_url = settings.store_url if backend is None else None
        self.renewer: RenewerAt | None = None
        """The process that renews the leases while a call holds the interpreter."""
        self.wear: Callable[[], Wear] = Wear
        """Makes the wear of a worker: when it has done enough."""
        self.world = REAL
        """Clock, threads and calls of the engines that the app builds."""
        self.calls = True
        """False: an engine of this app fires schedules and rescues runs, but calls no task of the app."""
        self.hooks = Hooks()
        self.served = False
        """Whether the lifespan of a web server runs the engine."""
        self.on_termination: list[Callable[[], None]] = []
        """Called when a server is told to stop, before it waits for its requests: they end what would not end by
        itself."""
        self.overrides: list[Callable[[], Overrides]] = []
        """Where dependencies find what replaces them: the app's own list, and those of the web apps around it."""
        self.more_checks: list[Callable[[], Iterable[Any]]] = []
        """What `rota doctor` asks the framework around this app; each gives checks (`rota.doctor.checks`), and may use
        its own database."""
        self.resources = resources
        self.portal = Portal()
        self.submitter = Submitter(lambda: self.client, lambda: self.portal)
        self.before_submit: list[SubmitHook] = []
        self.registry = Registry(settings, self.submitter, fail_on, middleware)
        if settings.http_hosts:  # an app without the task does not pay for the modules of HTTP
            from rota.app.http_task import OPTIONS, http_task

            self.registry.define(http_task(settings.http_hosts), dict(OPTIONS))
        if settings.heartbeat_url is not None:
            from rota.app.heartbeat import heartbeat_task, options

            task = heartbeat_task(settings.heartbeat_url, settings.http_hosts)
            self.registry.define(task, options(settings.heartbeat_every))
        self._backend = connect(settings.store_url) if backend is None else backend
        self.client = self._new_client(self._backend)
        self.lifecycle = EngineLifecycle(lambda: self.portal, lambda: self.client, lambda: self.tuning.grace)
        self.schedules = Schedules(self.noticing_client, settings.tz)

    @property
    def backend(self) -> Backend:
        """Where the store lives now."""
        return self._backend.backend if isinstance(self._backend, LateStore) else self._backend

    @property
    def store_url(self) -> str | None:
        """The URL of the store with its secrets; None if the app was given a Backend."""
        return self._backend.url if isinstance(self._backend, LateStore) else self._store_url

    @store_url.setter
    def store_url(self, url: str | None) -> None:
        self._store_url = url

    @property
    def opener(self) -> str:
        """The function that makes the backend of `store_url`, as module:function, for another process."""
        made_by = self._backend.connect if isinstance(self._backend, LateStore) else connect
        return f"{made_by.__module__}:{made_by.__qualname__}"

    def _new_client(self, backend: Backend | LateStore) -> Client:
        client = Client(backend, self.hooks.refused, self.registry.is_disabled, self.portal, self.hooks)
        client.patience = self.settings.patience
        client.trace_create = self.settings.trace_create
        client.explain = why
        client.signature_of = self.registry.signature_of
        client.before_submit = self.before_submit
        return client

    def noticing_client(self) -> Client:
        """Return the client; in a forked child, the first call also logs what became of the parent's engine."""
        self.lifecycle.notice_forks()
        return self.client

    @property
    def engine(self) -> Supervisor:
        """The engine that runs in this process; raises NotRunning if none runs."""
        engine = self.lifecycle.running
        if engine is None:
            raise NotRunning("the engine is not running; use `async with app:` or `await app.start()`")
        return engine

    def use(self, backend: Backend | LateStore) -> None:
        """Move the app to another store, before anything of it is opened."""
        self._backend = backend
        move_to(self.client, backend)

    @contextmanager
    def borrowed(self) -> Generator[None]:
        """Let a command of the command line have the app: the store and the tuning that it sets end with the block."""
        before = self._backend, self._store_url, self.tuning
        try:
            yield
        finally:
            self._backend, self._store_url, self.tuning = before
            move_to(self.client, self._backend)

    @contextmanager
    def bound_to(self, url: str | Backend) -> Generator[None]:
        """Use another store until the block ends, with a client and a portal of its own."""
        backend = connect(url) if isinstance(url, str) else url
        if self.lifecycle.running is not None:
            raise UsageError("the engine is running; bind the app to another store before it starts")
        before = self._backend, self.client, self.portal
        self._backend, self.portal = backend, Portal()
        self.client = self._new_client(backend)
        try:
            yield
        finally:
            self.portal.close(self.client.close)
            self._backend, self.client, self.portal = before

    async def declare_schedules(self) -> dict[str, Declared]:
        """Write the schedules and deadlines of the code into the store, as a start of the engine does."""
        renamed = {task.name: list(task.aliases) for task in self.registry.tasks.values()}
        for task in self.registry.tasks.values():
            for id in definition_of(task).triggers:
                renamed[id] = [f"{old}{id.removeprefix(task.name)}" for old in task.aliases]
        renamed |= {deadline_id(name): [deadline_id(old) for old in former] for name, former in renamed.items()}
        return await self.schedules.declare(self.registry.declared(), renamed)

    async def begin_schedules(self) -> None:
        """Fire the schedules with AtStart, if this worker is the first one; before its first claim."""
        if ids := [each.id for each in self.registry.declared() if waits_for_start(each)]:
            await begin(self.client, ids)

    async def start_engine(self) -> Supervisor | None:
        """Build and start the engine of this process; None if the settings switch it off."""
        settings, registry = self.settings, self.registry
        if not settings.enabled:
            log.info("the engine is switched off (enabled=false): this process only submits")
            return None
        for sentence in unknown_tasks(settings, registry.tasks):
            log.warning(sentence)
        for sentence in passed_over(settings):
            log.info(sentence)
        engine, late = self.build_engine(), None
        try:
            await self.declare_schedules()
            await self.begin_schedules()
        except StoreUnavailable as error:
            if not error.passing:
                raise
            # A full server refuses writes that need memory and still lets workers finish runs, which frees memory.
            log.warning("the store refuses the schedules of this app for now, the worker starts without: %s", error)
            late = self.declare_schedules
        owner = None if settings.source("name") == "default" else settings.name  # other apps have the default name too
        declared = {schedule.id for schedule in registry.declared()}
        engine.undeclared |= await log_leftovers(self.client, {*registry.names(), OPERATION}, owner, declared)
        await engine.start(late)
        return engine

    def build_engine(
        self,
        name: str | None = None,
        backend: Backend | None = None,
        tuning: Tuning | None = None,
        hooks: Hooks | None = None,
        resources: Resources | None = None,
        world: World | None = None,
    ) -> Supervisor:
        """Return an engine for the tasks of the app, not started. Each argument that is not given is the app's own."""
        registry = self.registry
        return Supervisor(
            name or f"{self.settings.name}-{uuid.uuid4().hex[:16]}",
            backend or self.backend,
            {name: definition_of(task).handler() for name, task in registry.names().items() if self.calls}
            | {OPERATION: operation_handler(lambda: self.client, self.submitter)},
            registry.published(),
            tuning or self.tuning,
            hooks or self.hooks,
            resources or self.resources,
            world or self.world,
            FlowCode(
                {name: code for flow in registry.flows.values() for name, code in codes_of(flow).items()},
                registry.formats.written,
                partial(registry.children_of, lambda: self.client),
                registry.known(),
            ),
            self.renewer if backend is None else None,
            self.wear(),
            (tuning or self.tuning).grace,
            self._overridden,
        )

    def _overridden(self) -> Overrides:
        found = [known for known in (known() for known in self.overrides) if known]
        return {} if not found else found[0] if len(found) == 1 else dict(ChainMap(*map(dict, found)))
