"""The worlds that are walked through, and what the people in them know."""

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
"""Seconds by which the clock moves. Nothing falls on a step, so that milliseconds of a real store change nothing."""
LEASE = 90.0
"""Lapses in the second step."""
TASK = "t"
BOOM = Failure("ValueError", "boom")
OUTCOMES: tuple[lifecycle.Outcome, ...] = (lifecycle.Succeeded(b"1"), lifecycle.Failed(BOOM), lifecycle.Interrupted())
PATIENT = Policy(retry=Retry(1, backoff="fixed", delay=50, jitter=0), max_losses=2)
ONCE = Policy(lost="fail")


class World(NamedTuple):
    """Runs that people put, and one that a schedule makes; how much may happen in all."""

    spec: TaskSpec
    news: tuple[NewRun, ...]
    made: NewRun
    ticks: int = 4
    asks: int = 1
    lost: int = 1
    crashes: int = 1

    def once(self, id: str) -> bool:
        """May this run be called at most once?"""
        new = next(new for new in (*self.news, self.made) if new.id == id)
        return b'"lost":"fail"' in new.body


def new_run(id: str, policy: Policy, args: bytes = b"{}") -> NewRun:
    return NewRun(id=id, task=TASK, body=codec.encode(args, Origin(), policy), key="k")


A, B, C = new_run("a", PATIENT), new_run("b", PATIENT), new_run("c", PATIENT)

WORLDS = {
    "leases": World(TaskSpec(TASK), (A,), new_run("c", ONCE), asks=0, lost=0, crashes=0),
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
    """What one worker believes. It may be wrong: a worker that is late is a zombie."""

    name: str
    n: int = 0
    held: tuple[Run, ...] = ()
    lapsed: tuple[Run, ...] = ()
    due: tuple[Schedule, ...] = ()
    unheard: bool = False
    """The reply to its last claim was lost: it claims again with the same number."""
    unsure: tuple[Settlement, ...] = ()
    """Settlements whose replies were lost."""

    @property
    def key(self) -> tuple[object, ...]:
        return (
            self.name,
            self.n,
            tuple([(run.id, run.fence) for run in self.held]),
            tuple([(run.id, run.fence, run.worker) for run in self.lapsed]),
            tuple([(schedule.version, schedule.next_at) for schedule in self.due]),
            self.unheard,
            tuple([(said.run, said.fence, said.outcome) for said in self.unsure]),
        )


class People(NamedTuple):
    """All that is known outside the store: the workers, and what has happened so far."""

    seats: tuple[Seat, ...] = (Seat("ada"), Seat("bob"))
    put: tuple[int, ...] = ()
    ticks: int = 0
    asks: int = 0
    lost: int = 0
    crashes: int = 0
    fired: int = 0
    applied: tuple[Settlement, ...] = ()
    """The settlements that the store called applied."""
    called: tuple[tuple[str, int], ...] = ()
    """The calls of handlers: (run, fence)."""

    @property
    def key(self) -> tuple[object, ...]:
        return (
            tuple([seat.key for seat in self.seats]),
            self.put,
            self.asks,
            self.lost,
            self.crashes,
            self.fired,
            tuple(sorted(self.called)),
        )
