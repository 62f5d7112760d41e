"""SqliteStore: each verb is a call of the ledger over a SqliteBook, in one job of the writer thread."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

import msgspec

from rota import store as port
from rota.domain.decision import Decision, Reason
from rota.domain.edits import RunEdit
from rota.domain.overrides import Overrides
from rota.domain.run import Lease, NewRun, Note, after
from rota.domain.schedule import Schedule, Tick
from rota.domain.settlement import Settlement, Verdict
from rota.domain.spec import TaskSpec
from rota.stores.audit import filled
from rota.stores.bounds import LEDGER
from rota.stores.hub import Hub
from rota.stores.idle import Arrival, to_hint
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
from rota.stores.names import control_possible, direct_possible, possible_edit, possible_rows, possible_runs, storable
from rota.stores.sqlite import events, queries, sweep
from rota.stores.sqlite.bells import Bells
from rota.stores.sqlite.book import SqliteBook
from rota.stores.sqlite.gates import Specs
from rota.stores.sqlite.lone import is_brief, is_plain, put_plain
from rota.stores.sqlite.rows import to_json
from rota.stores.sqlite.statements import BURY, IDLE, LISTENING
from rota.stores.sqlite.threads import Reader, Transaction, Writer

T = TypeVar("T")


class SqliteStore:
    hands_over = None

    def __init__(self, writer: Writer, reader: Reader, hub: Hub, bells: Bells, pace: Callable[[bool], float]) -> None:
        self._writer = writer
        self._reader = reader
        self._hub = hub
        self._bells = bells
        self._pace = pace
        self._specs = Specs()

    async def put(
        self, runs: Sequence[NewRun], plan: port.Plan | None = None, audit: port.AuditEntry | None = None
    ) -> port.Reply[Decision]:
        if plan is None and audit is None and len(runs) == 1 and is_brief(runs[0]):
            return await self._writer.do_brief(partial(self._put_one, runs))
        return await self._reply(lambda book: admit.put(book, runs, plan), audit)

    def _put_one(self, runs: Sequence[NewRun], tx: Transaction) -> port.Reply[Decision]:
        run = runs[0]
        if not is_plain(run) or not put_plain(tx, self._specs, run):
            return self._transaction(tx, lambda book: port.Reply(book.now, admit.put(book, runs)))
        if tx.one(IDLE) != "[]":
            book = SqliteBook(tx, self._specs)
            book.arrivals.append(Arrival(run.task, run.due_at(tx.now), run.queue))
            self._send_hints(tx, book)
        return port.Reply(tx.now, [Decision(run.id, Reason.ACCEPTED)])

    async def try_put(self, run: NewRun) -> port.Reply[Decision]:
        return await self._reply(lambda book: dry.try_put(book, run))

    async def fire(self, ticks: Sequence[Tick], audit: port.AuditEntry | None = None) -> port.Reply[port.Fired]:
        return await self._reply(lambda book: admit.fire(book, ticks), audit)

    async def claim(self, request: port.ClaimRequest) -> port.Claim:
        return await self._transact(lambda book: claim.claim(book, request))

    async def renew(
        self, leases: Sequence[Lease], seconds: float, notes: Mapping[str, Note] | None = None
    ) -> port.Reply[port.Renewal]:
        return await self._reply(lambda book: renew.renew(book, leases, after(book.now, seconds), notes or {}))

    async def settle(self, settlements: Sequence[Settlement]) -> port.Reply[Verdict]:
        return await self._reply(lambda book: settle.settle(book, settlements))

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
        return await control_possible(
            names, lambda names: self._reply(lambda book: control.control(book, request, names, of), audit)
        )

    async def direct(
        self,
        workers: Sequence[str],
        seats: int | None = None,
        quiet: bool | None = None,
        stop: bool = False,
        audit: port.AuditEntry | None = None,
    ) -> port.Reply[bool]:
        return await direct_possible(
            workers, lambda names: self._reply(lambda book: direct.direct(book, names, seats, quiet, stop), audit)
        )

    async def override(
        self, task: str, overrides: Overrides, audit: port.AuditEntry | None = None
    ) -> port.Reply[port.Declared]:
        return await self._reply(lambda book: override.override(book, task, overrides), audit)

    async def freeze(
        self,
        frozen: bool,
        until: float | None = None,
        note: str | None = None,
        by: str | None = None,
        audit: port.AuditEntry | None = None,
    ) -> port.Reply[bool]:
        def work(book: SqliteBook) -> list[bool]:
            wanted = port.Freeze(book.now, until, storable(note), storable(by)) if frozen else None
            return freeze.set_freeze(book, wanted)

        return await self._reply(work, audit)

    async def fan(self, id: str, total: int | None = None, allowed: int | None = None) -> port.Reply[bool]:
        return await self._reply(lambda book: fans.put_fan(book, id, total, allowed))

    async def edit(
        self,
        edits: Sequence[RunEdit],
        note: str | None = None,
        by: str | None = None,
        audit: port.AuditEntry | None = None,
    ) -> port.Reply[port.Edited]:
        possible = [possible_edit(one) for one in edits]
        return await self._reply(lambda book: edit.edit(book, possible, storable(note), storable(by)), audit)

    async def declare(
        self,
        items: Sequence[TaskSpec | Schedule],
        terms: port.Terms | None = None,
        audit: port.AuditEntry | None = None,
    ) -> port.Reply[port.Declared]:
        return await self._reply(lambda book: declare.declare(book, items, terms), audit)

    async def mark(self, edits: Sequence[port.MarkRow], audit: port.AuditEntry | None = None) -> port.Reply[bool]:
        return await self._reply(lambda book: mark.mark(book, edits), audit)

    async def audit(self, entries: Sequence[port.AuditEntry]) -> port.Reply[bool]:
        return await self._reply(
            lambda book: [book.keep_audit(filled(one, book.now, [one.changed])) for one in entries]
        )

    async def rows(self, kind: type[T], query: port.RowQuery = port.ALL_ROWS) -> port.Reply[T]:
        return await self._reader.do(lambda tx: queries.rows(tx, kind, possible_rows(query)))

    async def stats(self, minutes: int | None = 60, every: int = port.MINUTE) -> port.Reply[port.Stat]:
        return await self._reader.do(lambda tx: queries.stats(tx, minutes, every))

    async def runs(self, query: port.RunQuery) -> port.Page:
        return await self._reader.do(lambda tx: queries.runs(tx, possible_runs(query)))

    async def counted(self, query: port.RunQuery, at_most: int) -> port.RunCounts:
        return await self._reader.do(lambda tx: queries.counted(tx, possible_runs(query), at_most))

    async def depths(self) -> port.Reply[port.Depth]:
        return await self._reader.do(queries.depths)

    async def events(self, query: port.EventQuery) -> port.EventPage:
        if await self._reader.do(events.needs_renewal):
            await self._writer.do(events.renew)
        return await self._reader.do(lambda tx: events.read(tx, query))

    async def sweep(self, retention: port.Retention) -> port.Swept:
        def work(book: SqliteBook, tx: Transaction) -> port.Swept:
            expired = holds.expire_due(book)
            book.flush()  # the runs that have just expired count among the newest ended runs
            book.flush_counts()
            self._bury(tx, book, msgspec.json.decode(tx.one(LISTENING), type=list[str]))
            forgotten, more = sweep.forget(tx, retention)
            return port.Swept(tx.now, len(expired), forgotten, more or len(expired) == LEDGER.expired, expired)

        return await self._writer.do(lambda tx: self._transaction(tx, lambda book: work(book, tx)))

    @asynccontextmanager
    async def changes(self, worker: str | None = None) -> AsyncGenerator[AsyncIterator[port.Hint]]:
        async with self._hub.subscribe() as hints, self._bells.hung(worker, self._heard) as bell:
            with self._reader.looking(self._pace(bell)):
                yield hints

    def _heard(self, hint: port.Hint | None) -> None:
        """Handle a ring of another process."""
        if hint is None:
            self._reader.look_now()
        else:
            self._hub.publish(hint)

    async def _reply(
        self, work: Callable[[SqliteBook], list[T]], audit: port.AuditEntry | None = None
    ) -> port.Reply[T]:
        def reply(book: SqliteBook) -> port.Reply[T]:
            answers = work(book)
            if audit is not None:
                book.keep_audit(filled(audit, book.now, answers))
            return port.Reply(book.now, answers)

        return await self._transact(reply)

    async def _transact(self, work: Callable[[SqliteBook], T]) -> T:
        return await self._writer.do(lambda tx: self._transaction(tx, work))

    def _transaction(self, tx: Transaction, work: Callable[[SqliteBook], T]) -> T:
        """Call `work` with a book, write the changes, and send the hints after the commit."""
        book = SqliteBook(tx, self._specs)
        answer = work(book)
        book.finish()
        self._send_hints(tx, book)
        return answer

    def _send_hints(self, tx: Transaction, book: SqliteBook) -> None:
        """Choose the workers that the changes of `book` concern, and send the hints after the commit."""
        hinted = to_hint(book.idle(), book.arrivals, tx.now) if book.arrivals else dict[str, Arrival]()
        if hinted:
            book.wake(hinted)
        if hinted or book.touched or book.directed or book.events:
            workers, runs = frozenset(hinted) | book.directed, frozenset(book.touched)
            hint = port.Hint(workers=workers, runs=runs, events=bool(book.events))
            concerned = hinted.keys() | book.directed | book.requested_workers()
            tx.after_commit.append(lambda: self._notify(hint, concerned, hinted))

    def _notify(self, hint: port.Hint, concerned: set[str], hinted: Mapping[str, Arrival]) -> None:
        self._hub.publish(hint)
        dead = self._bells.ring(hint, concerned)
        if dead:
            missed = [hinted[worker] for worker in dead if worker in hinted]
            self._writer.follow(
                lambda tx: self._transaction(tx, lambda book: self._hint_others(tx, book, dead, missed))
            )

    def _hint_others(self, tx: Transaction, book: SqliteBook, dead: set[str], missed: list[Arrival]) -> None:
        """The workers `dead` were hinted and have died: hint other idle workers for the arrivals `missed`."""
        self._bury(tx, book, dead)
        book.arrivals.extend(missed)

    def _bury(self, tx: Transaction, book: SqliteBook, workers: Collection[str]) -> None:
        """Record that those of `workers` that have died are not idle. One other worker is hinted: it claims, and wakes
        for the due times for which they would have woken.

        Their bells are removed after the commit, because a worker without a bell is taken for alive: if this process
        removed the bells first and died before the commit, nobody would notice that the workers have died.
        """
        dead = self._bells.dead(workers)
        if dead and tx.execute(BURY, to_json(sorted(dead))):
            book.arrivals.append(Arrival(None, tx.now))
        tx.after_commit.append(self._bells.clear)
