"""Evidence: what the store knows about a task and a key, read once."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rota.client.fleet import Fleet, is_stranded, see
from rota.domain.decision import DecisionCount, Reason
from rota.domain.guards import Mark
from rota.domain.run import DEFAULT_QUEUE, Run, State
from rota.domain.schedule import Schedule
from rota.domain.spec import LIMIT_ROW, TaskSpec, unique_row
from rota.errors import InvalidOptions
from rota.store import Depth, Freeze, MarkRow, RateRow, Reads, RowQuery, RunQuery, WorkerSeen
from rota.why.needs import Awaited, follow

T = TypeVar("T")

DECISIONS_SHOWN = 5
ENDED = 20
"""Ended runs that are read to find the one that ended last: stores list runs by their creation."""
BESIDE = 1000
"""Queued runs that are read to say where a run stands among the shares of its task."""
WAITING = (State.QUEUED, State.RUNNING, State.PAUSED)
STARTED = tuple(state for state in State if state.final or state is State.RUNNING)


class Shared(Struct, frozen=True):
    """A named limit: its number, and the running runs of each task that has it."""

    name: str
    total: int
    running: Mapping[str, int]


class Evidence(Struct, frozen=True):
    """What was read about a task, or one key of it.

    `decisions`, `unfinished` and `ended` are about the key, if there is one. `of_task` are the decisions without a key.
    `started` are the newest runs of the task that have started, with any key. `first` is the waiting run to explain,
    and `trail` what it waits for. `done` says for a decision which success explains it.
    """

    now: float
    task: str
    key: str | None
    spec: TaskSpec | None
    fleet: Fleet
    schedules: Sequence[Schedule]
    decisions: Sequence[DecisionCount]
    of_task: Sequence[DecisionCount]
    depth: Depth
    unfinished: Sequence[Run]
    ended: Sequence[Run]
    started: Sequence[Run]
    freeze: Freeze | None = None
    """Nothing starts in this store."""
    mark: Mark | None = None
    first: Run | None = None
    trail: Sequence[Awaited] = ()
    done: Mapping[tuple[Reason, str], MarkRow] = {}
    holders: Mapping[str, str] = {}
    """If the task shares its unique keys: the task of each run that decisions name."""
    windows: Mapping[str, float] = {}
    """Of the keys that a success `within` a window keeps out, or kept out: until when."""
    shared: Sequence[Shared] = ()
    rate: RateRow | None = None
    """If the task has a rate: its state, or that of the key if each key has its own."""
    beside: Sequence[Run] = ()
    """If `first` has a share: the queued runs of the task that are due for longest, of all shares."""

    @property
    def queue(self) -> str:
        """The queue of the run to explain; without one, the queue of the task."""
        if self.first is not None:
            return self.first.queue
        return DEFAULT_QUEUE if self.spec is None else self.spec.queue

    def live(self) -> list[WorkerSeen]:
        """Return the live workers that know the task and serve the queue."""
        return [worker for worker in self.fleet.alive if worker.takes(self.task, self.queue)]

    def knowing(self) -> list[WorkerSeen]:
        return [worker for worker in self.fleet.workers if self.task in worker.tasks]

    @property
    def waiting(self) -> list[Run]:
        """Unfinished runs that are not running."""
        return [run for run in self.unfinished if run.state is not State.RUNNING]

    @property
    def running(self) -> list[Run]:
        return [run for run in self.unfinished if run.state is State.RUNNING]

    @property
    def working(self) -> list[Run]:
        """Running runs whose workers renew their leases."""
        return [run for run in self.running if not is_stranded(run, self.now)]

    @property
    def stranded(self) -> list[Run]:
        """Running runs whose leases have lapsed."""
        return [run for run in self.unfinished if is_stranded(run, self.now)]

    @property
    def due(self) -> list[Run]:
        """Runs that only need a free seat."""
        return [run for run in self.waiting if run.state is State.QUEUED and run.due_at <= self.now and not run.needs]

    @property
    def own_schedules(self) -> list[Schedule]:
        """The schedules that make runs of the key, or of any key if there is no key."""
        return [each for each in self.schedules if self.key is None or each.key == self.key]

    @property
    def last(self) -> Run | None:
        """The run that ended last."""
        return max(self.ended, key=lambda run: run.finished_at or 0.0, default=None)

    @property
    def known(self) -> bool:
        """Does the store know anything of this task?"""
        found = (self.spec, self.schedules, self.decisions, self.unfinished, self.ended, self.knowing())
        return any(part is not None and part != [] for part in found)


async def shared_limits(store: Reads, spec: TaskSpec, depths: Sequence[Depth]) -> list[Shared]:
    """Return how far the named limits of the task are used, by the runs of all tasks that have them now."""
    if not spec.limits:
        return []
    everything = (await store.rows(TaskSpec, RowQuery(limit=10_000))).items
    named = [limit.name or "" for limit in spec.limits]
    rows = (await store.rows(TaskSpec, RowQuery(names=[f"{LIMIT_ROW}{name}" for name in named]))).items
    totals = {row.name.removeprefix(LIMIT_ROW): row.limit.total or 0 for row in rows if row.limit}
    found: list[Shared] = []
    for name in named:
        tasks = {each.name for each in everything if any(own.name == name for own in each.limits)}
        running = {depth.task: depth.running for depth in depths if depth.task in tasks and depth.running}
        if name in totals:
            found.append(Shared(name, totals[name], running))
    return found


async def gather(store: Reads, task: str, key: str | None, run: Run | None = None) -> Evidence:
    """Read the evidence in a bounded number of reads, however long the queue is. `run` is the run to explain, if there
    is one."""
    specs = (await store.rows(TaskSpec, RowQuery(names=[task]))).items
    fleet = await see(store)
    about = RowQuery(task=task, key=key, limit=50)
    depths = (await store.depths()).items
    final = [state for state in State if state.final]
    decisions = (await store.rows(DecisionCount, about)).items
    unfinished = (await store.runs(RunQuery(task=task, key=key, state=WAITING, limit=100))).runs
    waiting = (each for each in unfinished if each.state is not State.RUNNING)
    first = run or min(waiting, key=lambda each: each.due_at, default=None)
    return Evidence(
        now=fleet.now,
        task=task,
        key=key,
        spec=specs[0].in_force() if specs else None,
        fleet=fleet,
        schedules=(await store.rows(Schedule, RowQuery(task=task, limit=20))).items,
        decisions=decisions,
        of_task=(await store.rows(DecisionCount, RowQuery(task=task, key="", limit=50))).items,
        depth=next((depth for depth in depths if depth.task == task), Depth(task, 0, 0)),
        unfinished=unfinished,
        ended=(await store.runs(RunQuery(task=task, key=key, state=final, limit=ENDED))).runs,
        started=(await store.runs(RunQuery(task=task, state=STARTED, limit=100))).runs,
        freeze=next(iter((await store.rows(Freeze)).items), None),
        mark=None if key is None else await _mark(store, task, key),
        first=first,
        trail=[] if first is None else await follow(store, first),
        done=await _done(store, decisions),
        holders=await _holders(store, decisions) if specs and specs[0].guards.unique_in else {},
        windows=await _windows(store, specs[0], decisions) if specs else {},
        shared=await shared_limits(store, specs[0], depths) if specs else [],
        rate=None if not specs else await _rate(store, specs[0].in_force(), key if first is None else first.key),
        beside=await _beside(store, first),
    )


async def _rate(store: Reads, spec: TaskSpec, key: str | None) -> RateRow | None:
    if spec.rate is None:
        return None
    query = RowQuery(task=spec.name, key=key if spec.rate.per_key else "")
    return next(iter((await store.rows(RateRow, query)).items), None)


async def _beside(store: Reads, first: Run | None) -> Sequence[Run]:
    if first is None or first.share is None or first.state is not State.QUEUED:
        return ()
    query = RunQuery(task=first.task, state=State.QUEUED, order="due", limit=BESIDE)
    try:
        return (await store.runs(query)).runs
    except InvalidOptions:  # too many wait to be sorted: the last arrivals, in their order
        return (await store.runs(replace(query, order="created"))).runs[::-1]


async def _holders(store: Reads, decisions: Sequence[DecisionCount]) -> dict[str, str]:
    ids = [row.run for row in decisions[:DECISIONS_SHOWN] if row.run]
    return {run.id: run.task for run in (await store.runs(RunQuery(ids=ids))).runs} if ids else {}


async def _windows(store: Reads, spec: TaskSpec, decisions: Sequence[DecisionCount]) -> dict[str, float]:
    row, within = unique_row(spec), spec.guards.within
    if row is None or within is None:
        return {}
    keys = [each.key for each in decisions[:DECISIONS_SHOWN] if each.reason is Reason.ALREADY_DONE]
    marks = {key: await _mark(store, row.name, key) for key in keys}
    return {key: mark.finished_at + within for key, mark in marks.items() if mark and mark.finished_at is not None}


async def _done(store: Reads, decisions: Sequence[DecisionCount]) -> dict[tuple[Reason, str], MarkRow]:
    """Return the success that explains a decision: the mark that refused it as done, or the last success of a task that
    was late."""
    found: dict[tuple[Reason, str], MarkRow] = {}
    for row in decisions[:DECISIONS_SHOWN]:
        if row.reason is Reason.ALREADY_DONE:
            found[row.reason, row.key] = await _in_the_way(store, row.task, row.key)
        elif row.reason is Reason.LATE:
            marks = (await store.rows(MarkRow, RowQuery(task=row.task))).items
            ours = [each.mark for each in marks if each.mark and row.key in ("", each.key, each.key.rpartition("@")[0])]
            last = max((mark.succeeded_at or 0.0 for mark in ours), default=0.0)
            found[row.reason, row.key] = MarkRow(row.task, row.key, Mark(last))
    return found


async def _in_the_way(store: Reads, task: str, key: str) -> MarkRow:
    """Return the success that refuses new runs of `key`: of this key itself, or of the key in its latest period."""
    known = (await store.rows(MarkRow, RowQuery(task=task))).items
    ours = [row for row in known if row.mark and row.mark.succeeded_at and key in (row.key, row.key.rpartition("@")[0])]
    return max(ours, key=lambda row: (row.mark and row.mark.succeeded_at) or 0.0, default=MarkRow(task, key, None))


async def _mark(store: Reads, task: str, key: str) -> Mark | None:
    rows = (await store.rows(MarkRow, RowQuery(task=task, key=key))).items
    return rows[0].mark if rows else None
