"""For tests of Django projects: run what was enqueued, on the thread of the test and inside its transaction.

from rota.django.testing import RotaTestMixin, assert_enqueued, run_tasks, travel
"""

import asyncio
import inspect
import queue
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import Context as Variables
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from asgiref.sync import async_to_sync, sync_to_async
from django.db import DatabaseError, connections
from msgspec.structs import replace

from rota.app.core import core_of
from rota.client.drain import drained
from rota.django import databases
from rota.django.conf import conf
from rota.django.project import app
from rota.django.tasks_api import Task
from rota.domain.run import Run, State
from rota.domain.schedule import Schedule
from rota.engine.context import Context
from rota.engine.handler import Handler
from rota.engine.world import World
from rota.errors import DrainTimeout, InvalidOptions
from rota.store import RunQuery
from rota.testing import StoreClock
from rota.testing import assert_not_submitted as _assert_not_submitted
from rota.testing import assert_submitted as _assert_submitted

if TYPE_CHECKING:
    from unittest import TestCase as _TestCase

    from django.db.backends.base.base import BaseDatabaseWrapper
else:
    _TestCase = object  # unittest collects every TestCase that a module has

__all__ = [
    "RotaTestMixin",
    "arun_tasks",
    "assert_enqueued",
    "assert_not_enqueued",
    "fresh_store",
    "run_tasks",
    "travel",
]

LOOK_AGAIN = 0.05
"""Seconds after which the store is looked at again, when no hint came."""
PAGE = 1000


class _Job(NamedTuple):
    """One call of a task that the thread of the test has to make."""

    call: Callable[[], Any]
    variables: Variables
    answer: Callable[[Any, BaseException | None], None]


def run_tasks(
    *, until: datetime | timedelta | None = None, raise_failures: bool = True, timeout: float = 30.0
) -> list[Run]:
    """Run all runs that are due, and those that they enqueue, and return them as they are afterwards.

    Functions are called one after the other on this thread, inside the transaction of the test; the `on_commit`
    callbacks that a task registers are called when it ends. `until` moves the clock of the store from due time to due
    time up to that instant: retries, delayed runs and schedules of this span run too. `raise_failures`: raise the
    exception of the first run that fails for good.
    """
    session = _Session(timeout)
    session.drain()
    if until is not None:
        last = _instant(until)
        while (due := session.next_due(last)) is not None:
            StoreClock(app().backend).move_to(datetime.fromtimestamp(due, UTC) + timedelta(milliseconds=1))
            session.drain()
        if last > StoreClock(app().backend).now:
            StoreClock(app().backend).move_to(last)
    runs = session.called()
    for run in runs:
        if raise_failures and run.state is State.FAILED:
            raise session.errors.get(run.id) or AssertionError(f"{run.task} {run.id} failed: {run.reason}")
    return runs


arun_tasks = sync_to_async(run_tasks, thread_sensitive=True)
"""`run_tasks` for async tests: the functions are called on the thread that has the test's transaction."""


def assert_enqueued(task: Any, *args: Any, **kwargs: Any) -> Run:
    """Assert that `task` was enqueued: with these arguments, or with any if none are given. Returns the newest run."""
    name = _name(task)
    return app().portal.call(lambda: _assert_submitted(app(), name, *args, **kwargs))


def assert_not_enqueued(task: Any, *args: Any, **kwargs: Any) -> None:
    """Assert that `task` was not enqueued with these arguments, or not at all if none are given."""
    name = _name(task)
    app().portal.call(lambda: _assert_not_submitted(app(), name, *args, **kwargs))


def travel(
    to: datetime | None = None, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
) -> datetime:
    """Move the clock of the store forward, and return its new time. What has become due runs with `run_tasks`.

    Only the store's clock moves: `timezone.now()` does not, and neither does the clock of the database.
    """
    clock = StoreClock(app().backend)
    if to is not None:
        clock.move_to(_instant(to))
    return clock.move(days=days, hours=hours, minutes=minutes, seconds=seconds)


@contextmanager
def fresh_store() -> Generator[None]:
    """Until the block ends, the project has an empty store; with another `ROTA["TEST"]["URL"]` than memory://, that
    store as it is."""
    from rota.stores.memory import MemoryBackend

    url = conf().test.url
    with core_of(app()).bound_to(MemoryBackend() if url == "memory://" else databases.connect(url)):
        yield


class RotaTestMixin(_TestCase):
    """For `class ShopTests(RotaTestMixin, TestCase)`: each test begins with an empty store."""

    def setUp(self) -> None:
        self.enterContext(fresh_store())
        super().setUp()


class _Session:
    """The calls of one `run_tasks`."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._ids: dict[str, None] = {}
        self.errors: dict[str, BaseException] = {}

    def drain(self) -> None:
        """Run what is due now. The engine works on its own loop and hands each call to this thread."""
        raised: list[BaseException] = []

        def work() -> None:
            try:
                app().portal.call(self._engine)
            except BaseException as error:
                raised.append(error)
            finally:
                self._jobs.put(None)

        engine = threading.Thread(target=work, name="rota-test", daemon=True)
        engine.start()
        while (job := self._jobs.get()) is not None:
            self._call(job)
        engine.join()
        if raised:
            raise raised[0]

    def next_due(self, last: datetime) -> float | None:
        """Return the next instant up to `last` at which something is due."""
        return app().portal.call(lambda: self._next_due(last.timestamp()))

    def called(self) -> list[Run]:
        """Return the runs whose tasks were called, in this order, as they are now."""

        async def read() -> list[Run]:
            page = (await app().client().runs(RunQuery(ids=list(self._ids), limit=max(1, len(self._ids))))).runs
            found = {run.id: run for run in page}
            return [found[id] for id in self._ids if id in found]

        return app().portal.call(read) if self._ids else []

    async def _engine(self) -> None:

        core = core_of(app())
        client = app().client()
        engine = core.build_engine(world=World(threads=False, adapt=self._adapted))
        heard = await client.news(0)
        await core.declare_schedules()
        await engine.start()
        try:
            async with asyncio.timeout(self._timeout):
                while not await drained(client, engine, core.registry.names(), everywhere=True):
                    heard = await client.news(LOOK_AGAIN, heard)
        except TimeoutError:
            raise DrainTimeout(f"run_tasks: something was due or running for {self._timeout:g} s") from None
        finally:
            await engine.stop(0)

    async def _next_due(self, last: float) -> float | None:
        client = app().client()
        due = [run.due_at async for run in client.all_runs(RunQuery(state=State.QUEUED, limit=PAGE)) if not run.needs]
        due += [
            schedule.fires_at
            async for schedule in client.all_rows(Schedule)
            if schedule.fires_at and not schedule.paused
        ]
        now = await client.now()
        return min((at for at in due if now < at <= last), default=None)

    def _adapted(self, handler: Handler) -> Handler:
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._handed_over(handler.fn, args, kwargs)

        return replace(handler, fn=call, executor="loop")

    async def _handed_over(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Wait until the thread of the test has called `fn`."""

        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def answer(result: Any, error: BaseException | None) -> None:
            def resolve() -> None:
                if not future.done():
                    future.set_exception(error) if error is not None else future.set_result(result)

            loop.call_soon_threadsafe(resolve)

        self._ids.setdefault(Context.current().run.id)
        made: Callable[..., Any] = async_to_sync(fn) if inspect.iscoroutinefunction(fn) else fn
        self._jobs.put(_Job(lambda: made(*args, **kwargs), copy_context(), answer))
        return await future

    def _call(self, job: _Job) -> None:
        id = job.variables.run(Context.current).run.id
        try:
            with _as_in_autocommit():
                result = job.variables.run(job.call)
        except BaseException as error:
            self.errors[id] = error
            job.answer(None, error)
        else:
            job.answer(result, None)


@contextmanager
def _as_in_autocommit() -> Generator[None]:
    """A task writes outside of a transaction, also if the test has one: what it wrote before an error stays, unless the
    database has given up the transaction; and what it does on commit is done when the task ends."""
    open_here = [each for each in connections.all(initialized_only=True) if each.in_atomic_block]
    savepoints = [(each, str(each.savepoint()), len(each.run_on_commit)) for each in open_here]
    try:
        yield
    except BaseException:
        for connection, savepoint, callbacks in savepoints:
            if _usable(connection):
                connection.savepoint_commit(savepoint)
                _run_on_commit(connection, callbacks)
            else:
                connection.needs_rollback = False  # else Django refuses the rollback too
                connection.savepoint_rollback(savepoint)
        raise
    for connection, savepoint, callbacks in savepoints:
        connection.savepoint_commit(savepoint)
        _run_on_commit(connection, callbacks)


def _usable(connection: "BaseDatabaseWrapper") -> bool:
    if connection.needs_rollback:
        return False
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return False
    return True


def _run_on_commit(connection: "BaseDatabaseWrapper", first: int) -> None:
    """Call what the task has left for the commit, and what these calls leave."""
    while len(connection.run_on_commit) > first:
        left: Any = connection.run_on_commit.pop(first)  # the stubs lack its last part
        _, callback, robust = left
        try:
            callback()
        except Exception:
            if not robust:
                raise


def _name(task: Any) -> str:
    if isinstance(task, str):
        return task
    return str(task.module_path if isinstance(task, Task) else task.name)


def _instant(given: datetime | timedelta) -> datetime:
    if isinstance(given, timedelta):
        return StoreClock(app().backend).now + given
    if given.tzinfo is None:
        raise InvalidOptions(f"{given!r} has no time zone; use timezone.now() of Django, or tzinfo=UTC")
    return given
