"""The state of the model in plain dictionaries: runs, marks, tasks, rates, batches and decisions."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from rota.domain.guards import Cooldown
from rota.domain.overrides import Overrides
from rota.domain.policy import Limit, Rate
from rota.domain.run import NewRun
from rota.store import ClaimRequest
from storekit.model.schedules import Schedules

ATTEMPTS_SHOWN = 20
ANY = "any of them"
"""The run of a decision about several runs in one transaction: a store may name any of them."""


@dataclass
class Ending:
    """How one claim of a run ended. `lost`: another worker settled the lapsed lease."""

    fence: int
    worker: str
    outcome: str
    lost: bool


@dataclass
class Row:
    """One run. `command` is a cancel or a pause that its worker has not seen yet."""

    new: NewRun
    order: int
    created: float
    due: float
    expires: float | None
    body: bytes
    needs: tuple[str, ...] = ()
    cooldowns: tuple[Cooldown, ...] = ()
    priority: int = 0
    touches: int = 1
    touched: float | None = None
    state: str = "queued"
    fence: int = 0
    failures: int = 0
    losses: int = 0
    holder: str | None = None
    until: float | None = None
    command: str | None = None
    reason: str | None = None
    note: str | None = None
    error: str | None = None
    result: bytes | None = None
    progress: Any = None
    saved: bytes | None = None
    finished: float | None = None
    awaited: bool = False
    limits: tuple[str, ...] = ()
    """The named limits against which its lease counts."""
    called: bool = False
    """It is the run of a callback."""
    endings: list[Ending] = field(default_factory=list[Ending])

    @property
    def id(self) -> str:
        return self.new.id

    @property
    def final(self) -> bool:
        return self.state not in ("queued", "running", "paused")

    @property
    def waiting(self) -> bool:
        return self.state in ("queued", "paused")

    @property
    def about(self) -> tuple[str, str]:
        """The (task, key) of the mark of this run."""
        return self.new.task, self.new.unique_key or self.new.key or ""

    @property
    def marks(self) -> bool:
        """Whether the end of the run writes a mark."""
        guards = self.new.guards
        return guards.unique == "done" or bool(guards.cooldowns) or guards.marks

    def too_late(self, now: float) -> bool:
        return self.state == "queued" and self.expires is not None and self.expires <= now


@dataclass
class Mark:
    succeeded: float | None = None
    finished: float | None = None
    failures: int = 0
    holder: str | None = None
    """Of the name of a shared key or a window: the run that was accepted last (`model.uniques`)."""
    task: str | None = None
    """The task of the holder."""


@dataclass
class Fan:
    """How many children of a fan have ended. `total` is None while the list grows; `allowed` None: all may fail."""

    total: int | None
    allowed: int | None
    created: float
    ended: int = 0
    failed: int = 0

    @property
    def over(self) -> bool:
        return (self.allowed is not None and self.failed > self.allowed) or (
            self.total is not None and self.ended >= self.total
        )


@dataclass
class Task:
    """The declaration of a task, and whether it is paused."""

    enabled: bool = True
    paused: bool = False
    paused_until: float | None = None
    total: int | None = None
    per_key: int | None = None
    interval: float | None = None
    burst: int = 1
    rate_per_key: bool = False
    limits: tuple[str, ...] = ()
    """The names of the rows that have the numbers of its named limits."""
    weights: dict[str, int] | None = None
    """The weights of the shares; None: the runs take no turns."""
    paused_keys: frozenset[str] = frozenset()

    def gated_by(self, limit: Limit | None, rate: Rate | None) -> "Task":
        """Return the task with this limit and this rate; None leaves them as they are."""
        task = self if limit is None else replace(self, total=limit.total, per_key=limit.per_key)
        if rate is None:
            return task
        return replace(task, interval=rate.per / rate.n, burst=rate.burst, rate_per_key=rate.per_key)

    @property
    def pace(self) -> tuple[float | None, int, bool]:
        return self.interval, self.burst, self.rate_per_key

    def is_paused(self, now: float) -> bool:
        return self.paused and (self.paused_until is None or self.paused_until > now)

    @property
    def gated(self) -> bool:
        return (self.total or self.per_key or self.interval) is not None or bool(self.limits or self.paused_keys)


@dataclass
class Freeze:
    """Nothing starts until `until`; None: until a thaw."""

    until: float | None
    note: str | None


@dataclass
class Decisions:
    """One row per (task, key, reason): the count, the first and the last time, and the run and the note of the last."""

    rows: dict[tuple[str, str, str], list[Any]] = field(default_factory=dict[tuple[str, str, str], list[Any]])
    totals: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """How often each (task, reason) was decided; also how often a run of the task was accepted."""

    def add(
        self,
        task: str,
        key: str | None,
        reason: str,
        now: float,
        *,
        count: int = 1,
        run: str | None = None,
        note: str | None = None,
    ) -> None:
        self.totals[task, reason] += count
        row = self.rows.setdefault((task, key or "", reason), [0, now, now, None, None])
        row[0] += count
        row[2:] = [now, run, note]


@dataclass
class Book:
    now: float = 0.0
    rows: dict[str, Row] = field(default_factory=dict[str, Row])
    arrivals: int = 0
    marks: dict[tuple[str, str], Mark] = field(default_factory=dict[tuple[str, str], Mark])
    tasks: dict[str, Task] = field(default_factory=dict[str, Task])
    overrides: dict[str, Overrides] = field(default_factory=dict[str, Overrides])
    full_at: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    """When the rate bucket of a (task, key) is full again. The bucket of a whole task has the empty key."""
    turns: dict[tuple[str, str, int], tuple[str, int]] = field(
        default_factory=dict[tuple[str, str, int], tuple[str, int]]
    )
    """Whose turn it is in a (task, queue, priority), and how many runs it has got."""
    fingerprints: dict[str, str] = field(default_factory=dict[str, str])
    """Of each id that a submitter gave: what was submitted under it."""
    batches: dict[str, list[tuple[str, int]]] = field(default_factory=dict[str, list[tuple[str, int]]])
    """The runs of the last claim of each worker: (run, fence)."""
    ready: dict[str, ClaimRequest] = field(default_factory=dict[str, ClaimRequest])
    """The claims of the workers to which a put may hand over a run."""
    handed: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    """The run that was handed over to each worker since its last claim."""
    unclear: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Marks that this step of the story may or may not have written."""
    fans: dict[str, Fan] = field(default_factory=dict[str, Fan])
    freeze: Freeze | None = None
    schedules: Schedules = field(default_factory=Schedules)
    decisions: Decisions = field(default_factory=Decisions)

    def task(self, name: str) -> Task:
        return self.tasks.get(name) or Task()

    def in_force(self, name: str) -> Task:
        """Return the task as its code declares it, with what an operator says in its place."""
        task, given = self.task(name), self.overrides.get(name)
        if given is None:
            return task
        task = task.gated_by(given.limit, given.rate)
        return replace(task, enabled=task.enabled and given.enabled is not False)

    def mark(self, about: tuple[str, str]) -> Mark:
        return self.marks.get(about) or Mark()

    def running(self) -> Iterator[Row]:
        return (row for row in self.rows.values() if row.state == "running")

    def leased(self, id: str, fence: int, worker: str | None) -> Row | None:
        """Return the run if `worker` has it by the claim with this fence."""
        row = self.rows.get(id)
        return row if row and row.state == "running" and (row.fence, row.holder) == (fence, worker) else None

    def frozen(self, now: float) -> Freeze | None:
        ended = self.freeze is not None and self.freeze.until is not None and self.freeze.until <= now
        return None if ended else self.freeze

    def in_group(self, group: str) -> list[Row]:
        """Return the waiting runs of a group."""
        return [row for row in self.rows.values() if row.new.group == group and row.waiting]

    def forget_turns(self) -> None:
        """A sweep forgets the turns of tasks that have no waiting runs."""
        waiting = {row.new.task for row in self.rows.values() if row.waiting}
        self.turns = {name: turn for name, turn in self.turns.items() if name[0] in waiting}

    def count_decision(self, row: Row, reason: str, run: str | None = None, note: str | None = None) -> None:
        self.decisions.add(row.new.task, row.new.key, reason, self.now, run=run, note=note)
