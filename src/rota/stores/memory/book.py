"""The book of the memory store: dictionaries and heaps. Every change of a run goes through `save`."""

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from rota.domain import settlement as rules
from rota.domain.decision import Reason
from rota.domain.run import DEFAULT_QUEUE, Lease, NewRun, Run, RunHead, State, after
from rota.domain.schedule import Schedule
from rota.store import AUDIT_KEPT, OFFER_AGAIN, OFFERS, AuditEntry, Freeze
from rota.stores.book import Candidate, Lane
from rota.stores.bounds import LEDGER
from rota.stores.events import EventRow, record
from rota.stores.idle import Arrival
from rota.stores.memory.bodies import added, fields_of
from rota.stores.memory.counts import Counts
from rota.stores.memory.events import EventLog
from rota.stores.memory.gates import MemoryGates
from rota.stores.memory.history import History
from rota.stores.memory.lanes import Entry, Lanes, key_lane, lane_name, lane_of
from rota.stores.memory.own_ids import OwnIds
from rota.stores.memory.schedules import Schedules
from rota.stores.memory.shares import SharedLanes
from rota.stores.memory.tasks import MemoryTasks
from rota.stores.memory.workers import MemoryWorkers
from rota.stores.retention import over

_QUEUED, _RUNNING = State.QUEUED, State.RUNNING


class MemoryBook(OwnIds, MemoryTasks, MemoryWorkers, MemoryGates):
    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.now = 0.0
        self.arrivals: list[Arrival] = []
        self.touched: set[str] = set()
        self.directed: set[str] = set()
        self.recording = False
        self.events: list[EventRow] = []
        self.log = EventLog()
        self.runs: dict[str, Run] = {}
        self.order: dict[str, int] = {}
        self.history = History()
        self.leases: dict[str, float] = {}  # run id -> the earliest time of its next offer for rescue
        self.schedules = Schedules()
        self.count = Counts()
        self.audit: dict[str, AuditEntry] = {}
        self._freeze: Freeze | None = None
        self._capacity = capacity
        self._taken: dict[str, tuple[int, list[Lease]]] = {}
        self._arrived = 0
        self._lapse_at = math.inf  # no lease lapses before
        self._due = Lanes(self._waits)
        self._parked = Lanes(self._waits_parked)
        self._shared = SharedLanes(self._waits)
        self._lanes: defaultdict[str, dict[str, None]] = defaultdict(dict)  # task -> the lanes of its runs
        self._expiring: list[tuple[float, str]] = []
        self._holders: dict[tuple[str, str], dict[str, None]] = {}
        self._waiters: dict[str, dict[str, None]] = {}
        self._groups: dict[str, dict[str, None]] = {}

    # -- runs ------------------------------------------------------------------------------------------------------

    def load(self, ids: Sequence[str]) -> None: ...

    def get(self, id: str) -> Run | None:
        return self.runs.get(id)

    def add(self, new: NewRun, due_at: float, parked: bool) -> None:
        id, now = new.id, self.now
        if id in self.runs:
            return
        self._arrived += 1
        self.order[id] = self._arrived
        run = added(new, now, due_at, parked)
        self.wait_for(id, new.needs)
        if new.group is not None:
            self._groups.setdefault(new.group, {})[id] = None
        self.runs[id] = run
        self.count.add(run)
        if run.unique_key is not None:
            self._holders.setdefault((run.task, run.unique_key), {})[id] = None
        self._enqueue(run)
        if self.recording:
            record(self, "queued", run, Reason.ACCEPTED.value)

    def rewrite(self, id: str, body: bytes | None, priority: int, joined: bool = True) -> bool:
        if body is None or self.runs[id].body == body:
            return False
        self.runs[id] = replace(self.runs[id], **fields_of(body))
        return True

    def put_share(self, id: str, share: str) -> None: ...

    def frozen(self) -> Freeze | None:
        return self._freeze if self._freeze is not None and self._freeze.in_force(self.now) else None

    def put_freeze(self, freeze: Freeze | None) -> None:
        self._freeze = freeze

    def keep_audit(self, entry: AuditEntry) -> bool:
        if entry.id in self.audit:
            return False
        self.audit[entry.id] = entry
        while len(self.audit) > AUDIT_KEPT:
            del self.audit[next(iter(self.audit))]
        return True

    def body_of(self, id: str) -> bytes:
        return self.runs[id].body

    def saved_of(self, id: str) -> bytes | None:
        return self.runs[id].saved

    def delete(self, id: str) -> None:
        run = self.runs.pop(id)
        self.keep_stub(run, self.now)
        self._unindex(run)
        self.history.remove(id)
        del self.order[id]
        if run.member is not None:
            self._groups.get(run.member.group, {}).pop(id, None)

    def same_work(self, one: str, other: str) -> bool:
        return self.runs[one].body == self.runs[other].body

    def save(self, run: RunHead) -> None:
        """Store the run, and bring indexes and counts up to date."""
        assert isinstance(run, Run)  # the ledger saves only runs that it got from this book
        before = self.runs.get(run.id)
        if before is not None and before.body != run.body:  # a `rewrite` came after the ledger had read the run
            run = replace(run, **fields_of(before.body))
        self.runs[run.id] = run
        if before is not None and before.state is _RUNNING and run.state.final and run.unique_key is None:
            self.count.ended(before)  # most changes that come here: they touch no other index
            self.leases.pop(run.id, None)
            self.history.add(run)
            return
        if before is not None:
            self._unindex(before)
        self._index(run, before)

    def full(self) -> bool:
        return len(self.runs) - self.history.count >= self._capacity

    def _unindex(self, run: Run) -> None:
        self.count.add(run, -1)
        if run.unique_key is not None:
            self._holders.get((run.task, run.unique_key), {}).pop(run.id, None)

    def _index(self, run: Run, before: Run | None) -> None:
        self.count.add(run)
        if run.unique_key is not None and not run.state.final:
            self._holders.setdefault((run.task, run.unique_key), {})[run.id] = None
        if run.state is _RUNNING:
            self._keep_lease(run)
            return
        self.leases.pop(run.id, None)
        if run.state is _QUEUED:
            self._enqueue(run)
        elif run.state.final and (before is None or not before.state.final):
            self.history.add(run)

    def _keep_lease(self, run: Run) -> None:
        self.leases.setdefault(run.id, 0.0)
        if run.until is not None and run.until < self._lapse_at:
            self._lapse_at = run.until

    def _enqueue(self, run: Run) -> None:
        """Put a queued run into its lane. A run with needs is in no lane until its last need is met."""
        task = run.task
        lane = task if run.queue == DEFAULT_QUEUE else lane_name(task, run.queue)
        self._lanes[task][lane] = None
        if not run.needs:
            entry = (run.due_at, self.order[run.id], run.id, run.priority)
            if run.parked:
                self._parked.push(key_lane(task, run.queue, run.key), entry, self.now)
            elif run.share:
                self._shared.push(lane, run.share, entry, self.now)
            else:
                self._due.push(lane, entry, self.now)
        if run.expires_at is not None:
            heapq.heappush(self._expiring, (run.expires_at, run.id))

    def _waits(self, entry: Entry) -> bool:
        """Whether the run of `entry` still waits at this place, and nothing holds it."""
        run = self.runs.get(entry[2])
        if run is None or run.state is not _QUEUED or run.parked or run.needs:
            return False
        return run.due_at == entry[0] and run.priority == entry[3]

    def _waits_parked(self, entry: Entry) -> bool:
        run = self.runs.get(entry[2])
        if run is None or run.state is not _QUEUED or not run.parked or run.needs:
            return False
        return run.due_at == entry[0] and run.priority == entry[3]

    # -- look-ups --------------------------------------------------------------------------------------------------

    def load_holders(self, names: Sequence[tuple[str, str]]) -> None: ...

    def holders(self, task: str, unique_key: str) -> Sequence[Run]:
        return [self.runs[id] for id in self._holders.get((task, unique_key), {})]

    def running(self, task: str) -> int:
        return self.count.tasks[task].running

    def running_key(self, task: str, key: str) -> int:
        return self.count.tasks[task].keys.get(key, 0)

    def pending(self, task: str, most: int) -> int:
        return min(most, self.count.tasks[task].ready)

    def best_parked(self, task: str, key: str) -> Sequence[Run]:
        lanes = [key_lane(task, lane_of(lane)[1], key) for lane in self._lanes.get(task, ())]
        best = [next(self._parked.due([lane], self.now), None) for lane in lanes]
        return [self.runs[entry[2]] for entry in best if entry is not None]

    def unpark_all(self, task: str) -> None:
        for run in list(self.runs.values()):
            if run.task == task and run.parked:
                self.save(replace(run, parked=False))

    def of_task(self, task: str, most: int) -> Sequence[Run]:
        waiting = (State.QUEUED, State.PAUSED)
        return [run for run in self.runs.values() if run.task == task and run.state in waiting][:most]

    def waiters(self, needs: Sequence[str]) -> Sequence[Run]:
        found = {id: None for need in needs for id in self._waiters.pop(need, ())}
        return [self.runs[id] for id in found if id in self.runs]

    def wait_for(self, run: str, needs: Sequence[str]) -> None:
        for need in needs:
            self._waiters.setdefault(need, {})[run] = None

    def grouped(self, group: str) -> Sequence[Run]:
        return [self.runs[id] for id in self._groups.get(group, ()) if id in self.runs]

    def expired(self) -> Sequence[Run]:
        found: dict[str, Run] = {}
        while self._expiring and self._expiring[0][0] <= self.now and len(found) < LEDGER.expired:
            _, id = heapq.heappop(self._expiring)
            run = self.runs.get(id)
            if run and run.state is State.QUEUED and run.expires_at is not None and run.expires_at <= self.now:
                found[id] = run
        return list(found.values())

    def next_expiry(self) -> float | None:
        """Return the earliest `expires_at`; no queued run expires before."""
        return self._expiring[0][0] if self._expiring else None

    # -- claiming --------------------------------------------------------------------------------------------------

    def lanes(self, tasks: Sequence[str], queues: Sequence[str]) -> Sequence[Lane]:
        found: list[Lane] = []
        names = self._lane_names(tasks, queues)
        for lanes, shared in ((self._due, False), (self._shared, True)):
            for name, priority, head in lanes.heads(names, self.now) if lanes else ():
                task, queue = lane_of(name)
                found.append(Lane(task, priority, head, queue, shared=shared))
        return found

    def _lane_names(self, tasks: Sequence[str], queues: Sequence[str]) -> list[str]:
        known = (lane for task in tasks for lane in self._lanes.get(task, ()))
        return [lane for lane in known if not queues or lane_of(lane)[1] in queues]

    def next_share(self, lane: Lane, after: str) -> str | None:
        return self._shared.next_share(lane_name(lane.task, lane.queue), lane.priority, after, self.now)

    def pick(self, lanes: Sequence[Lane], most: int, suspects: bool) -> Iterator[Candidate]:
        return islice(self.walk(lanes, suspects), most)

    def walk(self, lanes: Sequence[Lane], suspects: bool) -> Iterator[Candidate]:
        share = lanes[0].share
        names = list(dict.fromkeys(lane_name(lane.task, lane.queue) for lane in lanes))
        if share:
            entries = self._shared.due(names[0], share, lanes[0].priority, self.now)
        else:
            entries = self._due.due(names, self.now, {lane.priority for lane in lanes})
        for entry in entries:
            run = self.runs[entry[2]]
            expired = run.expires_at is not None and run.expires_at <= self.now
            if not expired and (suspects or not run.losses) and (run.share or "") == share:
                rank = -run.priority
                yield Candidate(rank, run.due_at, entry[1], run.id, run.task, run.key, run.losses, run.queue, share)

    def lease(self, worker: str, n: int, chosen: Sequence[Candidate], seconds: float) -> None:
        leases: list[Lease] = []
        for candidate in chosen:
            before = self.runs[candidate.id]
            run = rules.claim(before, worker, seconds, self.now)
            if run.unique_key is None:  # no index changes but these
                self.runs[run.id] = run
                self.count.claimed(run)
                self._keep_lease(run)
            else:
                self.save(run)
            leases.append(run.lease)
        self._taken[worker] = (n, leases)

    def taken(self, worker: str, n: int) -> list[Run]:
        at, leases = self._taken.get(worker, (0, []))
        get = self.runs.get
        return [
            run
            for lease in (leases if at == n else ())
            if (run := get(lease.run)) is not None and run.is_leased_to(lease.fence, worker)
        ]

    def offer_lapsed(self) -> list[Run]:
        if self.now < self._lapse_at:
            return []
        lapsed = (
            run
            for id, again_at in self.leases.items()
            if again_at <= self.now and (run := self.runs[id]).until is not None and run.until <= self.now
        )
        offered = list(islice(lapsed, OFFERS))
        self.leases.update((run.id, after(self.now, OFFER_AGAIN)) for run in offered)
        ends = ((again_at, self.runs[id].until or 0.0) for id, again_at in self.leases.items())
        self._lapse_at = min((max(times) for times in ends), default=math.inf)
        return offered

    def park(self, runs: Iterable[Candidate]) -> None:
        for candidate in runs:
            self.save(replace(self.runs[candidate.id], parked=True))

    def has_suspect(self, worker: str) -> bool:
        return self.count.suspects[worker] > 0

    def upcoming(self, tasks: Sequence[str], queues: Sequence[str], k: int) -> Sequence[float]:
        names = self._lane_names(tasks, queues)
        found = self._due.upcoming(names, k, self.now)
        return sorted([*found, *self._shared.upcoming(names, k, self.now)])[:k] if self._shared else found

    # -- schedules -------------------------------------------------------------------------------------------------

    def load_schedules(self, ids: Sequence[str]) -> None: ...

    def schedule(self, id: str) -> Schedule | None:
        return self.schedules.by_id.get(id)

    def put_schedule(self, schedule: Schedule) -> None:
        self.schedules.put(schedule)

    def drop_schedule(self, id: str) -> None:
        self.schedules.drop(id)

    def offer_schedules(self) -> list[Schedule]:
        return self.schedules.offer(self.now)

    def next_schedule(self) -> float | None:
        return self.schedules.next()

    # -- retention -------------------------------------------------------------------------------------------------

    def forget(self, ids: Sequence[str], workers_before: float, marks_before: float) -> None:
        for id in ids:
            self.keep_stub(self.runs[id], self.now)
            del self.runs[id], self.order[id]
        self.forget_stubs(self.now)
        waiting, waiting_tasks = 0, set[str]()
        self._lanes.clear()
        for run in self.runs.values():
            if run.state is _QUEUED:
                waiting += 1
                self._lanes[run.task][lane_name(run.task, run.queue)] = None
            elif run.state is State.PAUSED:
                waiting_tasks.add(run.task)
        waiting_tasks.update(self._lanes)
        for lanes in (self._due, self._parked, self._shared):
            if lanes.entries > 2 * waiting + 1000:
                lanes.prune()
        self.forget_workers(workers_before)
        self._taken = {name: taken for name, taken in self._taken.items() if name in self.workers}
        self.forget_tasks(marks_before, waiting_tasks)
        for id in [id for id, schedule in self.schedules.by_id.items() if over(schedule, marks_before)]:
            self.schedules.drop(id)
        self.forget_full_rates()
        self._holders = {name: ids for name, ids in self._holders.items() if ids}
        if ids:
            self._forget_names()
        self.count.forget()
        self.log.forget(self.now)

    def _forget_names(self) -> None:
        """Remove the runs that are gone from the groups and from the runs that wait."""
        for index in (self._groups, self._waiters):
            for name, ids in list(index.items()):
                left = {id: None for id in ids if id in self.runs}
                if left:
                    index[name] = left
                else:
                    del index[name]
