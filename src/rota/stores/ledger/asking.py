"""ask and declare: wishes of people and specs of code."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from rota.domain import needs
from rota.domain import settlement as rules
from rota.domain.decision import Reason
from rota.domain.guards import Mark
from rota.domain.run import Standing, State
from rota.domain.schedule import Schedule, declared, paused, resumed
from rota.domain.spec import TaskSpec
from rota.store import Declared, Marked, Subject, Wish
from rota.stores.book import Book
from rota.stores.ledger.holding import freed, let_go, release

DROPPED_AT_ONCE = 10_000
ANNOUNCED = 100


class Asked(Struct, frozen=True):
    """A wish, and what its record says of it."""

    wish: Wish
    note: str | None = None
    by: str | None = None

    @property
    def reason(self) -> Reason:
        return REASONS[self.wish]


REASONS = {
    Wish.CANCEL: Reason.CANCELLED,
    Wish.DROP: Reason.DROPPED,
    Wish.PAUSE: Reason.PAUSED,
    Wish.RESUME: Reason.RESUMED,
}


def ask(book: Book, asked: Asked, subjects: Sequence[str], of: Subject) -> list[int]:
    """How many runs, tasks or schedules each subject changed: 0 where it is gone, final, or so already."""
    if of is Subject.TASKS:
        return [_ask_task(book, asked, task) for task in subjects]
    if of is Subject.SCHEDULES:
        book.load_schedules(subjects)
        return [_ask_schedule(book, asked, id) for id in subjects]
    book.load(subjects)
    return [_ask(book, asked, run) if (run := book.get(id)) else 0 for id in subjects]


def _ask(book: Book, asked: Asked, run: Standing) -> int:
    match asked.wish:
        case Wish.CANCEL:
            after = rules.cancel(run, book.now, asked.note)
        case Wish.DROP:
            after = run if run.state is State.RUNNING else rules.cancel(run, book.now, asked.note, Reason.DROPPED)
        case Wish.PAUSE:
            after = rules.pause(run, asked.note)
        case Wish.RESUME:
            after = rules.resume(run, asked.note)
    if after == run:
        return int(asked.wish is Wish.CANCEL and not run.state.final)  # told already
    book.save(after)
    book.touched.add(run.id)
    book.decided(run.task, run.key, asked.reason, run=run.id, note=asked.note, by=asked.by)
    if after.state.final:
        release(book, after)
    if after.state is State.QUEUED and run.state is not State.QUEUED:
        book.arrivals.append((after.task, after.due_at))
    elif after.state is not State.RUNNING:
        freed(book, run)
    return 1


def _ask_task(book: Book, asked: Asked, task: str) -> int:
    changed = _drop(book, asked, task) if asked.wish in (Wish.CANCEL, Wish.DROP) else _hold(book, asked, task)
    if changed:
        book.decided(task, None, asked.reason, changed, note=asked.note, by=asked.by)
    return changed


def _hold(book: Book, asked: Asked, task: str) -> int:
    """Pause and resume hold a whole task."""
    spec = book.spec(task) or TaskSpec(task)
    held = asked.wish is Wish.PAUSE
    if spec.paused == held:
        return 0
    book.put_spec(replace(spec, paused=held))
    if not held:
        _announce(book, task)
    return 1


def _drop(book: Book, asked: Asked, task: str) -> int:
    """Cancel and drop end what a task has waiting, some at a time."""
    waiting = book.of_task(task, DROPPED_AT_ONCE)
    for run in waiting:
        book.save(rules.cancel(run, book.now, asked.note, Reason.DROPPED))
        book.touched.add(run.id)
    for run in waiting:  # not before all of them are gone: else one makes room for the next
        release(book, run)
        freed(book, run)
    return len(waiting)


def _ask_schedule(book: Book, asked: Asked, id: str) -> int:
    known = book.schedule(id)
    if known is None:
        return 0
    if asked.wish in (Wish.CANCEL, Wish.DROP):
        book.drop_schedule(id)
    else:
        after = paused(known, asked.note) if asked.wish is Wish.PAUSE else resumed(known, asked.note, book.now)
        if after == known:
            return 0
        _keep(book, after)
    book.decided(known.task, known.key, asked.reason, note=asked.note, by=asked.by)
    return 1


def declare(book: Book, items: Sequence[TaskSpec | Schedule]) -> list[Declared]:
    """A pause outlives the publish of new code."""
    book.load_schedules([item.id for item in items if isinstance(item, Schedule)])
    return [_declare_schedule(book, item) if isinstance(item, Schedule) else _declare(book, item) for item in items]


def _declare_schedule(book: Book, new: Schedule) -> Declared:
    known = book.schedule(new.id)
    if known is not None and known.owner != new.owner:
        return Declared.TAKEN
    after = declared(new, known, book.now)
    if after is known:
        return Declared.UNCHANGED
    _keep(book, after)
    return Declared.ADDED if known is None else Declared.CHANGED


def _keep(book: Book, schedule: Schedule) -> None:
    book.put_schedule(schedule)
    if schedule.fires_at is not None and not schedule.paused:
        book.arrivals.append((None, schedule.fires_at))


def _declare(book: Book, spec: TaskSpec) -> Declared:
    known = book.spec(spec.name)
    spec = replace(spec, paused=known.paused if known else False)
    if spec == known:
        return Declared.UNCHANGED
    book.put_spec(spec)
    if known is None:
        return Declared.ADDED
    regated = (spec.limit, spec.rate) != (known.limit, known.rate)
    if spec.rate != known.rate:
        book.forget_rates(spec.name)  # tokens of the old rate would hold up the new one, perhaps for days
    if regated:
        book.unpark_all(spec.name)
    if regated or (spec.enabled and not known.enabled):
        _announce(book, spec.name)
    return Declared.CHANGED


def mark(book: Book, edits: Sequence[Marked]) -> list[bool]:
    return [_mark(book, edit) for edit in edits]


def _mark(book: Book, edit: Marked) -> bool:
    if book.mark(edit.task, edit.key) == (edit.mark or Mark()):
        return False
    if edit.mark is None:
        book.drop_mark(edit.task, edit.key)
    else:
        book.put_mark(edit.task, edit.key, edit.mark)
        met = [needs.ended(edit.task, edit.key)] if edit.mark.finished_at is not None else []
        if edit.mark.succeeded_at is not None:
            met.append(needs.done(edit.task, edit.key))
        let_go(book, met)
    return True


def _announce(book: Book, task: str) -> None:
    """What the task has waiting may start now: an idle worker for each."""
    book.arrivals.extend([(task, book.now)] * book.pending(task, ANNOUNCED))
