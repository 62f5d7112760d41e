"""The worlds of the walk, and what the workers and clients in them know."""

from typing import NamedTuple

from msgspec.structs import replace

from rota.domain import codec, lifecycle
from rota.domain.guards import Guards
from rota.domain.policy import Limit, Policy, Retry
from rota.domain.run import Failure, NewRun, Origin, Run
from rota.domain.schedule import Schedule
from rota.domain.settlement import Settlement
from rota.domain.spec import TaskSpec

BASE = 1_000_000.0
STEP = 60.0
"""Seconds by which the clock moves. Nothing is due exactly then, so milliseconds of a real store make no difference."""
LEASE = 90.0
"""Seconds of a lease; it lapses at the second move of the clock."""
TASK = "t"
BOOM = Failure("ValueError", "boom")
OUTCOMES: tuple[lifecycle.Outcome, ...] = (lifecycle.Succeeded(b"1"), lifecycle.Failed(BOOM), lifecycle.Interrupted())
PATIENT = Policy(retry=Retry(1, backoff="fixed", delay=50, jitter=0), max_losses=2)
ONCE = Policy(lost="fail")


class World(NamedTuple):
    """The runs that clients put, the run of a schedule, and how many commands, losses and crashes may happen."""

    spec: TaskSpec
    news: tuple[NewRun, ...]
    made: NewRun
    ticks: int = 4
    commands: int = 1
    lost: int = 1
    crashes: int = 1

    def once(self, id: str) -> bool:
        """Return whether a run may be called at most once."""
        new = next(new for new in (*self.news, self.made) if new.id == id)
        return b'"lost":"fail"' in new.body


def new_run(id: str, policy: Policy, args: bytes = b"{}") -> NewRun:
    return NewRun(id=id, task=TASK, body=codec.encode(args, Origin(), policy), key="k")


A, B, C = new_run("a", PATIENT), new_run("b", PATIENT), new_run("c", PATIENT)

WORLDS = {
    "leases": World(TaskSpec(TASK), (A,), new_run("c", ONCE), commands=0, lost=0, crashes=0),
    "limit": World(TaskSpec(TASK, limit=Limit(per_key=1)), (A, new_run("b", ONCE)), replace(C, priority=1)),
    "unique": World(
        TaskSpec(TASK, limit=Limit(2)),
        (
            replace(A, unique_key="u", guards=Guards("queued", "push")),
            replace(B, unique_key="u", guards=Guards("queued", "set"), delay=50.0),
        ),
        replace(C, unique_key="u", guards=Guards("active")),
    ),
    "joins": World(  # a schedule with overlap="queue", and submits that join with other arguments
        TaskSpec(TASK),
        (
            replace(A, unique_key="u", guards=Guards("queued", "keep")),
            replace(new_run("b", PATIENT, b'{"n":2}'), unique_key="u", guards=Guards("queued", "set")),
            replace(new_run("d", PATIENT, b'{"n":3}'), unique_key="u", guards=Guards("queued", "push")),
        ),
        replace(C, unique_key="u", guards=Guards("queued", "wait", behind=True)),
    ),
    "needs": World(
        TaskSpec(TASK),
        (replace(A, expires_after=100.0), replace(new_run("b", ONCE), needs=("a",))),
        replace(C, unique_key="u", guards=Guards("queued", behind=True), needs=("b",)),
    ),
}

SCHEDULE = Schedule(
    id="s", trigger="every 100s", task=TASK, body="{}", key="s", anchor=BASE, next_at=BASE + 30, fires_at=BASE + 30
)


class Seat(NamedTuple):
    """What one worker knows. It may be out of date, if the worker was frozen."""

    name: str
    n: int = 0
    leased: tuple[Run, ...] = ()
    lapsed: tuple[Run, ...] = ()
    due: tuple[Schedule, ...] = ()
    unheard: bool = False
    """The reply to its last claim was lost, so it claims again with the same number."""
    unsure: tuple[Settlement, ...] = ()
    """Settlements whose replies were lost."""

    @property
    def key(self) -> tuple[object, ...]:
        return (
            self.name,
            self.n,
            tuple([(run.id, run.fence) for run in self.leased]),
            tuple([(run.id, run.fence, run.worker) for run in self.lapsed]),
            tuple([(schedule.version, schedule.next_at) for schedule in self.due]),
            self.unheard,
            tuple([(settlement.run, settlement.fence, settlement.outcome) for settlement in self.unsure]),
        )


class People(NamedTuple):
    """All that is known outside the store: the workers, and what has happened so far."""

    seats: tuple[Seat, ...] = (Seat("ada"), Seat("bob"))
    put: tuple[int, ...] = ()
    ticks: int = 0
    commands: int = 0
    lost: int = 0
    crashes: int = 0
    fired: int = 0
    applied: tuple[Settlement, ...] = ()
    """The settlements that the store answered with applied."""
    called: tuple[tuple[str, int], ...] = ()
    """The calls of handlers: (run, fence)."""

    @property
    def key(self) -> tuple[object, ...]:
        return (
            tuple([seat.key for seat in self.seats]),
            self.put,
            self.commands,
            self.lost,
            self.crashes,
            self.fired,
            tuple(sorted(self.called)),
        )
