"""Gates: the limits and rates of tasks during one claim, as the book knows them."""

from collections.abc import Mapping, Sequence

from rota.domain.gates import Gate, NamedRoom, Pass
from rota.domain.policy import Limit
from rota.domain.spec import LIMIT_ROW
from rota.stores.book import Book, Candidate
from rota.stores.ledger.holds import unpark
from rota.stores.ledger.specs import in_force


def gate_of(book: Book, task: str, named: dict[str, NamedRoom]) -> Gate | None:
    """The gate of `task`; `named` are the rooms of named limits that this claim has looked at."""
    spec = in_force(book, task)
    if spec is None or not spec.gated:
        return None
    running = book.running(task) if spec.limit and spec.limit.total else 0
    rooms = [_room_of(book, limit, named) for limit in spec.limits]
    return Gate(spec.limit, spec.rate, running, book.rate(task, ""), rooms, spec.paused_keys)


def _room_of(book: Book, limit: Limit, named: dict[str, NamedRoom]) -> NamedRoom:
    row = f"{LIMIT_ROW}{limit.name}"
    if row not in named:
        known = book.spec(row)
        number = known.limit if known and known.limit else limit
        named[row] = NamedRoom(row, (number.total or 0) - book.counted(row))
    return named[row]


def count_named(book: Book, chosen: Sequence[Candidate], gates: Mapping[str, Gate]) -> None:
    """Record with each lease the named limits that it counts against: they stay when the code changes."""
    for run in chosen:
        gate = gates.get(run.task)
        if gate is not None and gate.named:
            book.count_against(run.id, [room.row for room in gate.named])


def try_run(book: Book, gate: Gate, run: Candidate) -> Pass:
    if run.key is None:
        return Pass.SHUT if gate.shut(book.now) else Pass.OPEN
    if gate.keyed and not gate.knows(run.key):
        gate.know(run.key, book.running_key(run.task, run.key), book.rate(run.task, run.key))
    return gate.try_key(run.key, book.now)


def keep_rates(book: Book, task: str, gate: Gate) -> None:
    for key, state in gate.rates().items():
        opens_at = gate.key_opens_at(key)
        if opens_at is not None and not book.best_parked(task, key):
            opens_at = None  # no parked run waits for this time
        book.put_rate(task, key, state, opens_at)


def unpark_opened(book: Book) -> None:
    """Unpark runs of the keys whose rate has tokens again."""
    for task, key in book.opened():
        spec = in_force(book, task)
        if spec and spec.rate:
            unpark(book, task, key, book.rate(task, key).tokens(spec.rate, book.now))
