"""control: commands of people about runs, tasks and schedules."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from rota.domain import settlement as rules
from rota.domain.decision import Reason
from rota.domain.run import RunHead, State
from rota.domain.schedule import paused, resumed
from rota.domain.spec import TaskSpec
from rota.store import ID_MEMORY, PAUSED_KEYS, Command, Scope
from rota.stores.book import Book, CountedDecision
from rota.stores.bounds import LEDGER
from rota.stores.events import record, record_other
from rota.stores.idle import Arrival
from rota.stores.ledger.declare import keep_schedule
from rota.stores.ledger.holds import announce, end_waiting, freed, release


class Request(Struct, frozen=True):
    """A command, with the note and the author that its decision records. `until`: the pause of a task ends then."""

    command: Command
    note: str | None = None
    by: str | None = None
    until: float | None = None

    def counted(self, task: str, key: str | None, count: int = 1, run: str | None = None) -> CountedDecision:
        return CountedDecision(task, key, REASONS[self.command], count, run, self.note, self.by)


REASONS = {
    Command.CANCEL: Reason.CANCELLED,
    Command.DROP: Reason.DROPPED,
    Command.PAUSE: Reason.PAUSED,
    Command.RESUME: Reason.RESUMED,
    Command.DELETE: Reason.DELETED,
}


def control(book: Book, request: Request, names: Sequence[str], of: Scope) -> list[int]:
    """Return for each name how many runs, tasks or schedules were changed; 0 if it is unknown, final or unchanged."""
    if request.command is Command.DELETE:
        book.load(names if of is Scope.RUNS else ())
        return [_delete_run(book, request, id) if of is Scope.RUNS else 0 for id in names]
    if of is Scope.TASKS:
        return [_control_task(book, request, task) for task in names]
    if of is Scope.KEYS:
        return [_control_key(book, request, name) for name in names]
    if of is Scope.SCHEDULES:
        book.load_schedules(names)
        return [_control_schedule(book, request, id) for id in names]
    book.load(names)
    return [_control_run(book, request, run) if (run := book.get(id)) else 0 for id in names]


def _control_run(book: Book, request: Request, run: RunHead) -> int:
    match request.command:
        case Command.CANCEL:
            after = rules.cancel(run, book.now, request.note)
        case Command.DROP:
            after = run if run.state is State.RUNNING else rules.cancel(run, book.now, request.note, Reason.DROPPED)
        case Command.PAUSE:
            after = rules.pause(run, request.note)
        case _:
            after = rules.resume(run, request.note)
    if after == run:
        return int(request.command is Command.CANCEL and not run.state.final)  # it was requested before
    book.save(after)
    book.touched.add(run.id)
    _record_controlled(book, request.command, after)
    book.count_decision(request.counted(run.task, run.key, run=run.id))
    if after.state.final:
        release(book, after)
    if after.state is State.QUEUED and run.state is not State.QUEUED:
        book.arrivals.append(Arrival(after.task, after.due_at, after.queue))
    elif after.state is not State.RUNNING:
        freed(book, run)
    return 1


def _delete_run(book: Book, request: Request, id: str) -> int:
    """Forget an ended run. A put of the run that is sent again within ID_MEMORY must still find it."""
    run = book.get(id)
    if run is None or run.finished_at is None or run.finished_at > book.now - ID_MEMORY:
        return 0
    book.delete(id)
    book.touched.add(id)
    record_other(book, Reason.DELETED.value, "runs", id, run.task, run.key, Reason.DELETED.value)
    book.count_decision(request.counted(run.task, run.key, run=id))
    return 1


def _record_controlled(book: Book, command: Command, after: RunHead) -> None:
    """Record what a command made of a run. A running run only gets the request."""
    name = "resumed" if command is Command.RESUME else after.state.value
    if after.state is State.RUNNING and command is not Command.RESUME:
        name = f"{command.value}_requested"
    record(book, name, after, REASONS[command].value)


def _control_task(book: Book, request: Request, task: str) -> int:
    changed = (
        _drop(book, request, task)
        if request.command in (Command.CANCEL, Command.DROP)
        else _pause_task(book, request, task)
    )
    if changed:
        book.count_decision(request.counted(task, None, changed))
    return changed


def _pause_task(book: Book, request: Request, task: str) -> int:
    """Pause or resume a task. Return 1 if that changed the task: a later pause moves the end of an earlier one."""
    spec = (book.spec(task) or TaskSpec(task)).as_of(book.now)
    pausing, until = request.command is Command.PAUSE, request.until
    if spec.paused == pausing and (not pausing or spec.paused_until == until):
        return 0
    if pausing and until is not None and until <= book.now:
        return 0
    book.put_spec(replace(spec, paused=pausing, paused_until=until if pausing else None))
    record_other(book, REASONS[request.command].value, "tasks", task, task)
    if not pausing:
        announce(book, task)
    return 1


def _control_key(book: Book, request: Request, name: str) -> int:
    """Pause or resume a key of a task. A claim parks the due runs of a paused key. Return 1 if that changed the key."""
    task, _, key = name.partition(" ")
    spec = book.spec(task) or TaskSpec(task)
    pausing = request.command is Command.PAUSE
    known = key in spec.paused_keys
    if request.command not in (Command.PAUSE, Command.RESUME) or known == pausing:
        return 0
    if pausing and len(spec.paused_keys) >= PAUSED_KEYS:
        return 0
    keys = (*spec.paused_keys, key) if pausing else tuple(each for each in spec.paused_keys if each != key)
    book.put_spec(replace(spec, paused_keys=keys))
    record_other(book, REASONS[request.command].value, "tasks", task, task, key)
    book.count_decision(request.counted(task, key))
    if not pausing:
        book.unpark_all(task)
        announce(book, task)
    return 1


def _drop(book: Book, request: Request, task: str) -> int:
    """End waiting runs of a task, LEDGER.dropped at most. Return how many."""
    waiting = book.of_task(task, LEDGER.dropped)
    end_waiting(book, waiting, Reason.DROPPED, request.note)
    return len(waiting)


def _control_schedule(book: Book, request: Request, id: str) -> int:
    known = book.schedule(id)
    if known is None:
        return 0
    if request.command in (Command.CANCEL, Command.DROP):
        book.drop_schedule(id)
        name = "removed"
    else:
        after = (
            paused(known, request.note) if request.command is Command.PAUSE else resumed(known, request.note, book.now)
        )
        if after == known:
            return 0
        keep_schedule(book, after)
        name = REASONS[request.command].value
    record_other(book, name, "schedules", id, known.task, known.key)
    book.count_decision(request.counted(known.task, known.key))
    return 1
