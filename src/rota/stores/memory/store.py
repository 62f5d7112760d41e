"""Memory: dictionaries under one lock, judged by the same domain rules as every other store."""

import heapq
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from msgspec.structs import replace

from rota.domain import settlement as rules
from rota.domain import wire
from rota.domain.decision import Decision, Reason
from rota.domain.policy import Policy
from rota.domain.run import DIGITS, Lease, NewRun, Origin, Run, State, after
from rota.domain.settlement import Settlement, Verdict
from rota.store import (
    OFFER_AGAIN,
    OFFERS,
    Claim,
    Depth,
    Hint,
    Page,
    Renewal,
    Reply,
    Retention,
    RunQuery,
    Store,
    Swept,
    Wish,
    after_cursor,
)
from rota.stores.hub import Hub
from rota.stores.idle import Idle, to_hint, waiting, wake_for
from rota.stores.memory.history import History
from rota.stores.memory.lanes import Entry, Lanes

CAPACITY = 1_000_000
"""Unfinished runs that memory holds; a put beyond it is refused as queue_full."""


class MemoryBackend:
    """One store in this process, shared by all who open it."""

    url = "memory://"
    poll = 5.0

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.skew = 0.0
        self.capacity = capacity
        self._store = MemoryStore(self)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Store]:
        yield self._store


class MemoryStore:
    def __init__(self, backend: MemoryBackend) -> None:
        self._backend = backend
        self._lock = threading.Lock()
        self._hub = Hub()
        self._latest = 0.0
        self._arrivals = 0
        self._runs: dict[str, Run] = {}
        self._order: dict[str, int] = {}
        self._lanes = Lanes(self._stands)
        self._leased: dict[str, float] = {}  # run id -> not offered for rescue before
        self._expiring: list[tuple[float, str]] = []
        self._history = History()
        self._idle: dict[str, Idle] = {}
        self._claims: dict[str, tuple[int, list[Lease]]] = {}

    # -- verbs -----------------------------------------------------------------------------------------------------

    async def put(self, runs: Sequence[NewRun]) -> Reply[Decision]:
        with self._lock:
            now = self._now()
            answers = [self._admit(new, now) for new in runs]
            arrivals = [(r.task, r.due_at(now)) for r, yes in zip(runs, answers, strict=True) if yes]
            self._hint(arrivals)
        return Reply(now, answers)

    async def claim(self, worker: str, n: int, tasks: Sequence[str], free: int, lease: float) -> Claim:
        with self._lock:
            now = self._now()
            last, leases = self._claims.get(worker, (0, []))
            if n > last:
                leases = self._take(worker, tasks, free, lease, now)
                self._claims[worker] = (n, leases)
            runs = [run for held in leases if (run := self._held(held))]
            self._idle.pop(worker, None)
            wake = self._register(worker, tasks, now) if len(runs) < free else None
            return Claim(now, runs, self._offer_lapsed(now), wake)

    async def renew(self, leases: Sequence[Lease], seconds: float) -> Reply[Renewal]:
        with self._lock:
            now = self._now()
            return Reply(now, [self._extend(lease, after(now, seconds)) for lease in leases])

    async def settle(self, settlements: Sequence[Settlement]) -> Reply[Verdict]:
        with self._lock:
            now = self._now()
            verdicts = [self._settle(settlement, now) for settlement in settlements]
            again = [
                (run.task, run.due_at)
                for s in settlements
                if (run := self._runs.get(s.run)) and run.state is State.QUEUED
            ]
            self._hint(again, [s.run for s in settlements])
        return Reply(now, verdicts)

    async def ask(self, wish: Wish, runs: Sequence[str], note: str | None = None) -> Reply[bool]:
        assert wish is Wish.CANCEL
        with self._lock:
            now = self._now()
            answers: list[bool] = []
            for id in runs:
                run = self._runs.get(id)
                answers.append(run is not None and not run.state.final)
                if run is not None:
                    self._save(rules.cancel(run, now, note))
            self._hint([], runs)
        return Reply(now, answers)

    async def runs(self, query: RunQuery) -> Page:
        with self._lock:
            now = self._now()
            if query.ids is not None:
                return Page(now, [self._runs[id] for id in query.ids if id in self._runs], None)
            before = after_cursor(query.cursor) or self._arrivals + 1
            found: list[Run] = []
            for id, run in reversed(self._runs.items()):
                if self._order[id] < before and _matches(run, query):
                    if len(found) == query.limit:
                        return Page(now, found, str(self._order[found[-1].id]))
                    found.append(run)
            return Page(now, found, None)

    async def depths(self) -> Reply[Depth]:
        with self._lock:
            queued: Counter[str] = Counter()
            running: Counter[str] = Counter()
            for run in self._runs.values():
                queued[run.task] += run.state is State.QUEUED
                running[run.task] += run.state is State.RUNNING
            tasks = sorted(task for task in queued if queued[task] or running[task])
            return Reply(self._now(), [Depth(task, queued[task], running[task]) for task in tasks])

    async def sweep(self, retention: Retention) -> Swept:
        with self._lock:
            now = self._now()
            expired = self._expire(now)
            forgotten = self._history.forget(retention, now)
            for id in forgotten:
                del self._runs[id], self._order[id]
            if self._lanes.entries > 2 * self._unfinished() + 1000:
                self._lanes.rebuild(self._queued())
            self._hint([], expired)
            return Swept(now, len(expired), len(forgotten))

    def changes(self) -> AbstractAsyncContextManager[AsyncIterator[Hint]]:
        return self._hub.subscribe()

    # -- steps, all under the lock ---------------------------------------------------------------------------------

    def _now(self) -> float:
        self._latest = max(self._latest, round(time.time() + self._backend.skew, DIGITS))
        return self._latest

    def _admit(self, new: NewRun, now: float) -> Decision:
        if new.id in self._runs:
            return Decision(new.id, Reason.ACCEPTED)
        if self._unfinished() >= self._backend.capacity:
            return Decision(new.id, Reason.QUEUE_FULL)
        self._arrivals += 1
        self._order[new.id] = self._arrivals
        body = wire.decode_or_blank(new.wire)
        run = Run(
            id=new.id,
            task=new.task,
            key=new.key,
            priority=new.priority,
            created_at=now,
            due_at=new.due_at(now),
            expires_at=new.expiry(now),
            args=bytes(body.args),
            origin=body.origin or Origin(),
            policy=body.policy or Policy(),
            wire=new.wire,
        )
        self._save(run)
        return Decision(new.id, Reason.ACCEPTED)

    def _save(self, run: Run) -> None:
        """The one place where a run changes, so that the indexes always follow its state."""
        before = self._runs.get(run.id)
        self._runs[run.id] = run
        if run.state is State.RUNNING:
            self._leased.setdefault(run.id, 0.0)
            return
        self._leased.pop(run.id, None)
        if run.state is State.QUEUED:
            self._lanes.push(run.task, run.priority, (run.due_at, self._order[run.id], run.id))
            if run.expires_at is not None:
                heapq.heappush(self._expiring, (run.expires_at, run.id))
        elif before is None or not before.state.final:
            self._history.add(run)

    def _take(self, worker: str, tasks: Sequence[str], free: int, lease: float, now: float) -> list[Lease]:
        taken: list[Lease] = []
        due = self._lanes.pop_due(tasks, now)
        while len(taken) < free and (id := next(due, None)):
            run = self._runs[id]
            if run.expires_at is not None and run.expires_at <= now:
                self._save(rules.expire(run, now))
                continue
            run = rules.claim(run, worker, lease, now)
            self._save(run)
            taken.append(run.lease)
        return taken

    def _held(self, lease: Lease) -> Run | None:
        run = self._runs.get(lease.run)
        held = run is not None and run.state is State.RUNNING and run.fence == lease.fence
        return run if held else None

    def _offer_lapsed(self, now: float) -> list[Run]:
        offered: list[Run] = []
        for id, again_at in self._leased.items():
            run = self._runs[id]
            if run.until is not None and run.until <= now and again_at <= now:
                offered.append(run)
                if len(offered) == OFFERS:
                    break
        for run in offered:
            self._leased[run.id] = now + OFFER_AGAIN
        return offered

    def _register(self, worker: str, tasks: Sequence[str], now: float) -> float | None:
        known = frozenset(tasks)
        others = waiting(self._idle.values(), worker, known, now)
        wake_at = wake_for(others, self._lanes.upcoming(tasks, len(others) + 1))
        self._idle[worker] = Idle(worker, known, now, wake_at)
        return None if wake_at is None else max(0.0, wake_at - now)

    def _extend(self, lease: Lease, until: float) -> Renewal:
        run = self._held(lease)
        if run is None:
            return Renewal.LOST
        self._runs[run.id] = replace(run, until=until)
        return Renewal.CANCEL if run.cancel_asked else Renewal.OK

    def _settle(self, settlement: Settlement, now: float) -> Verdict:
        run = self._runs.get(settlement.run)
        verdict = rules.judge(run, settlement, now)
        if run is not None and verdict is Verdict.APPLIED:
            self._save(rules.apply(run, settlement, now))
        return verdict

    def _expire(self, now: float) -> list[str]:
        expired: list[str] = []
        while self._expiring and self._expiring[0][0] <= now:
            _, id = heapq.heappop(self._expiring)
            run = self._runs.get(id)
            if run and run.state is State.QUEUED and run.expires_at is not None and run.expires_at <= now:
                self._save(rules.expire(run, now))
                expired.append(id)
        return expired

    def _hint(self, arrivals: Sequence[tuple[str, float]], runs: Sequence[str] = ()) -> None:
        workers = to_hint(self._idle.values(), arrivals, self._latest) if self._idle else set[str]()
        for worker in workers:
            del self._idle[worker]
        if self._hub.watched and (workers or runs):
            self._hub.publish(Hint(workers=frozenset(workers), runs=frozenset(runs)))

    def _stands(self, entry: Entry) -> bool:
        run = self._runs.get(entry[2])
        return run is not None and run.state is State.QUEUED and run.due_at == entry[0]

    def _queued(self) -> list[tuple[str, int, Entry]]:
        return [
            (run.task, run.priority, (run.due_at, self._order[run.id], run.id))
            for run in self._runs.values()
            if run.state is State.QUEUED
        ]

    def _unfinished(self) -> int:
        return len(self._runs) - len(self._history)


def _matches(run: Run, query: RunQuery) -> bool:
    return (
        (not query.states or run.state in query.states)
        and (query.task is None or run.task == query.task)
        and (query.key is None or run.key == query.key)
    )
