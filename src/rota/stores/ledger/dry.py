"""try_put: judge a put by the rules of put, over a book in which nothing is written."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from rota.domain.decision import Decision
from rota.domain.run import NewRun, RunHead
from rota.stores.book import Book
from rota.stores.idle import Arrival
from rota.stores.ledger import admit

NOTHING: dict[str, Any] = {
    **dict.fromkeys(("rewrite",), False),
    **dict.fromkeys(("waiters", "take_callbacks", "uncount", "limited_by", "best_parked", "grouped"), ()),
    **dict.fromkeys(("add", "put_share", "wait_for", "keep_callbacks", "keep_fingerprint"), None),
    **dict.fromkeys(("count_decision", "count_total"), None),
    **dict.fromkeys(("put_mark", "drop_mark", "delete", "unpark_all", "put_spec", "put_fan", "put_rate", "fan"), None),
}
"""What the methods that write answer in a dry book, and those that look for runs to change because of a write."""


class DryBook:
    """Reads from a book, and keeps the runs that it would save to itself: a rule that reads a run again finds it
    changed."""

    recording = False

    def __init__(self, book: Book) -> None:
        self._book = book
        self._saved: dict[str, RunHead] = {}
        self.arrivals: list[Arrival] = []
        self.touched: set[str] = set()
        self.directed: set[str] = set()
        self.events: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        if name in NOTHING:
            return self._nothing(NOTHING[name])
        return getattr(self._book, name)

    @staticmethod
    def _nothing(value: object) -> Callable[..., object]:
        def answer(*args: object, **kwargs: object) -> object:
            return value

        return answer

    def get(self, id: str) -> RunHead | None:
        return self._saved.get(id) or self._book.get(id)

    def save(self, run: RunHead) -> None:
        self._saved[run.id] = run

    def holders(self, task: str, unique_key: str) -> Sequence[RunHead]:
        found = [self._saved.get(run.id, run) for run in self._book.holders(task, unique_key)]
        return [run for run in found if not run.state.final]


def try_put(book: Book, run: NewRun) -> list[Decision]:
    return admit.put(cast("Book", DryBook(book)), [run])
