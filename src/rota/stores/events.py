"""What stores keep of an event, and how they answer a page of events.

Events have numbers that grow. A store remembers the highest number that is gone: a read that begins before it gets a
gap. The number of the first event comes from the clock, so that the numbers of a store that lost its data do not begin
again below the cursors of its readers.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from rota.domain.event import GAP, Event
from rota.domain.run import DIGITS, RunHead
from rota.store import EventPage, EventQuery, event_number


class EventRow(Struct, frozen=True, array_like=True):
    """What one verb made of one run, task or schedule: the fields of Event that a store keeps."""

    at: float
    name: str
    of: str
    id: str
    task: str
    key: str | None = None
    state: str | None = None
    reason: str | None = None
    fence: int = 0
    worker: str | None = None
    group: str | None = None


class Records(Protocol):
    """The part of a book that keeps the events of one transaction."""

    now: float
    recording: bool
    """Somebody reads events: the transaction records what it changes."""
    events: list[EventRow]


def record(book: Records, name: str, run: RunHead, reason: str | None = None, worker: str | None = None) -> None:
    """Record what became of `run`. The store adds the group of the run."""
    if book.recording:
        why = reason or (None if run.reason is None else run.reason.value)
        who = worker or run.worker
        book.events.append(
            EventRow(book.now, name, "runs", run.id, run.task, run.key, run.state.value, why, run.fence, who)
        )


def record_other(
    book: Records, name: str, of: str, id: str, task: str, key: str | None = None, reason: str | None = None
) -> None:
    """Record what became of a task or a schedule, or that a submit was refused because of the run `id`."""
    if book.recording:
        book.events.append(EventRow(book.now, name, of, id, task, key or None, None, reason))


def first_number(now: float) -> int:
    """Return the number from which a store without events counts."""
    return int(now * 10**DIGITS)


class Known(Struct, frozen=True):
    """Of which events a store knows: those after `gone`, up to `last`."""

    gone: int
    last: int

    def start(self, query: EventQuery) -> int:
        """Return the number after which a read begins."""
        if query.after is None:
            return self.last
        after = event_number(query.after)[0]
        return after if self.has_all_after(after) else self.gone

    def has_all_after(self, number: int) -> bool:
        return self.gone <= number <= self.last

    def page(self, now: float, query: EventQuery, rows: Sequence[tuple[int, EventRow]], last: int) -> EventPage:
        """Return the page of the events `rows`; `last` is where the next read begins."""
        events = [event_of(row, str(number)) for number, row in rows]
        if query.after is not None and not self.has_all_after(event_number(query.after)[0]):
            events.insert(0, gap(now, str(self.gone)))
        return EventPage(now, events, str(last))


def event_of(row: EventRow, cursor: str) -> Event:
    return Event(
        row.name,
        row.task,
        reason=row.reason or "",
        key=row.key,
        id=row.id,
        worker=row.worker,
        of=row.of,
        state=row.state or "",
        fence=row.fence,
        at=row.at,
        group=row.group,
        cursor=cursor,
    )


def gap(now: float, cursor: str) -> Event:
    return Event(GAP, "", of="", at=now, cursor=cursor)
