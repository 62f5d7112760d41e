"""PostgreSQL: every verb is one call of one function, atomic and in one round trip."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from rota import store as port
from rota.domain.decision import Decision, Reason
from rota.domain.edits import RunEdit
from rota.domain.overrides import OVERRIDE_ROW, Overrides
from rota.domain.run import Lease, NewRun, Note
from rota.domain.schedule import Schedule, Tick
from rota.domain.settlement import Requeue, Settlement, Verdict
from rota.domain.spec import TaskSpec, implied_limits, overridden
from rota.errors import StoreCorrupt, StoreError, Unstorable
from rota.stores.audit import to_text
from rota.stores.bounds import UNREADABLE
from rota.stores.group_commit import GroupCommit
from rota.stores.idle import Idle, arrival_of
from rota.stores.names import control_possible, direct_possible, possible_edit, storable
from rota.stores.postgres import columns
from rota.stores.postgres.driver import Record
from rota.stores.postgres.listener import Listener
from rota.stores.postgres.pool import Pool
from rota.stores.postgres.reads import PostgresReads
from rota.stores.postgres.rows import RUN_COLUMNS, read_events, read_run, read_schedule
from rota.stores.unreadable import legible

if TYPE_CHECKING:
    from rota.stores.postgres.backend import PostgresBackend

log = logging.getLogger("rota")


GROUPED = 2000
"""Items in a call after which no more callers are added to it."""
UNDER_WAY = 2
"""Calls of one verb at a time: while one waits for the disk, the server can work on another."""
OWN = (Unstorable, StoreCorrupt)
"""Errors that may concern one caller of a shared call: a value that cannot be stored, or a bad row."""
LOOK_ONCE_MORE = 0.05
"""Seconds between a claim that left seats empty and a call of the function `missed`."""


class Header(Struct):
    """The last row of a claim."""

    now: float
    wake: float | None
    passed_over: bool
    hinted: list[str]
    touched: list[str]
    orders: port.Orders = port.Orders()
    overrides: list[TaskSpec] | None = None


_header = msgspec.json.Decoder(Header)


class PostgresStore(PostgresReads):
    hints_on = True

    def __init__(self, backend: "PostgresBackend") -> None:
        address = backend.address
        super().__init__(
            backend,
            Pool(address.login, address.shown, address.max_connections, lambda: self._listener.look_again()),
        )
        self._puts: GroupCommit[NewRun, Decision] = GroupCommit(self._put, GROUPED, UNDER_WAY, own=OWN)
        self._settles: GroupCommit[Settlement, Verdict] = GroupCommit(self._settle, GROUPED, UNDER_WAY, own=OWN)
        self._idle: dict[str, Idle] = {}
        self._unlooked: set[str] = set()
        self._looker: asyncio.Task[None] | None = None
        self._called: set[str] = set()
        self._calls = 0
        self._last_call: dict[str, int] = {}
        """By lane: the number of the last call of `_idle_for`. A worker that was claiming then was not idle yet."""
        self._listener = Listener(
            backend.me, address.channel, self._schema, self.pool.call, backend.hub, self._idle_for
        )

    async def close(self) -> None:
        await self._puts.close()
        await self._settles.close()
        if self._looker is not None:
            self._looker.cancel()
            await asyncio.wait((self._looker,))
        await self._listener.close()
        await self.pool.close()

    async def put(
        self, runs: Sequence[NewRun], plan: port.Plan | None = None, audit: port.AuditEntry | None = None
    ) -> port.Reply[Decision]:
        shared = plan is None and audit is None
        return await (self._puts.add(runs) if shared else self._put(runs, plan, audit))

    async def _put(
        self, runs: Sequence[NewRun], plan: port.Plan | None = None, audit: port.AuditEntry | None = None
    ) -> port.Reply[Decision]:
        bare = columns.of_bare(runs) if plan is None and audit is None else None
        if bare is not None:
            row = await self._verb("put_bare", *bare)
        else:
            plain, *others = columns.of_put(runs, plan)  # a plain put answers nothing that an entry could count
            row = await self._verb("put", plain and audit is None, *others, audit=audit)
        if row["runs"] is None:
            return port.Reply(row["now"], [Decision(run.id, Reason.ACCEPTED) for run in runs])
        return port.Reply(row["now"], _decisions(row))

    async def try_put(self, run: NewRun) -> port.Reply[Decision]:
        row = await self._verb("try_put", *columns.of_put([run], None))
        accepted = [Decision(run.id, Reason.ACCEPTED)]
        return port.Reply(row["now"], accepted if row["runs"] is None else _decisions(row))

    async def fire(self, ticks: Sequence[Tick], audit: port.AuditEntry | None = None) -> port.Reply[port.Fired]:
        row = await self._verb("fire", *columns.of_ticks(ticks), audit=audit)
        decisions, applied = iter(_decisions(row)), set(row["applied"])
        return port.Reply(
            row["now"],
            [
                port.Fired(True, tuple(next(decisions) for _ in tick.runs)) if place in applied else port.Fired(False)
                for place, tick in enumerate(ticks, 1)
            ],
        )

    @property
    def hands_over(self) -> port.HandsOver:
        return self

    async def hears(self, worker: str) -> bool:
        return self._listener.ear is not None

    async def claim(self, request: port.ClaimRequest) -> port.Claim:
        return await self.claim_ready(request, None, None)

    async def claim_ready(self, request: port.ClaimRequest, token: str | None, took: str | None) -> port.Claim:
        worker, tasks, free, report = request.worker, request.tasks, request.free, request.report
        self._idle.pop(worker, None)
        calls = self._calls
        text = None if report is None else columns.to_json(report.kept)
        queues, counts = list(request.queues), columns.of_report(report, request.offers)
        args = (worker, request.n, list(tasks), queues, max(free, 0), request.lease, text, *counts)
        handing: dict[str, Any] = {}
        if token is not None or took is not None:
            handing = {"ready": token, "heard_at": self._listener.ear, "started": took}
        rows = await self._call("claim", *args, what=f"kind, name, header, {RUN_COLUMNS}", named=handing)
        found: dict[str, list[Any]] = {"run": [], "lapsed": [], "schedule": []}
        bad_schedules: list[str] = []
        bad_runs: list[Record] = []
        for row in rows[:-1]:
            if row["kind"] == "schedule":
                item: Any = legible("schedule", row["name"], partial(read_schedule, row["header"]))
                bad_schedules += [] if item is not None else [row["name"]]
            else:
                item = legible("run", row["id"], partial(read_run, row[3:]))
                bad_runs += [row] if item is None and row["kind"] == "run" else []
            found[row["kind"]] += [] if item is None else [item]
        header = _header.decode(rows[-1]["header"])
        if header.overrides:
            by_task = {row.name.removeprefix(OVERRIDE_ROW): row.overrides for row in header.overrides if row.overrides}
            found["run"] = overridden(found["run"], by_task)
        self._publish(header.now, header.hinted, header.touched, bool(found["run"] or header.touched))
        if bad_schedules:
            await self._set_aside(bad_schedules, header.now)
        if bad_runs:
            await self._give_back(bad_runs)
        if request.offers and len(found["run"]) < free:
            self._idle[worker] = Idle(worker, frozenset(tasks), header.now, queues=frozenset(queues))
            called = [name for name, call in self._last_call.items() if call > calls]
            if any(self._idle[worker].takes(arrival_of(name)) for name in called):
                self._publish(header.now, [worker], ())  # Race: `_idle_for` was called during this claim
            else:
                self._look_once_more(worker)
        return port.Claim(
            header.now,
            found["run"],
            found["lapsed"],
            header.wake,
            header.passed_over,
            found["schedule"],
            header.touched,
            header.orders,
        )

    async def _set_aside(self, ids: list[str], now: float) -> None:
        """Keep schedules that cannot be read from being offered to every claim."""
        try:
            await self._call("set_aside", ids, now, UNREADABLE)
        except StoreError as error:
            log.warning("cannot set them aside: %s", error)  # they are offered again; the claimed runs are not lost

    async def _give_back(self, rows: Sequence[Record]) -> None:
        """Requeue claimed runs that cannot be read."""
        settlements = [
            Settlement(row["id"], row["fence"], row["worker"], Requeue(UNREADABLE), "released", called=False)
            for row in rows
        ]
        try:
            await self.settle(settlements)
        except StoreError as error:
            log.warning("cannot give back runs that cannot be read: %s", error)  # their leases lapse

    async def renew(
        self, leases: Sequence[Lease], seconds: float, notes: Mapping[str, Note] | None = None
    ) -> port.Reply[port.Renewal]:
        by_lease = columns.of_notes([(notes or {}).get(lease.run) for lease in leases])
        row = await self._verb("renew", *columns.of_leases(leases), seconds, *by_lease)
        return port.Reply(row["now"], [port.Renewal(answer) for answer in row["answers"] or ()])

    async def settle(self, settlements: Sequence[Settlement]) -> port.Reply[Verdict]:
        return await self._settles.add(settlements)

    async def _settle(self, settlements: Sequence[Settlement]) -> port.Reply[Verdict]:
        row = await self._verb("settle", *columns.of_settlements(settlements))
        if row["unheard"]:
            self._publish(row["now"], self._idle_for(frozenset(row["unheard"])), ())
        if row["verdicts"] is None:
            return port.Reply(row["now"], [Verdict.APPLIED] * len(settlements))
        return port.Reply(row["now"], [Verdict(verdict) for verdict in row["verdicts"]])

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
        note, by = columns.clean(storable(note)), columns.clean(storable(by))

        async def control(names: Sequence[str]) -> port.Reply[int]:
            row = await self._verb("control", command.value, list(names), note, by, of.value, until, audit=audit)
            return port.Reply(row["now"], list(row["answers"]))

        return await control_possible(names, control)

    async def direct(
        self,
        workers: Sequence[str],
        seats: int | None = None,
        quiet: bool | None = None,
        stop: bool = False,
        audit: port.AuditEntry | None = None,
    ) -> port.Reply[bool]:
        async def send(names: Sequence[str]) -> port.Reply[bool]:
            row = await self._verb("direct", list(names), seats, quiet, stop, audit=audit)
            return port.Reply(row["now"], list(row["answers"]))

        return await direct_possible(workers, send)

    async def override(
        self, task: str, overrides: Overrides, audit: port.AuditEntry | None = None
    ) -> port.Reply[port.Declared]:
        row = await self._verb("override", *columns.of_overrides(task, overrides), audit=audit)
        return port.Reply(row["now"], [port.Declared(row["answers"][0])])

    async def freeze(
        self,
        frozen: bool,
        until: float | None = None,
        note: str | None = None,
        by: str | None = None,
        audit: port.AuditEntry | None = None,
    ) -> port.Reply[bool]:
        words = (columns.clean(storable(note)), columns.clean(storable(by)))
        row = await self._verb("set_freeze", frozen, until, *words, audit=audit)
        return port.Reply(row["now"], list(row["answers"]))

    async def fan(self, id: str, total: int | None = None, allowed: int | None = None) -> port.Reply[bool]:
        row = await self._verb("put_fan", id, total, allowed)
        return port.Reply(row["now"], list(row["answers"]))

    async def edit(
        self,
        edits: Sequence[RunEdit],
        note: str | None = None,
        by: str | None = None,
        audit: port.AuditEntry | None = None,
    ) -> port.Reply[port.Edited]:
        if not edits:
            return port.Reply((await self.runs(port.RunQuery(ids=()))).now, [])
        note, by = columns.clean(storable(note)), columns.clean(storable(by))
        items = columns.of_edits([possible_edit(one) for one in edits])
        row = await self._verb("edit", *items, note, by, audit=audit)
        return port.Reply(row["now"], [port.Edited(answer) for answer in row["answers"]])

    async def declare(
        self,
        items: Sequence[TaskSpec | Schedule],
        terms: port.Terms | None = None,
        audit: port.AuditEntry | None = None,
    ) -> port.Reply[port.Declared]:
        implied = implied_limits(item for item in items if isinstance(item, TaskSpec))
        places = columns.of_declarations(items, implied)
        row = await self._verb("declare", *places, *columns.of_terms(terms), audit=audit)
        return port.Reply(row["now"], [port.Declared(answer) for answer in row["answers"][len(implied) :]])

    async def mark(self, edits: Sequence[port.MarkRow], audit: port.AuditEntry | None = None) -> port.Reply[bool]:
        row = await self._verb("mark", *columns.of_marks(edits), audit=audit)
        return port.Reply(row["now"], list(row["answers"]))

    async def audit(self, entries: Sequence[port.AuditEntry]) -> port.Reply[bool]:
        words = ([one.id for one in entries], [to_text(one) for one in entries], [one.changed for one in entries])
        row = await self._verb("keep_entries", *words)
        return port.Reply(row["now"], list(row["answers"]))

    async def events(self, query: port.EventQuery) -> port.EventPage:
        after = None if query.after is None else port.event_number(query.after)[0]
        row = await self._verb("read_events", after, query.limit)
        self._backend.reads_events_until = row["now"] + port.SUBSCRIBED / 2
        return read_events(row)

    async def sweep(self, retention: port.Retention) -> port.Swept:
        ages = (retention.succeeded, retention.failed, retention.most, retention.least)
        row = await self._verb("sweep", *ages)
        return port.Swept(row["now"], len(row["touched"]), row["forgotten"], row["more"], row["touched"])

    @asynccontextmanager
    async def changes(self, worker: str | None = None) -> AsyncGenerator[AsyncIterator[port.Hint]]:
        address = self._backend.address
        login = address.ear or (None if self.pool.pooled else address.login)
        await self._listener.start(login, self._backend.url)
        self._backend.proven = self._listener.proven
        async with self._backend.hub.subscribe() as hints:
            yield hints

    # -- hints -----------------------------------------------------------------------------------------------------

    def _idle_for(self, names: frozenset[str]) -> frozenset[str]:
        """Choose an idle worker of this process for a hint that names lanes and no workers. Race: a worker that is
        claiming now is not idle yet; `claim` looks at `_last_call` when it has left seats empty."""
        self._calls += 1
        self._last_call.update(dict.fromkeys(names, self._calls))
        arrivals = [arrival_of(name) for name in names]
        takes = (worker for worker, idle in self._idle.items() if any(idle.takes(arrival) for arrival in arrivals))
        return frozenset(islice(takes, 1))

    def _look_once_more(self, worker: str) -> None:
        """Call the function `missed` for this worker soon. Race: a put that ran at the same time as the claim saw no
        idle worker, and the claim did not see the run."""
        if worker in self._called:
            self._called.discard(worker)  # the last call of `missed` woke it: once is enough
            return
        self._unlooked.add(worker)
        if self._looker is None or self._looker.done():
            self._looker = asyncio.create_task(self._look(), name="rota look")

    async def _look(self) -> None:
        while self._unlooked:
            await asyncio.sleep(LOOK_ONCE_MORE)
            names, self._unlooked = [name for name in self._unlooked if name in self._idle], set()
            if not names or not self._backend.hub.watched:
                continue
            try:
                rows = await self._call("missed", names, what="missed")
            except StoreError as error:
                log.warning("cannot look for missed work: %s", error)
                continue
            called: list[str] = rows[0]["missed"] or []
            self._called.update(called)
            self._publish(0.0, called, ())


def _decisions(row: Record) -> list[Decision]:
    return [Decision(run, Reason(reason)) for run, reason in zip(row["runs"], row["reasons"], strict=True)]
