"""SQLite: each verb is one job of the writer thread, and so one transaction or a part of a shared one."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec

from rota.domain import settlement as rules
from rota.domain.decision import Decision, Reason
from rota.domain.run import Lease, NewRun, Standing, State, after
from rota.domain.settlement import Settlement, Verdict
from rota.store import (
    Claim,
    Depth,
    Hint,
    Page,
    Renewal,
    Reply,
    Retention,
    RunQuery,
    Swept,
    Wish,
)
from rota.stores.hub import Hub
from rota.stores.idle import to_hint
from rota.stores.sqlite import claiming, reading, sweeping
from rota.stores.sqlite.rows import SETTLE, STANDINGS, read_standings, settled_row, to_json
from rota.stores.sqlite.threads import Reader, Transaction, Writer

PUT = """
INSERT INTO runs (id, task, key, priority, created_at, due_at, expires_at, body, state)
SELECT v.value ->> 0, v.value ->> 1, v.value ->> 2, v.value ->> 3, v.value ->> 4, v.value ->> 5, v.value ->> 6,
       v.value ->> 7, 'queued'
FROM json_each(?) AS v WHERE true ON CONFLICT (id) DO NOTHING
"""

STAND = f"SELECT {STANDINGS} FROM runs WHERE id IN (SELECT value FROM json_each(?))"

RENEW = "UPDATE runs SET until = ?, offer_at = NULL WHERE id IN (SELECT value FROM json_each(?))"

CANCEL = """
UPDATE runs SET state = v.value ->> 1, cancel_asked = v.value ->> 2, reason = v.value ->> 3, note = v.value ->> 4,
    finished_at = v.value ->> 5
FROM json_each(?) AS v WHERE runs.id = v.value ->> 0
"""


class SqliteStore:
    def __init__(self, writer: Writer, reader: Reader, hub: Hub) -> None:
        self._writer = writer
        self._reader = reader
        self._hub = hub

    async def put(self, runs: Sequence[NewRun]) -> Reply[Decision]:
        def job(tx: Transaction) -> Reply[Decision]:
            due = [run.due_at(tx.now) for run in runs]
            rows = [
                (r.id, r.task, r.key, r.priority, tx.now, at, r.expiry(tx.now), r.wire.decode())
                for r, at in zip(runs, due, strict=True)
            ]
            tx.execute(PUT, to_json(rows))
            self._hint(tx, [(run.task, at) for run, at in zip(runs, due, strict=True)])
            return Reply(tx.now, [Decision(run.id, Reason.ACCEPTED) for run in runs])

        return await self._writer.do(job)

    async def claim(self, worker: str, n: int, tasks: Sequence[str], free: int, lease: float) -> Claim:
        def job(tx: Transaction) -> Claim:
            self._hint(tx, [], claiming.expire(tx))
            return claiming.claim(tx, worker, n, tasks, free, lease)

        return await self._writer.do(job)

    async def renew(self, leases: Sequence[Lease], seconds: float) -> Reply[Renewal]:
        def job(tx: Transaction) -> Reply[Renewal]:
            standings = _standings(tx, [lease.run for lease in leases])
            answers = [_renewal(standings.get(lease.run), lease) for lease in leases]
            held = [a.run for a, b in zip(leases, answers, strict=True) if b is not Renewal.LOST]
            tx.execute(RENEW, after(tx.now, seconds), to_json(held))
            return Reply(tx.now, answers)

        return await self._writer.do(job)

    async def settle(self, settlements: Sequence[Settlement]) -> Reply[Verdict]:
        def job(tx: Transaction) -> Reply[Verdict]:
            standings: dict[str, Standing] = _standings(tx, [s.run for s in settlements])
            changed: dict[str, Standing] = {}
            verdicts: list[Verdict] = []
            for settlement in settlements:
                run = standings.get(settlement.run)
                verdicts.append(rules.judge(run, settlement, tx.now))
                if run is not None and verdicts[-1] is Verdict.APPLIED:
                    standings[run.id] = changed[run.id] = rules.apply(run, settlement, tx.now)
            if changed:
                tx.execute(SETTLE, to_json([settled_row(run) for run in changed.values()]))
                self._hint(tx, _requeued(tx, changed), list(changed))
            return Reply(tx.now, verdicts)

        return await self._writer.do(job)

    async def ask(self, wish: Wish, runs: Sequence[str], note: str | None = None) -> Reply[bool]:
        assert wish is Wish.CANCEL

        def job(tx: Transaction) -> Reply[bool]:
            standings = _standings(tx, runs)
            after_wish = [rules.cancel(run, tx.now, note) for run in standings.values() if not run.state.final]
            rows = [(r.id, r.state, r.cancel_asked, r.reason, r.note, r.finished_at) for r in after_wish]
            tx.execute(CANCEL, to_json(rows))
            self._hint(tx, [], list(runs))
            return Reply(tx.now, [id in standings and not standings[id].state.final for id in runs])

        return await self._writer.do(job)

    async def runs(self, query: RunQuery) -> Page:
        return await self._reader.do(lambda tx: reading.runs(tx, query))

    async def depths(self) -> Reply[Depth]:
        return await self._reader.do(reading.depths)

    async def sweep(self, retention: Retention) -> Swept:
        def job(tx: Transaction) -> Swept:
            expired = claiming.expire(tx)
            self._hint(tx, [], expired)
            return Swept(tx.now, len(expired), sweeping.forget(tx, retention))

        return await self._writer.do(job)

    @asynccontextmanager
    async def changes(self) -> AsyncGenerator[AsyncIterator[Hint]]:
        self._reader.watch()
        async with self._hub.subscribe() as hints:
            yield hints

    def _hint(self, tx: Transaction, arrivals: Sequence[tuple[str, float]], runs: Sequence[str] = ()) -> None:
        """Idle workers lose their registration in this transaction: so a hint reaches them in any process."""
        workers = to_hint(claiming.read_idle(tx), arrivals, tx.now) if arrivals else set[str]()
        if workers:
            woken = to_json(sorted(workers))
            tx.execute("UPDATE workers SET idle = 0 WHERE name IN (SELECT value FROM json_each(?))", woken)
        if self._hub.watched and (workers or runs):
            hint = Hint(workers=frozenset(workers), runs=frozenset(runs))
            tx.after_commit.append(lambda: self._hub.publish(hint))


def _standings(tx: Transaction, ids: Sequence[str]) -> dict[str, Standing]:
    return {run.id: run for run in read_standings(tx.one(STAND, to_json(ids)))}


def _renewal(run: Standing | None, lease: Lease) -> Renewal:
    if run is None or run.state is not State.RUNNING or run.fence != lease.fence:
        return Renewal.LOST
    return Renewal.CANCEL if run.cancel_asked else Renewal.OK


def _requeued(tx: Transaction, changed: dict[str, Standing]) -> list[tuple[str, float]]:
    ids = [run.id for run in changed.values() if run.state is State.QUEUED]
    if not ids:
        return []
    found = tx.one(
        "SELECT json_group_array(json_array(task, due_at)) FROM runs WHERE id IN (SELECT value FROM json_each(?))",
        to_json(ids),
    )
    return msgspec.json.decode(found, type=list[tuple[str, float]])
