"""What the store knows about a task and a key, read once."""

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct

from rota.domain.decision import Decided
from rota.domain.guards import Mark
from rota.domain.run import Run, State
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.store import Depth, Marked, RowQuery, RunQuery, Store, WorkerSeen

T = TypeVar("T")

SILENT = 30.0
"""Seconds after which a worker that said nothing is not counted on."""
WAITING = (State.QUEUED, State.RUNNING, State.PAUSED)
STARTED = tuple(state for state in State if state.final or state is State.RUNNING)


class Evidence(Struct, frozen=True):
    """`decisions`, `unfinished` and `ended` are about the key, if there is one. `of_task` are the decisions that name
    no key, and `started` are the newest runs of the task that have started, whatever their key."""

    now: float
    task: str
    key: str | None
    spec: TaskSpec | None
    workers: Sequence[WorkerSeen]
    schedules: Sequence[Schedule]
    decisions: Sequence[Decided]
    of_task: Sequence[Decided]
    depth: Depth
    unfinished: Sequence[Run]
    ended: Sequence[Run]
    started: Sequence[Run]
    mark: Mark | None = None

    def live(self) -> list[WorkerSeen]:
        """Workers that know the task and were heard of lately."""
        return [worker for worker in self.alive() if self.task in worker.tasks]

    def alive(self) -> list[WorkerSeen]:
        return [worker for worker in self.workers if self.now - worker.seen_at <= SILENT]

    def knowing(self) -> list[WorkerSeen]:
        return [worker for worker in self.workers if self.task in worker.tasks]

    @property
    def known(self) -> bool:
        """Has anybody ever said or asked anything of this task?"""
        found = (self.spec, self.schedules, self.decisions, self.unfinished, self.ended, self.knowing())
        return any(part is not None and part != [] for part in found)


async def gather(store: Store, task: str, key: str | None) -> Evidence:
    """A few reads; bounded, whatever the queue's length."""
    specs = (await store.rows(TaskSpec, RowQuery(names=[task]))).items
    workers = await store.rows(WorkerSeen)
    about = RowQuery(task=task, key=key, limit=50)
    marks = (await store.rows(Marked, about)).items if key is not None else []
    depths = (await store.depths()).items
    final = [state for state in State if state.final]
    return Evidence(
        now=workers.now,
        task=task,
        key=key,
        spec=specs[0] if specs else None,
        workers=workers.items,
        schedules=(await store.rows(Schedule, RowQuery(task=task, limit=20))).items,
        decisions=(await store.rows(Decided, about)).items,
        of_task=(await store.rows(Decided, RowQuery(task=task, key="", limit=50))).items,
        depth=next((depth for depth in depths if depth.task == task), Depth(task, 0, 0)),
        unfinished=(await store.runs(RunQuery(task=task, key=key, states=WAITING, limit=100))).runs,
        ended=(await store.runs(RunQuery(task=task, key=key, states=final, limit=1))).runs,
        started=(await store.runs(RunQuery(task=task, states=STARTED, limit=100))).runs,
        mark=marks[0].mark if marks else None,
    )
