"""Rota: the composition root. It collects tasks, gives out the client, and runs the engine."""

import logging
import uuid
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, overload

from rota.client import Client
from rota.domain.policy import Lost, Retry
from rota.engine.context import Context
from rota.engine.supervisor import Supervisor
from rota.engine.tuning import Tuning
from rota.errors import DuplicateTask, InvalidOptions, NotRunning, UnknownTask
from rota.handle import RunHandle
from rota.settings import default_url
from rota.store import Backend
from rota.stores import connect
from rota.task import Bound, Task, TaskOptions

log = logging.getLogger("rota")

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Coro = Coroutine[Any, Any, R]


class Decorator(Protocol):
    """`@app.task(...)`: the four shapes a task function may have."""

    @overload
    def __call__(
        self, fn: Callable[Concatenate[Context, P], Coro[R]], /
    ) -> Task[Concatenate[Context, P], P, Coro[R], R]: ...
    @overload
    def __call__(self, fn: Callable[P, Coro[R]], /) -> Task[P, P, Coro[R], R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], R], /) -> Task[Concatenate[Context, P], P, R, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Task[P, P, R, R]: ...


class Rota:
    """One app: its tasks and the store they live in.

    `url` defaults to ROTA_URL, else to an SQLite file in `.rota/` beside the project file; a Backend is taken as it is.
    `async with app:` runs the engine; submitting needs nothing but the app.
    """

    def __init__(
        self,
        url: str | Backend | None = None,
        *,
        concurrency: int = 10,
        lease: float = 30.0,
        grace: float = 30.0,
    ) -> None:
        try:
            self.tuning = Tuning(concurrency=concurrency, lease=lease, grace=grace)
        except ValueError as error:
            raise InvalidOptions(str(error)) from None
        self.backend = connect(url or default_url()) if url is None or isinstance(url, str) else url
        self.tasks: dict[str, Task[..., ..., Any, Any]] = {}
        self._client = Client(self.backend)
        self._engine: Supervisor | None = None

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
    def task(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        retry: Retry = ...,
        timeout: float | None = None,
        lost: Lost = "retry",
        max_losses: int = 5,
        priority: int = 0,
    ) -> Decorator: ...
    def task(self, fn: Callable[..., Any] | None = None, **options: Any) -> Any:
        """Define a task: `@app.task`, or `@app.task(retry=Retry(5), timeout=30)`."""

        def define(fn: Callable[..., Any]) -> Task[..., ..., Any, Any]:
            task: Task[..., ..., Any, Any] = Task(fn, TaskOptions(**options), lambda: self._client)
            if task.name in self.tasks:
                raise DuplicateTask(
                    f"two functions are named {task.name}; give one of them name=, so that runs find the right one"
                )
            self.tasks[task.name] = task
            return task

        return define if fn is None else define(fn)

    # -- submitting and following ----------------------------------------------------------------------------------

    async def submit_many(self, calls: Sequence[Bound[R]]) -> list[RunHandle[R]]:
        """Many runs in one step; one handle per call, in order.

        Raises before any is made if one has bad arguments. One that a guard refuses does not stop the others: its
        handle is false, and raises Refused when it is used.
        """
        runs = [bound.to_run() for bound in calls]
        store = await self._client.store()
        decisions = (await store.put(runs)).items
        return [bound.task.handle_for(decision) for bound, decision in zip(calls, decisions, strict=True)]

    def handle(self, id: str, task: str | None = None) -> RunHandle[Any]:
        """Follow any run by its id; its result comes typed if the task is named and known here."""
        if task is None:
            return RunHandle(self._client, id)
        if task not in self.tasks:
            raise UnknownTask(f"no task {task} is defined here")
        return self.tasks[task].handle(id)

    def client(self) -> Client:
        """Only submitting and reading: `async with app.client():` opens the store here, without an engine."""
        return self._client

    # -- running ---------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the engine on this event loop; harmless if it runs already."""
        if self._engine is not None:
            return
        handlers = {name: task.handler() for name, task in self.tasks.items()}
        engine = Supervisor(uuid.uuid4().hex, self.backend, handlers, self.tuning)
        self._engine = engine
        try:
            await engine.start()
        except BaseException:
            self._engine = None
            raise

    async def stop(self, grace: float | None = None) -> None:
        """Stop claiming, wait up to `grace` seconds for running handlers, give back the rest. Twice is fine."""
        engine = self._engine
        if engine is not None:
            await engine.stop(self.tuning.grace if grace is None else grace)
            if self._engine is engine:
                self._engine = None
        await self._client.close()

    @property
    def engine(self) -> Supervisor:
        if self._engine is None:
            raise NotRunning("the engine is not running; use `async with app:` or `await app.start()`")
        return self._engine

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()
