"""Rota: one app. It collects tasks and flows, submits and follows runs, and starts and stops the engine."""

import inspect
import math
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar, Unpack, overload

from rota.app.core import Core
from rota.app.engine_lifecycle import AsyncOnly
from rota.app.finding import Finding
from rota.app.leases import Fence, Leases
from rota.app.registry import AnyTask, Coro, Decorator
from rota.app.status import Health, Status, health_of, status_of
from rota.app.steering import Steering
from rota.client.client import Client
from rota.client.event_stream import EventStream
from rota.client.handle import RunHandle
from rota.client.late_store import LateStore
from rota.client.leftovers import UnknownNames
from rota.client.portal import Portal
from rota.client.submissions import SubmitHook
from rota.client.workers import Workers
from rota.domain.decision import Decision
from rota.domain.event import Event
from rota.domain.flow import OnFailure
from rota.domain.once import Once
from rota.domain.results import FailOn
from rota.domain.spec import TaskSpec
from rota.domain.triggers import Trigger
from rota.engine.context import Context
from rota.engine.hooks import EventName
from rota.engine.middleware import Middleware
from rota.engine.supervisor import Resources, Supervisor
from rota.errors import InvalidOptions, NotRunning, StoreError, UnknownTask
from rota.flow import Flow, StepArgs
from rota.schedules.plans import Planning
from rota.settings import load
from rota.store import Backend, Depth, Reads, RowQuery
from rota.stores import connect
from rota.task import Bound, Task, TaskOptions, call_of, handles_of, runs_of
from rota.task.remote import RemoteTask
from rota.task.submitter import unavailable
from rota.why import Why, why

P = ParamSpec("P")
R = TypeVar("R")
SPEC_MEMORY = 5.0
"""Seconds after which the published spec of a task whose code is elsewhere is read again."""


class Rota(Finding, Steering, Planning, AsyncOnly):
    """One app: its tasks and the store they live in.

    A setting that is not given here comes from a `ROTA_*` variable, then from rota.toml or `[tool.rota]` in
    pyproject.toml. `url` is by default an SQLite file in `.rota/` beside the project file; a function that returns the
    URL is called when the store is needed. `namespace` separates apps that share one Redis or PostgreSQL server.
    `async with app:` runs the engine; a submit needs only the app.
    `queues` are the queues whose runs the engine takes, by default all queues. `http_hosts` are the hosts that the
    built-in task `http` may call; without them, there is no such task.
    `resources` is an async context manager that each worker process enters once; handlers find its value as
    `ctx.resources`. `fail_on` says which returned values are failures, for every task that has no `fail_on` of its own
    and is no step of a flow that has one: `fail_on=status_dict` reads `{"status": "failed", "message": "no data"}`.
    `middleware` are async functions around every call: `async def timed(ctx, call): return await call()`.
    """

    _current: ClassVar["Rota | None"] = None

    def __init__(
        self,
        url: str | Backend | Callable[[], str] | None = None,
        *,
        namespace: str | None = None,
        name: str | None = None,
        version: str | None = None,
        environment: str | None = None,
        tz: str | None = None,
        concurrency: int | None = None,
        queues: Sequence[str] | None = None,
        http_hosts: Sequence[str] | None = None,
        lease: float | None = None,
        grace: float | None = None,
        patience: float | None = None,
        enabled: bool | None = None,
        trace_store: bool | None = None,
        trace_create: bool | None = None,
        resources: Resources | None = None,
        fail_on: FailOn | None = None,
        middleware: Sequence[Middleware] = (),
    ) -> None:
        if namespace is not None and not (url is None or isinstance(url, str)):
            raise InvalidOptions(f"namespace={namespace!r}: a Backend is taken as it is; name it in the URL instead")
        store = None if url is None or isinstance(url, str) else LateStore(url, connect) if callable(url) else url
        settings = load(
            url=url if url is None or isinstance(url, str) else store and store.url,
            namespace=namespace,
            name=name,
            version=version,
            environment=environment,
            tz=tz,
            concurrency=concurrency,
            queues=queues,
            http_hosts=http_hosts,
            lease=lease,
            grace=grace,
            patience=patience,
            enabled=enabled,
            trace_store=trace_store,
            trace_create=trace_create,
        )
        self._core = core = Core(settings, store, resources, fail_on, middleware)
        self._submitter, self._formats = core.submitter, core.registry.formats
        self.dependency_overrides: dict[Callable[..., Any], Callable[..., Any]] = {}
        """For tests: what is called in place of a dependency, `app.dependency_overrides[get_db] = get_test_db`."""
        core.overrides.append(lambda: self.dependency_overrides)
        self._unknown_names = UnknownNames()
        self._specs_seen: dict[str, tuple[TaskSpec | None, float]] = {}
        self.settings = settings
        self.schedules = core.schedules
        self.workers = Workers(core.noticing_client)
        self._leases = Leases(core.noticing_client)
        Rota._current = self

    @classmethod
    def current(cls) -> "Rota":
        """Return the app of this process: the app that was created or started last."""
        if cls._current is None:
            raise NotRunning("no app has been made in this process; create one with Rota()")
        return cls._current

    @property
    def tasks(self) -> Mapping[str, AnyTask]:
        """The tasks that the code of this app defines, by name; a flow is a task too."""
        return self._core.registry.tasks

    @property
    def flows(self) -> Mapping[str, Flow]:
        """The flows that the code of this app defines, by name."""
        return self._core.registry.flows

    @property
    def portal(self) -> Portal:
        """Runs async code from synchronous code: `app.portal.call(app.health)`."""
        return self._core.portal

    @property
    def backend(self) -> Backend:
        """The store of this app, not opened; `rota.testing.StoreClock` takes it."""
        return self._core.backend

    # -- defining --------------------------------------------------------------------------------------------------

    @overload
    def task(
        self, fn: Callable[Concatenate[Context, P], Coro[R]], /
    ) -> Task[Concatenate[Context, P], P, Coro[R], R]: ...
    @overload
    def task(self, fn: Callable[P, Coro[R]], /) -> Task[P, P, Coro[R], R]: ...
    @overload
    def task(self, fn: Callable[Concatenate[Context, P], R], /) -> Task[Concatenate[Context, P], P, R, R]: ...
    @overload
    def task(self, fn: Callable[P, R], /) -> Task[P, P, R, R]: ...
    @overload
    def task(self, **options: Unpack[TaskOptions]) -> Decorator: ...
    def task(self, fn: Callable[..., Any] | None = None, **options: Any) -> Any:
        """Define a task: `@app.task`, or `@app.task(retry=Retry(5), timeout=30)`. TaskOptions describes each option."""

        def define(fn: Callable[..., Any]) -> AnyTask:
            return self._core.registry.define(fn, options)

        return define if fn is None else define(fn)

    def flow(
        self,
        name: str,
        *,
        once: Once,
        recheck: Trigger | str | None = None,
        on_failure: OnFailure = "block",
        description: str = "",
        fail_on: FailOn | None = None,
        args: StepArgs = None,
    ) -> Flow:
        """Define a flow: steps that follow each other, once per period.

        `recheck` says when a period starts, in the zone of `once`. A recheck also starts the steps of the period that
        were lost, have failed or are new. Without `recheck`, call `flow.start`. `fail_on` judges the results of steps
        whose tasks have no `fail_on`. `args` are arguments for all steps, or a function that returns them: a step takes
        those that it has parameters for, unless its own `args` or the step before it give them.
        """
        return self._core.registry.define_flow(name, once, recheck, on_failure, description, fail_on, args)

    def on(self, event: EventName, hook: Callable[[Event], Any]) -> None:
        """Call `hook(event)` when `event` happens in this process. The hook is a plain or async function; it runs
        beside the work and delays no run."""
        try:
            self._core.hooks.add(event, hook)
        except ValueError as error:
            raise InvalidOptions(str(error)) from None

    def before_submit(self, hook: SubmitHook) -> SubmitHook:
        """Call `hook(submission)` before this process puts a run into the store: `@app.before_submit`.

        The hook is a plain function. It may return headers to add to the run. If it raises, nothing is put, and the
        submitter gets the exception. Runs that schedules make are put by workers without this hook.
        """
        if inspect.iscoroutinefunction(hook):
            raise InvalidOptions(f"before_submit: {hook!r} is async; a plain function is called at every submit")
        self._core.before_submit.append(hook)
        return hook

    # -- submitting and following ----------------------------------------------------------------------------------

    async def submit(self, task: str, *args: Any, **kwargs: Any) -> RunHandle[Any]:
        """Submit by name. If the task's code is not here, the spec that workers published says how to call the task.

        A task that no worker has published takes only keyword arguments, which are not checked. Its run waits for a
        worker that knows the task, and a warning names the task that was probably meant.
        """
        known = self._core.registry.find(task) or await self._remote(self._core.client, task)
        if isinstance(known, RemoteTask) and not known.spec.executor:
            await self._unknown_names.warn(self._core.client, task, self._core.registry.names())
        return await known.submit(*args, **kwargs)

    async def touch(self, task: str, *args: Any, **kwargs: Any) -> Decision:
        """Touch by name. For a task that is unknown, disabled or has no activity, the decision is false and its
        `reason` says why."""
        try:
            known: AnyTask | RemoteTask | None = self._core.registry.find(task)
            if known is None:  # the store is asked once and without retries, because nobody waits for a touch
                known = await self._remote(await self._core.client.store(), task)
        except StoreError as error:
            return unavailable(task, error)
        return await known.touch(*args, **kwargs)

    async def _remote(self, store: Reads, task: str) -> RemoteTask:
        """Return the task by its published spec, which is read again after SPEC_MEMORY seconds, so that most touches
        cost one round trip."""
        spec, known_at = self._specs_seen.get(task, (None, -math.inf))
        if spec is None or time.monotonic() - known_at > SPEC_MEMORY:
            found = (await store.rows(TaskSpec, RowQuery(names=[task]))).items
            spec = found[0] if found else None
            if spec is not None:  # unknown names are not kept, because callers outside may send any number of them
                self._specs_seen[task] = (spec, time.monotonic())
        return RemoteTask(spec or TaskSpec(task), self._submitter)

    async def submit_many(self, calls: Sequence[Bound[R]]) -> list[RunHandle[R]]:
        """Submit many calls in one transaction; returns one handle per call, in order.

        A call that a guard refuses does not stop the others: its handle is false, and raises Refused when it is used.
        """
        made = [call_of(bound) for bound in calls]
        if any(call.once is not None for call in made):
            now = await self._core.client.now()
            runs = [call.to_run_at(now) for call in made]
        else:
            runs = runs_of(made)
        return handles_of(calls, (await self._core.client.put(runs)).items)

    def handle(self, id: str, task: str | None = None) -> RunHandle[Any]:
        """Follow a run by its id. If `task` names a task of this app, the result has the type that the task returns."""
        if task is None:
            return RunHandle(self._core.client, id)
        if task not in self._core.registry.names():
            raise UnknownTask(f"no task {task} is defined here")
        return self._core.registry.names()[task].handle(id)

    def client(self) -> Client:
        """Return a client that submits and reads: `async with app.client():` opens the store here, without an
        engine."""
        return self._core.noticing_client()

    # -- leasing ---------------------------------------------------------------------------------------------------

    def lease(
        self, name: str, seconds: float = 600.0, timeout: float | None = None
    ) -> AbstractAsyncContextManager[Fence]:
        """Have the lease `name` alone among all processes: `async with app.lease("nightly", seconds=600) as fence:`.

        The lease is renewed during the block, and lapses `seconds` after its holder has died. The block waits for
        another holder, at most `timeout` seconds, then raises TimeoutError. If the lease is lost, the block is
        interrupted and raises LeaseLost. A block within a block of the same name waits for itself.
        """
        return self._leases.lease(name, seconds, timeout)

    def lease_sync(
        self, name: str, seconds: float = 600.0, timeout: float | None = None
    ) -> AbstractContextManager[Fence]:
        """`lease` for synchronous code, in any thread. The block cannot be interrupted: look at `fence.lost`. After a
        loss, the end of the block raises LeaseLost."""
        return self._leases.lease_sync(name, seconds, timeout)

    # -- running ---------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the engine on this event loop, unless it runs already. With `enabled=False`, the app stays a client."""
        await self._core.lifecycle.start(self._started)

    def start_sync(self) -> None:
        """`start` from synchronous code (Django, Flask, a script): the engine runs on a thread of its own, until
        `stop_sync` or the end of the process. Call `start_sync` after a fork: a forked child has no engine."""
        self._core.lifecycle.start_sync(self.start)

    def stop_sync(self, grace: float | None = None) -> None:
        """`stop` from synchronous code, from any thread; also stops an engine that another thread's event loop
        started."""
        self._core.lifecycle.stop_sync(grace)

    @contextmanager
    def running(self, grace: float | None = None) -> Generator[Self]:
        """`with app.running():` runs the engine in synchronous code and stops the engine when the block ends."""
        self.start_sync()
        try:
            yield self
        finally:
            self.stop_sync(grace)

    async def _started(self) -> Supervisor | None:
        engine = await self._core.start_engine()
        if engine is not None:
            Rota._current = self
        return engine

    @contextmanager
    def bound_to(self, url: str | Backend = "memory://") -> Generator[Self]:
        """For tests: use the store at `url` until the block ends; the app's own store stays as it is."""
        with self._core.bound_to(url):
            yield self

    async def stop(self, grace: float | None = None) -> None:
        """Stop claiming runs, wait up to `grace` seconds for running handlers, and give the other runs back.

        `stop` may be called twice, and from another event loop than the engine's. If `resources` or a store fails to
        close, the app is stopped all the same, and `stop` raises that error.
        """
        await self._core.lifecycle.stop(grace)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    # -- seeing ---------------------------------------------------------------------------------------------------

    def status(self) -> Status:
        """Return the state of this process: its engine, its running tasks, its loops, and the next ticks of its
        schedules."""
        seen = dict(self.schedules.seen)  # a copy, because another thread may add to it
        return status_of(self._core.lifecycle.engine, self.tasks, seen)

    async def health(self) -> Health:
        """Return the health of this process: true if the store answers and the engine, if started, has claimed
        lately."""
        return await health_of(self._core.lifecycle.engine, self._core.client)

    async def why(self, subject: str, key: str | None = None) -> Why:
        """Return why a task (or one `key` of the task), a schedule or a run does not run; print the answer to read
        it."""
        return await why(self._core.client, subject, key)

    def events(
        self, cursor: str | None = None, *, task: str | Collection[str] = (), of: str | Collection[str] = ()
    ) -> EventStream:
        """Return what happens in the store from now on, in every process: `async for event in app.events():`.

        `cursor`: go on after the event that had this `cursor`. An event named "gap" says that events are missing: read
        the runs that matter again. `task` and `of` ("runs", "tasks", "schedules") leave out other events.
        """
        tasks, scopes = ((one,) if isinstance(one, str) else one for one in (task, of))
        return EventStream(self._core.client, cursor, tasks, scopes)

    async def depths(self) -> dict[str, Depth]:
        """Return the exact numbers of unfinished runs of every task that this app defines, a worker published or the
        store has runs of."""
        known = {*self.tasks, *(spec.name for spec in (await self._core.client.rows(TaskSpec)).items)}
        found = {depth.task: depth for depth in (await self._core.client.depths()).items}
        return {name: found.get(name) or Depth(name, 0, 0) for name in sorted({*known, *found})}
