"""The two threads of an open store: the writer, which commits waiting jobs together, and the reader.

A few jobs that are brief are committed on the event loop: the hop to the writer and back takes longer than the commit.
"""

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import msgspec

from rota.domain.run import DIGITS, onwards
from rota.errors import StoreCorrupt, StoreError, StoreUnavailable, Unstorable
from rota.stores import forks
from rota.stores.sqlite.connection import begin, begun, committed, explain
from rota.threads import AwaitedThread

T = TypeVar("T")
Connect = Callable[[], sqlite3.Connection]
Clock = Callable[[], float]
CLOCK = "SELECT now, specs, record_until FROM clock"
KEPT_EVERY = 0.05
"""Seconds between two writes of the time: a page less in most commits. See `_tick`."""
GROUP = 256
"""The most jobs in one commit, so that the first job does not wait long."""
BRIEF = 0.001
"""The event loop commits only while commits take less than so many seconds. On a slower disk the writer commits."""
FEW = 16
"""The most jobs that the event loop commits together."""
IN_A_ROW = 64
"""Commits of the event loop after which the writer does one, so that it can move the log into the database."""


class Transaction:
    """What a job gets: the connection, the time of the store, and a list of calls to make after the commit."""

    def __init__(self, connection: sqlite3.Connection, now: float, specs: int, record_until: float) -> None:
        self.connection = connection
        self.now = now
        self.specs = specs  # the number in the clock row that changes with every change of a spec
        self.record_until = record_until
        self.after_commit: list[Callable[[], None]] = []

    def execute(self, sql: str, *parameters: Any) -> int:
        return self.connection.execute(sql, parameters).rowcount

    def executemany(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        self.connection.executemany(sql, rows)

    def one(self, sql: str, *parameters: Any) -> Any:
        """Return the first column of the first row. A query for many rows returns them as one JSON array."""
        row = self.connection.execute(sql, parameters).fetchone()
        return None if row is None else row[0]


class Job(Generic[T]):
    def __init__(self, work: Callable[[Transaction], T], future: asyncio.Future[T] | None) -> None:
        self.work = work
        self.future = future
        self.result: T | None = None
        self.error: BaseException | None = None

    def attempt(self, transaction: Transaction) -> None:
        self.result, self.error = self.work(transaction), None

    def deliver(self) -> None:
        if self.future is None or self.future.cancelled():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)  # type: ignore[arg-type]


class SqlThread:
    """A thread with a connection and a queue of jobs. `opened` ends when the thread has connected, or could not."""

    def __init__(self, connect: Connect, path: str, name: str, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[Job[Any] | None] = queue.SimpleQueue()
        self._connect = connect
        self._connection: sqlite3.Connection
        self._open = False
        self.opened: asyncio.Future[None] = self._loop.create_future()
        self.at_work = threading.Lock()
        forks.register(self)
        self._thread = AwaitedThread(self._run, name)
        self._closed = False
        self._thread.start()

    async def do(self, work: Callable[[Transaction], T]) -> T:
        if self._closed:
            raise StoreUnavailable(f"{self.path} is closed", passing=False)
        future: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(Job(work, future))
        return await future

    async def close(self) -> None:
        """Close the connection after the jobs that already wait."""
        if not self._closed:
            self._closed = True
            self._jobs.put(None)
        await self._thread.ended()

    def _run(self) -> None:
        first = Job[None](lambda _: None, self.opened)
        with self.at_work:  # a fork waits: a child that is forked meanwhile would inherit SQLite's locks
            try:
                self._open_again()
            except Exception as error:
                self._fail([first], error)
        self._deliver([first])
        if first.error is None:
            self._work()

    def _work(self) -> None:
        try:
            while (jobs := self._next()) is not None:
                if jobs:
                    with self.at_work:
                        self._reopened(jobs)
                    self._deliver(jobs)
        finally:
            with self.at_work:
                self._connection.close()

    def release_at_fork(self) -> None:
        """Close the connection: a fork must find no file open. The next job opens it again."""
        if self._open:
            self._connection.close()
            self._open = False

    def _reopened(self, jobs: list[Job[Any]]) -> None:
        try:
            self._open_again()
        except Exception as error:
            self._fail(jobs, error)
        else:
            self._perform(jobs)

    def _open_again(self) -> None:
        if not self._open:
            self._connection = self._connect()
            self._open = True

    def _next(self) -> list[Job[Any]] | None:
        """Wait for a job. Return all jobs that wait, GROUP at most; None after the last."""
        first = self._jobs.get()
        if first is None:
            return None
        jobs = [first]
        while len(jobs) < GROUP:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                self._jobs.put(None)
                break
            jobs.append(job)
        return jobs

    def _perform(self, jobs: list[Job[Any]]) -> None:
        raise NotImplementedError

    def _fail(self, jobs: list[Job[Any]], error: BaseException) -> None:
        if isinstance(error, sqlite3.DataError | UnicodeEncodeError | OverflowError):
            error = Unstorable(f"{self.path} cannot store this value: {error}")
        elif isinstance(error, sqlite3.Error):
            error = explain(error, self.path)
        elif isinstance(error, msgspec.DecodeError):
            error = StoreCorrupt(f"{self.path} holds what this version of rota cannot read: {error}")
        for job in jobs:
            job.error = error

    def _deliver(self, jobs: list[Job[Any]]) -> None:
        def deliver() -> None:
            for job in jobs:
                job.deliver()

        try:
            self._loop.call_soon_threadsafe(deliver)
        except RuntimeError:  # the event loop is closed: nobody waits for the results
            self._closed = True


class Writer(SqlThread):
    """Group commit: jobs that wait together share one transaction. If it fails, each gets a transaction of its own."""

    def __init__(self, connect: Connect, path: str, clock: Clock) -> None:
        self._following: list[Job[None]] = []
        self._brief: list[Job[Any]] = []
        self._slowest = 0.0  # seconds of the slowest of the last commits, each of which halves it
        self.in_a_row = 0  # commits of the event loop since the last one of the thread
        super().__init__(connect, path, "rota-sqlite-writer", clock)

    async def do_brief(self, work: Callable[[Transaction], T]) -> T:
        """Do `work`, which takes few steps. If only a FEW such jobs wait, the event loop itself commits them.

        The loop first goes on with what is ready: callers that come together share a commit.
        """
        if self._closed:
            raise StoreUnavailable(f"{self.path} is closed", passing=False)
        future: asyncio.Future[T] = self._loop.create_future()
        if not self._brief:
            self._loop.call_soon(self._start_brief)
        self._brief.append(Job(work, future))
        return await future

    async def close(self) -> None:
        self._start_brief()
        await super().close()

    def _start_brief(self) -> None:
        jobs, self._brief = self._brief, []
        here = 0 < len(jobs) <= FEW and self._committed_here(jobs)
        for job in jobs:
            if here:
                job.deliver()
            else:
                self._jobs.put(job)

    def _committed_here(self, jobs: list[Job[Any]]) -> bool:
        """Commit `jobs` on this thread, the event loop's, if that does not have to wait for anybody. Return False if
        the other thread has to do them."""
        if self._slowest >= BRIEF or self.in_a_row >= IN_A_ROW or not self._jobs.empty():
            return False
        if not self.at_work.acquire(blocking=False):
            return False
        try:
            if not self._open or not begun(self._connection):
                return False
            if not self.in_a_row:
                self._connection.execute("PRAGMA wal_autocheckpoint = 0")  # may take long: it is left to the thread
            self.in_a_row += 1
            done = self._attempt_all(jobs)
        finally:
            self.at_work.release()
        while self._following:
            self._jobs.put(self._following.pop(0))
        return done

    def follow(self, work: Callable[[Transaction], None]) -> None:
        """Do `work` next, in a transaction of its own, even if the store is being closed. For calls in `after_commit`.

        The callers of the commit do not wait for `work`, and do not get its errors.
        """
        self._following.append(Job(work, None))

    def _deliver(self, jobs: list[Job[Any]]) -> None:
        super()._deliver(jobs)
        while self._following:
            job = self._following.pop(0)
            with self.at_work:
                self._reopened([job])

    def _perform(self, jobs: list[Job[Any]]) -> None:
        try:
            if self.in_a_row:
                self._connection.execute("PRAGMA wal_autocheckpoint = 1000")  # the default of SQLite
                self.in_a_row = 0
            begin(self._connection, self.path)
        except Exception as error:
            self._fail(jobs, error)
            return
        if not self._attempt_all(jobs):
            for job in jobs:
                self._perform([job])

    def _attempt_all(self, jobs: list[Job[Any]]) -> bool:
        """Commit `jobs` in the transaction that has begun. Return False if it failed and they have to be done alone."""
        began = time.monotonic()
        try:
            self._commit(jobs)
        except Exception as error:
            if len(jobs) > 1:
                return False
            self._fail(jobs, error)
        if len(jobs) <= FEW:
            self._slowest = max(time.monotonic() - began, self._slowest / 2)
        return True

    def _commit(self, jobs: list[Job[Any]]) -> None:
        with committed(self._connection):
            transaction = self._tick()
            for job in jobs:
                job.attempt(transaction)
        for act in transaction.after_commit:
            act()

    def _tick(self) -> Transaction:
        """Return the transaction with the time of the store.

        All processes read the clock of one machine. So a time that this clock has reached need not be written, but for
        a clock that is set back: then the store's time goes back by KEPT_EVERY at most.
        """
        latest, *others = self._connection.execute(CLOCK).fetchone()
        now = onwards(latest, round(self._clock(), DIGITS))
        if now < latest or now > latest + KEPT_EVERY or latest < now > time.time():
            self._connection.execute("UPDATE clock SET now = ?", (now,))
        return Transaction(self._connection, now, *others)


class Reader(SqlThread):
    """Reads at the same time as the writer. While there are subscribers, it also checks `PRAGMA data_version`, which
    changes with every commit of another connection."""

    def __init__(self, connect: Connect, path: str, clock: Clock, noticed: Callable[[Transaction], None]) -> None:
        self._noticed = noticed
        self._paces: list[float] = []  # seconds between two checks, for each subscriber
        self._looked_at = 0.0
        self._seen = 0
        super().__init__(connect, path, "rota-sqlite-reader", clock)

    @contextmanager
    def looking(self, every: float) -> Generator[None]:
        """Check for commits every `every` seconds, or more often for another subscriber."""
        self._paces.append(every)
        self.look_now()
        try:
            yield
        finally:
            self._paces.remove(every)

    def look_now(self) -> None:
        """Call `noticed` soon, even if `PRAGMA data_version` has not changed."""
        self._seen = -1
        self._looked_at = 0.0
        self._jobs.put(Job(lambda _: None, self._loop.create_future()))  # ends the wait in `_next`

    def _next(self) -> list[Job[Any]] | None:
        pace = min(self._paces, default=None)
        if pace is None:
            return super()._next()
        left = self._looked_at + pace - time.monotonic()
        if left <= 0:
            self._look()
            left = pace
        try:
            job = self._jobs.get(timeout=left)
        except queue.Empty:
            return []
        return None if job is None else [job]

    def _look(self) -> None:
        self._looked_at = time.monotonic()
        try:
            with self.at_work:
                self._open_again()
                version = self._connection.execute("PRAGMA data_version").fetchone()[0]
                if version != self._seen:
                    self._seen = version
                    self._noticed(self._transaction())
        except (sqlite3.Error, StoreError):
            return  # hints may get lost; the next call of the store raises the error

    def _perform(self, jobs: list[Job[Any]]) -> None:
        for job in jobs:
            try:
                job.attempt(self._transaction())
            except Exception as error:
                self._fail([job], error)

    def _transaction(self) -> Transaction:
        latest, *others = self._connection.execute(CLOCK).fetchone()
        return Transaction(self._connection, onwards(latest, round(self._clock(), DIGITS)), *others)
