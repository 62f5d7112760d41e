"""Transfer: move everything that waits in one store to another; nothing is run twice or lost.

Each item is paused in the source, put into the target, and only then dropped from the source. After an interruption,
moving again continues.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

from msgspec import Struct
from msgspec.structs import replace

from rota.domain import needs
from rota.domain.ended import with_callbacks
from rota.domain.guards import Guards
from rota.domain.ids import fingerprint, is_generated
from rota.domain.run import NewRun, Run, State
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.errors import ScheduleTaken
from rota.store import Command, Declared, MarkRow, RowQuery, RunQuery, Scope, Store
from rota.store.paging import all_runs

PAGE = 500
ALL = 10_000_000
NOTE = "moved to another store"
WAITING = (State.QUEUED, State.PAUSED)


class Moved(Struct):
    """How many items of each kind were moved. `running` runs end in the source. `left` runs stay there too: they wait
    for a running one, or the target refused them. `afresh` runs had been tried before: their failures, losses and
    checkpoints are not moved."""

    schedules: int = 0
    runs: int = 0
    afresh: int = 0
    marks: int = 0
    running: int = 0
    left: int = 0


async def move(source: Store, target: Store, by: str | None = None, on_part: Callable[[str], object] = str) -> Moved:
    """Move schedules with their next ticks, queued and paused runs with their due times, marks, and published specs."""
    moved = Moved()
    specs = (await source.rows(TaskSpec)).items
    await target.declare([replace(spec, enabled=True) for spec in specs])  # move the runs of disabled tasks as well
    on_part("schedules")
    async for schedules in _schedules(source):
        await _move_schedules(source, target, schedules, by)
        moved.schedules += len(schedules)
    on_part("marks")
    await _copy_marks(source, target)
    on_part("runs")
    gone: list[str] = []
    stays = await _running(source)
    async for runs in _waiting(source):
        taken = await _copy_runs(source, target, runs, stays, by)
        moved.left += len(runs) - len(taken)
        moved.afresh += sum(_was_tried(run) for run in taken)
        gone += [run.id for run in taken]
    for first in range(0, len(gone), PAGE):  # drop when all are copied: the end of a run would release others
        await source.control(Command.DROP, gone[first : first + PAGE], NOTE, by)
    moved.runs = len(gone)
    await target.declare(specs)
    # Copy marks again: moved runs may need marks that were written during the move.
    moved.marks = await _copy_marks(source, target)
    moved.running = sum(depth.running for depth in (await source.depths()).items)
    return moved


async def count(source: Store) -> Moved:
    """Count what `move` would find now. Nothing is changed."""
    depths = (await source.depths()).items
    return Moved(
        schedules=len((await source.rows(Schedule, RowQuery(limit=ALL))).items),
        runs=sum(depth.queued + depth.paused for depth in depths),
        marks=len((await source.rows(MarkRow, RowQuery(limit=ALL))).items),
        running=sum(depth.running for depth in depths),
    )


async def _move_schedules(source: Store, target: Store, schedules: list[Schedule], by: str | None) -> None:
    ids = [schedule.id for schedule in schedules]
    await source.control(Command.PAUSE, ids, NOTE, by, Scope.SCHEDULES)
    paused = {row.id: row for row in (await source.rows(Schedule, RowQuery(names=ids, limit=len(ids)))).items}
    # A paused schedule does not fire. A schedule that somebody else paused has another note.
    now = [replace(row, paused=False, note=None) if row.note == NOTE else row for row in paused.values()]
    answers = (await target.declare(now)).items
    if Declared.TAKEN in answers:
        taken = now[answers.index(Declared.TAKEN)].id
        raise ScheduleTaken(f"schedule {taken} belongs to another app where it should go; delete it there first")
    await source.control(Command.DROP, ids, NOTE, by, Scope.SCHEDULES)


async def _copy_marks(source: Store, target: Store) -> int:
    marks = (await source.rows(MarkRow, RowQuery(limit=ALL))).items
    for first in range(0, len(marks), PAGE):
        await target.mark(marks[first : first + PAGE])
    return len(marks)


async def _copy_runs(source: Store, target: Store, runs: list[Run], stays: set[str], by: str | None) -> list[Run]:
    """Copy `runs` and return those that are now paused in `source` and put in `target`.

    A run stays if it needs one of `stays`: in `target`, nothing would tell it of that end. The ids and marks of such
    runs are added to `stays`.
    """
    going: list[Run] = []
    for run in runs:
        if stays & set(run.needs):
            stays |= _known_by(run)
        else:
            going.append(run)
    await source.control(Command.PAUSE, [run.id for run in going if run.state is State.QUEUED], NOTE, by)
    found = {run.id: run for run in (await source.runs(RunQuery(ids=[run.id for run in going]))).runs}
    # Read the paused runs again: some were started before the pause, others were joined.
    paused = [found[run.id] for run in going if run.id in found and found[run.id].state is State.PAUSED]
    async with _shut(target, {run.task for run in paused if run.note != NOTE}, by):
        answers = zip(paused, (await target.put([_again(run) for run in paused])).items, strict=True)
        taken = [run for run, answer in answers if answer and answer.run == run.id]
        await target.control(Command.PAUSE, [run.id for run in taken if run.note != NOTE], None, by)
    refused = [run for run in paused if run not in taken]
    for run in refused:
        stays |= _known_by(run)
    back = [run.id for run in refused if run.note == NOTE]
    await source.control(Command.RESUME, back, "not taken by the other store", by)
    return taken


@asynccontextmanager
async def _shut(target: Store, tasks: set[str], by: str | None) -> AsyncGenerator[None]:
    """Pause `tasks` in `target` during the block: a paused run can only be paused after its put, and must not start
    between."""
    names = sorted(tasks)
    known = (await target.rows(TaskSpec, RowQuery(names=names))).items
    changed = (await target.control(Command.PAUSE, names, NOTE, by, Scope.TASKS)).items
    try:
        yield
    finally:
        ours = {name for name, was in zip(names, changed, strict=True) if was}
        for spec in known:  # a pause that ends by itself gets its end again, unless it is over by now
            if spec.paused_until is not None and spec.name in ours:
                again = await target.control(Command.PAUSE, [spec.name], NOTE, by, Scope.TASKS, until=spec.paused_until)
                ours -= {spec.name} if again.items[0] else set()
        await target.control(Command.RESUME, sorted(ours), NOTE, by, Scope.TASKS)


async def _running(source: Store) -> set[str]:
    """Return the names under which other runs wait for the runs that are running in `source`."""
    running = all_runs(source, RunQuery(state=[State.RUNNING], limit=PAGE))
    return {name async for run in running for name in _known_by(run)}


def _known_by(run: Run) -> set[str]:
    return {run.id, needs.done(run.task, run.mark_key), needs.ended(run.task, run.mark_key)}


def _was_tried(run: Run) -> bool:
    return bool(run.failures or run.losses) or run.saved is not None


def _again(run: Run) -> NewRun:
    """Return `run` as a NewRun. Only the unique guard stays; the others were checked at the first put."""
    new = NewRun(
        id=run.id,
        task=run.task,
        body=run.body,
        key=run.key,
        unique_key=run.unique_key,
        guards=Guards(unique="queued" if run.unique_key else None, join="refuse", marks=run.writes_mark),
        priority=run.priority,
        queue=run.queue,
        share=run.share,
        at=run.due_at,
        expires_at=run.expires_at,
        needs=run.needs,
        group=run.member.group if run.member else None,
        fingerprint=None if is_generated(run.id) else fingerprint(run.task, run.args),
    )
    return with_callbacks(new, run.on_end) if run.on_end else new


async def _schedules(source: Store) -> AsyncIterator[list[Schedule]]:
    """Yield schedules page by page. Moved ones are gone, so every page is the first one."""
    while found := (await source.rows(Schedule, RowQuery(limit=PAGE))).items:
        yield found


async def _waiting(source: Store) -> AsyncIterator[list[Run]]:
    """Yield waiting runs page by page, oldest first: a run is moved after the runs that it needs."""
    ids = [run.id async for run in all_runs(source, RunQuery(state=WAITING, limit=PAGE))][::-1]
    for first in range(0, len(ids), PAGE):
        found = (await source.runs(RunQuery(ids=ids[first : first + PAGE]))).runs
        if waiting := [run for run in found if run.state in WAITING]:
            yield waiting
