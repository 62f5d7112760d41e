"""ask and declare: wishes of people and specs of code."""

from collections.abc import Sequence

from msgspec.structs import replace

from rota.domain import settlement as rules
from rota.domain.decision import Reason
from rota.domain.run import Standing, State
from rota.domain.spec import TaskSpec
from rota.store import Wish
from rota.stores.book import Book
from rota.stores.ledger.holding import freed

DROPPED_AT_ONCE = 10_000
ANNOUNCED = 100


def ask_runs(book: Book, wish: Wish, ids: Sequence[str], note: str | None) -> list[int]:
    """1 where the wish changed something, 0 where the run is gone, final, or so already."""
    book.load(ids)
    return [_ask(book, wish, run, note) if (run := book.get(id)) else 0 for id in ids]


def ask_tasks(book: Book, wish: Wish, tasks: Sequence[str], note: str | None) -> list[int]:
    """Pause and resume hold a whole task; cancel and drop end what it has waiting, some at a time."""
    return [_ask_task(book, wish, task, note) for task in tasks]


def _ask(book: Book, wish: Wish, run: Standing, note: str | None) -> int:
    match wish:
        case Wish.CANCEL:
            after = rules.cancel(run, book.now, note)
        case Wish.DROP:
            after = run if run.state is State.RUNNING else rules.cancel(run, book.now, note, Reason.DROPPED)
        case Wish.PAUSE:
            after = rules.pause(run, note)
        case Wish.RESUME:
            after = rules.resume(run, note)
    if after == run:
        return int(wish is Wish.CANCEL and not run.state.final)  # told already
    book.save(after)
    book.touched.add(run.id)
    if after.state is State.QUEUED and run.state is not State.QUEUED:
        book.arrivals.append((after.task, after.due_at))
    elif after.state is not State.RUNNING:
        freed(book, run)
    return 1


def _ask_task(book: Book, wish: Wish, task: str, note: str | None) -> int:
    if wish in (Wish.CANCEL, Wish.DROP):
        return _drop(book, book.of_task(task, DROPPED_AT_ONCE), note)
    spec = book.spec(task) or TaskSpec(task)
    paused = wish is Wish.PAUSE
    if spec.paused == paused:
        return 0
    book.put_spec(replace(spec, paused=paused))
    if not paused:
        _announce(book, task)
    return 1


def _drop(book: Book, waiting: Sequence[Standing], note: str | None) -> int:
    for run in waiting:
        book.save(rules.cancel(run, book.now, note, Reason.DROPPED))
        book.touched.add(run.id)
    for run in waiting:  # not before all of them are gone: else one makes room for the next
        freed(book, run)
    return len(waiting)


def declare(book: Book, specs: Sequence[TaskSpec]) -> list[bool]:
    """True where something changed. A pause outlives the publish of new code."""
    return [_declare(book, spec) for spec in specs]


def _declare(book: Book, spec: TaskSpec) -> bool:
    known = book.spec(spec.name)
    spec = replace(spec, paused=known.paused if known else False)
    if spec == known:
        return False
    book.put_spec(spec)
    if known is not None and (spec.limit, spec.rate) != (known.limit, known.rate):
        if spec.rate != known.rate:
            book.forget_rates(spec.name)  # tokens of the old rate would hold up the new one, perhaps for days
        book.unpark_all(spec.name)
        _announce(book, spec.name)
    return True


def _announce(book: Book, task: str) -> None:
    """What the task has waiting may start now: an idle worker for each."""
    book.arrivals.extend([(task, book.now)] * book.pending(task, ANNOUNCED))
