"""The book of SQLite: one write transaction. Changes are collected, and written together before the next look-up."""

import heapq
import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeVar

import msgspec

from rota.domain.fan import Fan
from rota.domain.run import NewRun, Run, RunHead, State, after
from rota.domain.schedule import Schedule
from rota.store import AUDIT_KEPT, OFFER_AGAIN, AuditEntry, Freeze, Total
from rota.stores.audit import to_text
from rota.stores.book import Candidate, Lane
from rota.stores.bounds import UNREADABLE
from rota.stores.events import EventRow
from rota.stores.fields import kept_queue
from rota.stores.idle import Arrival
from rota.stores.sqlite import events
from rota.stores.sqlite import statements as sql
from rota.stores.sqlite.gates import Specs, SqliteGates
from rota.stores.sqlite.own_ids import SqliteOwnIds
from rota.stores.sqlite.rows import (
    ADD,
    END,
    SAVE,
    HeadRow,
    added_row,
    read_heads,
    read_runs,
    read_schedules,
    to_json,
)
from rota.stores.sqlite.tasks import SqliteTasks
from rota.stores.sqlite.threads import Transaction
from rota.stores.sqlite.workers import SqliteWorkers

log = logging.getLogger("rota")

T = TypeVar("T")
CALLED = (State.SUCCEEDED, State.FAILED)
"""States that a run gets only at the end of a call. Such an end leaves due time, expiry and commands unchanged."""
STRIDE = 200
"""Runs of a gated lane that one query reads."""


_lanes = msgspec.json.Decoder(list[Lane])
_candidates = msgspec.json.Decoder(list[Candidate])
_freezes = msgspec.json.Decoder(Freeze)
_instants = msgspec.json.Decoder(list[float])


class SqliteBook(SqliteOwnIds, SqliteTasks, SqliteWorkers, SqliteGates):
    def __init__(self, tx: Transaction, specs: Specs) -> None:
        self.now = tx.now
        self.arrivals: list[Arrival] = []
        self.touched: set[str] = set()
        self.directed: set[str] = set()
        self.recording = tx.now < tx.record_until
        self.events: list[EventRow] = []
        self._tx = tx
        self._specs = specs
        self._seen: dict[str, RunHead | None] = {}
        self._changed: dict[str, RunHead] = {}
        self._added: dict[str, tuple[Any, ...]] = {}
        self._news: dict[str, EventRow] = {}
        self._holders: dict[tuple[str, str], list[HeadRow]] = {}
        self._schedules: dict[str, Schedule | None] = {}
        self._changed_schedules: dict[str, Schedule] = {}
        self._decisions: dict[tuple[str, str, str], tuple[Any, ...]] = {}
        self._totals: dict[tuple[str, str, str], Total] = {}
        self._fans: dict[str, Fan | None] = {}

    # -- runs ------------------------------------------------------------------------------------------------------

    def load(self, ids: Sequence[str]) -> None:
        for run in self._heads(sql.HEADS_OF, to_json(ids)):
            self._seen[run.id] = run
        for id in ids:
            self._seen.setdefault(id, None)

    def get(self, id: str) -> RunHead | None:
        if id in self._added:
            self.flush()
        if id not in self._seen:
            self.load([id])
        return self._seen[id]

    def save(self, run: RunHead) -> None:
        self._holders.pop((run.task, run.unique_key or ""), None)
        self._seen[run.id] = self._changed[run.id] = run

    def add(self, new: NewRun, due_at: float, parked: bool) -> None:
        self._seen.pop(new.id, None)
        self._holders.pop((new.task, new.unique_key or ""), None)
        if new.needs:
            self.wait_for(new.id, new.needs)
        self._added.setdefault(new.id, added_row(new, self.now, due_at, parked))
        if self.recording:
            self._news.setdefault(new.id, events.queued(new, self.now))

    def rewrite(self, id: str, body: bytes | None, priority: int, joined: bool = True) -> bool:
        if joined:
            self._tx.execute(sql.TOUCH, priority, self.now, id)
        else:
            self._tx.execute(sql.REPRIORITIZE, priority, id)
        return body is not None and bool(self._tx.execute(sql.REWRITE, body.decode(), id))

    def put_share(self, id: str, share: str) -> None:
        self._tx.execute("UPDATE runs SET share = ? WHERE id = ?", share, id)

    def frozen(self) -> Freeze | None:
        found = self._tx.one("SELECT freeze FROM freezes WHERE one = 1")
        freeze = None if found is None else _freezes.decode(found)
        return freeze if freeze is not None and freeze.in_force(self.now) else None

    def put_freeze(self, freeze: Freeze | None) -> None:
        self._tx.execute("DELETE FROM freezes")
        if freeze is not None:
            self._tx.execute("INSERT INTO freezes VALUES (1, ?)", to_json(freeze))

    def keep_audit(self, entry: AuditEntry) -> bool:
        kept = self._tx.execute(sql.KEEP_AUDIT, entry.id, entry.at, entry.changed, to_text(entry))
        if kept:
            self._tx.execute(sql.FORGET_AUDIT, AUDIT_KEPT)
        return bool(kept)

    def body_of(self, id: str) -> bytes:
        return str(self._tx.one("SELECT body FROM runs WHERE id = ?", id)).encode()

    def saved_of(self, id: str) -> bytes | None:
        if id in self._changed:
            self.flush()
        saved = self._tx.one("SELECT saved FROM runs WHERE id = ?", id)
        return None if saved is None else str(saved).encode()

    def delete(self, id: str) -> None:
        self.flush()
        self._tx.execute(sql.STUB, id)
        self._tx.execute("DELETE FROM runs WHERE id = ?", id)
        self._seen[id] = None

    def same_work(self, one: str, other: str) -> bool:
        return bool(self._tx.one(sql.SAME_WORK, one, other))

    def full(self) -> bool:
        return False

    def flush(self) -> None:
        """Write the collected runs, so that a look-up sees them."""
        if self._added:
            for statement, values in ADD.statements(list(self._added.values())):
                if self.recording:
                    came = self._tx.connection.execute(f"{statement} RETURNING id", values).fetchall()
                    self.events += [self._news[id] for (id,) in came]
                else:
                    self._tx.connection.execute(statement, values)
            self._added, self._news = {}, {}
        if self._changed:
            changed, self._changed = self._changed.values(), {}
            for update, ended in ((END, True), (SAVE, False)):
                if rows := [update.row(run) for run in changed if (run.state in CALLED) is ended]:
                    self._tx.execute(update.statement, to_json(rows))

    def finish(self) -> None:
        """Write all remaining changes at the end of the transaction. No look-up reads schedules or decisions before."""
        self.flush()
        if self._changed_schedules:
            rows = [
                (schedule.id, schedule.task, to_json(schedule), None if schedule.paused else schedule.fires_at)
                for schedule in self._changed_schedules.values()
            ]
            for statement, values in sql.PUT_SCHEDULES.statements(rows):
                self._tx.connection.execute(statement, values)
        self.flush_counts()
        if self.events:
            events.add(self._tx, self.events)

    def flush_counts(self) -> None:
        """Write decisions, totals and fans, so that a sweep sees them. What a sweep deletes is not written again."""
        self.flush_decisions()
        self.flush_totals()
        self.flush_fans()

    # -- look-ups --------------------------------------------------------------------------------------------------

    def load_holders(self, names: Sequence[tuple[str, str]]) -> None:
        if names:
            self._holders = {name: [] for name in names}
            for run in self._heads(sql.HOLDERS_OF, to_json(list(self._holders))):
                self._holders[run.task, run.unique_key or ""].append(run)

    def holders(self, task: str, unique_key: str) -> Sequence[RunHead]:
        known = self._holders.get((task, unique_key))
        return self._heads(sql.HOLDERS, task, unique_key) if known is None else known

    def running(self, task: str) -> int:
        return self._count("SELECT count(*) FROM runs WHERE state = 'running' AND task = ?", task)

    def running_key(self, task: str, key: str) -> int:
        return self._count("SELECT count(*) FROM runs WHERE state = 'running' AND task = ? AND key = ?", task, key)

    def pending(self, task: str, most: int) -> int:
        return self._count(sql.PENDING, task, most)

    def best_parked(self, task: str, key: str) -> Sequence[RunHead]:
        return self._heads(sql.BEST_PARKED, task, key)

    def unpark_all(self, task: str) -> None:
        self.flush()
        self._tx.execute("UPDATE runs SET hold = 0 WHERE state = 'queued' AND hold = 1 AND task = ?", task)
        self._seen.clear()

    def of_task(self, task: str, most: int) -> Sequence[RunHead]:
        return self._heads(sql.OF_TASK, task, most)

    def waiters(self, needs: Sequence[str]) -> Sequence[RunHead]:
        names = to_json(list(needs))
        found = self._heads(sql.WAITERS, names)
        if found:
            self._tx.execute("DELETE FROM waits WHERE ended IN (SELECT value FROM json_each(?))", names)
        return found

    def wait_for(self, run: str, needs: Sequence[str]) -> None:
        self._tx.executemany("INSERT OR IGNORE INTO waits VALUES (?, ?)", [(need, run) for need in needs])

    def grouped(self, group: str) -> Sequence[RunHead]:
        return self._heads(sql.GROUPED, group)

    def expired(self) -> Sequence[RunHead]:
        first = self._tx.one(sql.FIRST_EXPIRY)
        return self._heads(sql.EXPIRED, self.now) if first is not None and first <= self.now else []

    def _heads(self, query: str, *parameters: Any) -> list[HeadRow]:
        self.flush()
        found = read_heads(self._tx.one(query, *parameters))
        for run in found:
            self._seen[run.id] = run
        return found

    def _count(self, query: str, *parameters: Any) -> int:
        self.flush()
        return int(self._tx.one(query, *parameters))

    # -- claiming --------------------------------------------------------------------------------------------------

    def lanes(self, tasks: Sequence[str], queues: Sequence[str]) -> Sequence[Lane]:
        """The lanes; `Lane.queue` is the name as it is kept."""
        self.flush()
        kept = [kept_queue(queue) for queue in queues]
        return _lanes.decode(self._tx.one(sql.LANES, to_json(tasks), to_json(kept)))

    def next_share(self, lane: Lane, after: str) -> str | None:
        found = self._tx.one(sql.NEXT_SHARE, lane.task, lane.queue, lane.priority, self.now, after)
        return None if found is None else str(found)

    def pick(self, lanes: Sequence[Lane], most: int, suspects: bool) -> Iterator[Candidate]:
        wanted = {"lanes": to_json(lanes), "now": self.now, "free": most, "suspects": suspects}
        return iter(_candidates.decode(self._tx.connection.execute(sql.PICK, wanted).fetchone()[0]))

    def walk(self, lanes: Sequence[Lane], suspects: bool) -> Iterator[Candidate]:
        for _, level in groupby(sorted(lanes, key=lambda lane: -lane.priority), key=lambda lane: lane.priority):
            yield from heapq.merge(*(self._walk_lane(lane, suspects) for lane in level))

    def _walk_lane(self, lane: Lane, suspects: bool) -> Iterator[Candidate]:
        due_at, seq = -1.0, 0
        while True:
            place = (lane.task, lane.priority, self.now, due_at, seq, suspects, STRIDE, lane.queue, lane.share)
            found = _candidates.decode(self._tx.one(sql.WALK, *place))
            yield from found
            if len(found) < STRIDE:
                break
            due_at, seq = found[-1].due_at, found[-1].seq

    def lease(self, worker: str, n: int, chosen: Sequence[Candidate], seconds: float) -> None:
        if chosen:
            seqs = to_json([run.seq for run in chosen])
            self._tx.execute(sql.TAKE, worker, n, self.now, after(self.now, seconds), seqs)

    def park(self, runs: Iterable[Candidate]) -> None:
        if seqs := [run.seq for run in runs]:
            self._tx.execute("UPDATE runs SET hold = 1 WHERE seq IN (SELECT value FROM json_each(?))", to_json(seqs))

    def has_suspect(self, worker: str) -> bool:
        return bool(self._tx.one(sql.SUSPECT, worker))

    def taken(self, worker: str, n: int) -> list[Run]:
        runs, unreadable = read_runs(self._tx.one(sql.TAKEN, worker, n))
        if unreadable:  # so that the next claims do not meet them
            self._tx.execute(sql.GIVE_BACK, after(self.now, UNREADABLE), to_json(unreadable))
            self._tx.execute("DELETE FROM counted WHERE run IN (SELECT value FROM json_each(?))", to_json(unreadable))
        return runs

    def offer_lapsed(self) -> list[Run]:
        first = self._tx.one("SELECT min(until) FROM runs WHERE state = 'running'")
        if first is None or first > self.now:
            return []
        lapsed, unreadable = read_runs(self._tx.one(sql.LAPSED, self.now))
        self._tx.execute(sql.OFFER, after(self.now, OFFER_AGAIN), to_json([*(run.id for run in lapsed), *unreadable]))
        return lapsed

    def upcoming(self, tasks: Sequence[str], queues: Sequence[str], k: int) -> Sequence[float]:
        lanes = self.lanes(tasks, queues)
        if not lanes:
            return []
        wanted = {"lanes": to_json(lanes), "now": self.now, "k": k}
        return _instants.decode(self._tx.connection.execute(sql.UPCOMING, wanted).fetchone()[0])

    # -- schedules -------------------------------------------------------------------------------------------------

    def load_schedules(self, ids: Sequence[str]) -> None:
        if ids:
            self._schedules = dict.fromkeys(ids)
            self._schedules.update(read_schedules(self._tx.one(sql.SCHEDULES, to_json(ids))))

    def schedule(self, id: str) -> Schedule | None:
        return self._schedules.get(id)

    def put_schedule(self, schedule: Schedule) -> None:
        self._schedules[schedule.id] = self._changed_schedules[schedule.id] = schedule

    def drop_schedule(self, id: str) -> None:
        self._schedules[id] = None
        self._changed_schedules.pop(id, None)
        self._tx.execute("DELETE FROM schedules WHERE id = ?", id)

    def offer_schedules(self) -> list[Schedule]:
        first = self.next_schedule()
        if first is None or first > self.now:
            return []
        due = read_schedules(self._tx.one(sql.DUE_NOW, self.now))
        again = [id for id, schedule in due if schedule is not None]
        aside = [id for id, schedule in due if schedule is None]  # unreadable: the next claims must not meet them
        self._tx.execute(sql.OFFER_SCHEDULES, after(self.now, OFFER_AGAIN), to_json(again))
        if aside:
            self._tx.execute(sql.OFFER_SCHEDULES, after(self.now, UNREADABLE), to_json(aside))
        return [schedule for _, schedule in due if schedule is not None]

    def next_schedule(self) -> float | None:
        first = self._tx.one("SELECT min(look_at) FROM schedules WHERE look_at IS NOT NULL")
        return None if first is None else float(first)
