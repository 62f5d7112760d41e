"""Unique keys beyond the runs of one task: windows of time, and keys that several tasks share."""

from rota.domain.run import NewRun
from storekit.model.book import Book, Mark, Row

About = tuple[str, str]
ARRIVED = ("joined", "already_queued", "already_running", "already_done")


def place_of(new: NewRun) -> About | None:
    """Return under which name the model remembers the last accepted run of the key; None if it need not."""
    guards = new.guards
    if guards.unique in (None, "queued"):
        return None
    if guards.unique_in is not None:
        return f"unique {guards.unique_in}", new.unique_key or ""
    windowed = guards.unique == "done" and guards.within is not None
    return (f"window {new.task}", new.unique_key or "") if windowed else None


def kept_out_by(book: Book, new: NewRun) -> Row | None:
    """Return the unfinished run of another task that shares the key."""
    place = place_of(new)
    last = Mark() if place is None else book.mark(place)
    row = book.rows.get(last.holder or "") if last.task != new.task else None
    return None if row is None or row.final or row.too_late(book.now) else row


def done_by(book: Book, new: NewRun) -> str | None:
    """Return the run whose success refuses `new`, or the id of `new` if that run is unknown; None if none does."""
    place, own = place_of(new), book.mark((new.task, new.unique_key or "")).succeeded
    if place is None:
        return None if own is None else new.id
    last = book.mark(place)
    of_other = book.mark((last.task or new.task, new.unique_key or "")).succeeded
    counting = [at for at in (own, of_other) if at is not None and at >= (last.succeeded or 0.0)]
    if not counting:
        return None
    opened = max(counting) if last.finished is None else last.finished
    over = new.guards.within is not None and book.now >= opened + new.guards.within
    return None if over else last.holder or new.id


def note_accepted(book: Book, new: NewRun) -> None:
    place = place_of(new)
    if place is not None:
        book.marks[place] = Mark(book.now, book.now, holder=new.id, task=new.task)


def note_arrival(book: Book, new: NewRun, reason: str) -> None:
    """A submit made no run: a sliding window counts from now."""
    place = place_of(new)
    if place is not None and new.guards.sliding and reason in ARRIVED:
        mark = book.mark(place)
        mark.finished = book.now if mark.finished is not None else None
