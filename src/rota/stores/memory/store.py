"""MemoryStore: each verb is a call of the ledger over a MemoryBook, under one lock."""

import threading
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from itertools import islice
from operator import itemgetter
from typing import Any, TypeVar

from rota import store as port
from rota.domain.decision import Decision, DecisionCount
from rota.domain.edits import RunEdit
from rota.domain.fan import Fan
from rota.domain.overrides import Overrides
from rota.domain.run import DIGITS, Lease, NewRun, Note, Run, State, after, onwards
from rota.domain.schedule import Schedule, Tick
from rota.domain.settlement import Settlement, Verdict
from rota.domain.spec import TaskSpec, joined
from rota.stores import forks
from rota.stores.audit import filled
from rota.stores.bounds import LEDGER
from rota.stores.hub import Hub
from rota.stores.idle import to_hint
from rota.stores.ledger import (
    admit,
    claim,
    control,
    declare,
    direct,
    dry,
    edit,
    fans,
    freeze,
    holds,
    mark,
    override,
    renew,
    settle,
)
from rota.stores.memory.book import MemoryBook
from rota.stores.names import control_possible, direct_possible, possible_edit, possible_rows, possible_runs, storable
from rota.stores.retention import MARK_MEMORY, WORKER_MEMORY
from rota.stores.search import Found, Search, behind, of_ids

T = TypeVar("T")
CAPACITY = 1_000_000
"""The most unfinished runs. More puts are refused as queue_full."""


class MemoryBackend:
    """One store in this process; everybody who opens the backend gets the same store."""

    url = "memory://"
    poll = 5.0
    submits_within = None

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.skew = 0.0
        self._store = MemoryStore(MemoryBook(capacity), lambda: time.time() + self.skew)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[port.Store]:
        yield self._store


class MemoryStore:
    hands_over = None

    def __init__(self, book: MemoryBook, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.at_work = threading.Lock()
        self._hub = Hub()
        self._book = book
        forks.register(self)

    def release_at_fork(self) -> None:
        """Do nothing: a fork copies the book between two transactions, and there is no file to close."""

    async def put(
        self, runs: Sequence[NewRun], plan: port.Plan | None = None, audit: port.AuditEntry | None = None
    ) -> port.Reply[Decision]:
        return self._transact(lambda book: admit.put(book, runs, plan), audit)

    async def try_put(self, run: NewRun) -> port.Reply[Decision]:
        return self._transact(lambda book: dry.try_put(book, run))

    async def fire(self, ticks: Sequence[Tick], audit: port.AuditEntry | None = None) -> port.Reply[port.Fired]:
        return self._transact(lambda book: admit.fire(book, ticks), audit)

    async def claim(self, request: port.ClaimRequest) -> port.Claim:
        with self._transaction() as book:
            return claim.claim(book, request)

    async def renew(
        self, leases: Sequence[Lease], seconds: float, notes: Mapping[str, Note] | None = None
    ) -> port.Reply[port.Renewal]:
        return self._transact(lambda book: renew.renew(book, leases, after(book.now, seconds), notes or {}))

    async def settle(self, settlements: Sequence[Settlement]) -> port.Reply[Verdict]:
        return self._transact(lambda book: settle.settle(book, settlements))

    async def control(
        self,
        command: port.Command,
        names: Sequence[str],
        note: str | None = None,
        by: str | None = None,
        of: port.Scope = port.Scope.RUNS,
        audit: port.AuditEntry | None = None,
        until: float | None = None,
    ) -> port.Reply[int]:
        request = control.Request(command, storable(note), storable(by), until)

        async def send(names: Sequence[str]) -> port.Reply[int]:
            return self._transact(lambda book: control.control(book, request, names, of), audit)

        return await control_possible(names, send)

    async def direct(
        self,
        workers: Sequence[str],
        seats: int | None = None,
        quiet: bool | None = None,
        stop: bool = False,
        audit: port.AuditEntry | None = None,
    ) -> port.Reply[bool]:
        async def send(names: Sequence[str]) -> port.Reply[bool]:
            return self._transact(lambda book: direct.direct(book, names, seats, quiet, stop), audit)

        return await direct_possible(workers, send)

    async def override(
        self, task: str, overrides: Overrides, audit: port.AuditEntry | None = None
    ) -> port.Reply[port.Declared]:
        return self._transact(lambda book: override.override(book, task, overrides), audit)

    async def freeze(
        self,
        frozen: bool,
        until: float | None = None,
        note: str | None = None,
        by: str | None = None,
        audit: port.AuditEntry | None = None,
    ) -> port.Reply[bool]:
        def work(book: MemoryBook) -> list[bool]:
            wanted = port.Freeze(book.now, until, storable(note), storable(by)) if frozen else None
            return freeze.set_freeze(book, wanted)

        return self._transact(work, audit)

    async def fan(self, id: str, total: int | None = None, allowed: int | None = None) -> port.Reply[bool]:
        return self._transact(lambda book: fans.put_fan(book, id, total, allowed))

    async def edit(
        self,
        edits: Sequence[RunEdit],
        note: str | None = None,
        by: str | None = None,
        audit: port.AuditEntry | None = None,
    ) -> port.Reply[port.Edited]:
        possible = [possible_edit(one) for one in edits]
        return self._transact(lambda book: edit.edit(book, possible, storable(note), storable(by)), audit)

    async def declare(
        self,
        items: Sequence[TaskSpec | Schedule],
        terms: port.Terms | None = None,
        audit: port.AuditEntry | None = None,
    ) -> port.Reply[port.Declared]:
        return self._transact(lambda book: declare.declare(book, items, terms), audit)

    async def mark(self, edits: Sequence[port.MarkRow], audit: port.AuditEntry | None = None) -> port.Reply[bool]:
        return self._transact(lambda book: mark.mark(book, edits), audit)

    async def audit(self, entries: Sequence[port.AuditEntry]) -> port.Reply[bool]:
        return self._transact(lambda book: [book.keep_audit(filled(one, book.now, [one.changed])) for one in entries])

    async def rows(self, kind: type[T], query: port.RowQuery = port.ALL_ROWS) -> port.Reply[T]:
        return self._transact(lambda book: _rows(book, kind, possible_rows(query)))

    async def stats(self, minutes: int | None = 60, every: int = port.MINUTE) -> port.Reply[port.Stat]:
        if minutes is None:
            return self._transact(lambda book: book.charts.stats(port.TOTAL, port.TOTAL))
        return self._transact(lambda book: book.charts.stats(every, port.first_slot(book.now, minutes, every)))

    async def runs(self, query: port.RunQuery) -> port.Page:
        query = possible_runs(query)
        with self._transaction() as book:
            if query.ids is not None:
                return of_ids(query, book.runs, book.now)
            search = Search(query)
            walk = _walk(book, query, search.after)
            while search.goes_on:
                wanted = search.wanted
                some = list(islice(walk, wanted))
                search.take(some, behind(some, wanted))
            return search.page(book.now)

    async def depths(self) -> port.Reply[port.Depth]:
        def read(book: MemoryBook) -> list[port.Depth]:
            found = sorted((task, counts) for task, counts in book.count.tasks.items() if counts)
            return [port.Depth(task, counts.queued, counts.running, counts.paused) for task, counts in found]

        return self._transact(read)

    async def events(self, query: port.EventQuery) -> port.EventPage:
        with self._transaction() as book:
            return book.log.read(query, book.now)

    async def sweep(self, retention: port.Retention) -> port.Swept:
        with self._transaction() as book:
            expired = holds.expire_due(book)
            book.forget_fans(book.runs, book.now)
            forgotten = book.history.forget(retention, book.now, book.specs, book.is_kept if book.fans else None)
            book.forget(forgotten, book.now - WORKER_MEMORY, book.now - MARK_MEMORY)
            more = len(forgotten) == LEDGER.forgotten or len(expired) == LEDGER.expired
            return port.Swept(book.now, len(expired), len(forgotten), more, expired)

    def changes(self, worker: str | None = None) -> AbstractAsyncContextManager[AsyncIterator[port.Hint]]:
        return self._hub.subscribe()

    def _transact(self, work: Callable[[MemoryBook], list[T]], audit: port.AuditEntry | None = None) -> port.Reply[T]:
        with self._transaction() as book:
            answers = work(book)
            if audit is not None:
                book.keep_audit(filled(audit, book.now, answers))
            return port.Reply(book.now, answers)

    @contextmanager
    def _transaction(self) -> Generator[MemoryBook]:
        """One transaction: take the lock, set the time of the book, and at the end send the hints."""
        with self.at_work:
            book = self._book
            book.now = onwards(book.now, round(self._clock(), DIGITS))
            book.recording = book.log.is_recording(book.now)
            try:
                yield book
            finally:
                workers = set(to_hint(book.idle(), book.arrivals, book.now)) if book.arrivals else set[str]()
                book.wake(workers)
                workers |= book.directed
                events = bool(book.events)
                if events:
                    book.log.add(book.events, book.runs)
                if self._hub.watched and (workers or book.touched or events):
                    hint = port.Hint(workers=frozenset(workers), runs=frozenset(book.touched), events=events)
                    self._hub.publish(hint)
                book.arrivals, book.touched, book.directed, book.events = [], set(), set(), []


def _rows(book: MemoryBook, kind: type, query: port.RowQuery) -> list[Any]:
    if kind is DecisionCount:
        decisions = [row for row in book.decisions.values() if _about(row, query)]
        return sorted(decisions, key=lambda row: row.last_at, reverse=True)[: query.limit]
    if kind is port.MarkRow:
        marks = [port.MarkRow(task, key, mark) for (task, key), mark in sorted(book.marks.items())]
        return [row for row in marks if _about(row, query)][: query.limit]
    if kind is port.AuditEntry:
        return list(reversed(book.audit.values()))[: query.limit]
    if kind is port.Total:
        return book.totals.all()[: query.limit]
    if kind is port.DueCount:
        return [row for row in _due_counts(book) if query.task in (None, row.task)][: query.limit]
    if kind is port.RateRow:
        full_at = book.rate(query.task or "", query.key or "").full_at
        return [port.RateRow(query.task or "", query.key or "", full_at)] if full_at else []
    if kind is port.Freeze:
        return [frozen] if (frozen := book.frozen()) is not None else []
    kinds: dict[type, dict[str, Any]] = {
        Fan: book.fans,
        TaskSpec: {spec.name: spec.as_of(book.now) for spec in joined(book.specs.values(), book.specs.values())},
        port.WorkerSeen: dict(book.workers),
        Schedule: book.schedules.by_id,
    }
    found = kinds[kind]
    names = sorted(found if query.names is None else found.keys() & set(query.names))
    rows = [found[name] for name in names if name > query.after]
    if kind is Schedule and query.task is not None:
        rows = [row for row in rows if row.task == query.task]
    return rows[: query.limit]


def _due_counts(book: MemoryBook) -> list[port.DueCount]:
    due: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for run in book.runs.values():
        if run.state is State.QUEUED and not (run.needs or run.parked) and run.due_at <= book.now:
            due[run.task, run.queue].append(run.due_at)
    return sorted(port.DueCount(task, queue, len(times), min(times)) for (task, queue), times in due.items())


def _about(row: DecisionCount | port.MarkRow, query: port.RowQuery) -> bool:
    return (query.task is None or row.task == query.task) and (query.key is None or row.key == query.key)


def _newest(book: MemoryBook, query: port.RunQuery) -> Iterable[Run]:
    """Return the runs among which those of `query` are, newest first. Of a few that run, the leases are the list."""
    if query.in_group is not None:
        return reversed(book.grouped(query.in_group))
    if set(query.states) == {State.RUNNING}:
        return [book.runs[id] for id in sorted(book.leases, key=book.order.__getitem__, reverse=True)]
    return reversed(book.runs.values())


def _walk(book: MemoryBook, query: port.RunQuery, after: port.Position | None) -> Iterator[Found]:
    """Yield the runs behind `after` in the order of `query`, those that its state, task, key and group leave."""
    narrow = port.RunQuery(state=query.states, task=query.task, key=query.key)
    if query.order == "finished" and not query.sorts:
        runs = (run for run in book.runs.values() if run.state.final)
        ended = [(port.Position(run.finished_at or 0.0, book.order[run.id]), run) for run in runs]
        placed: Iterable[tuple[port.Position, Run]] = sorted(ended, key=itemgetter(0), reverse=True)
    elif query.order == "due" and not query.sorts:
        runs = (run for run in book.runs.values() if not run.state.final)
        due = sorted(((port.Position(run.due_at, book.order[run.id]), run) for run in runs), key=itemgetter(0))
        return (one for one in due if (after is None or one[0] > after) and port.matches(one[1], narrow))
    else:
        arrived = _newest(book, query)
        placed = ((port.Position(0.0, book.order[run.id]), run) for run in arrived)
    return ((place, run) for place, run in placed if (after is None or place < after) and port.matches(run, narrow))
