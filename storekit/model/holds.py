"""Needs: what a run waits for, and which runs its end releases."""

from collections.abc import Sequence

from rota.domain.run import after
from rota.store import ID_MEMORY
from storekit.model.book import ANY, Book, Fan, Mark, Row


def equals(book: Book, task: str, unique_key: str | None) -> list[Row]:
    """Return the unfinished runs of a unique key. Expired ones end here."""
    if unique_key is None:
        return []
    named = [row for row in book.rows.values() if (row.new.task, row.new.unique_key) == (task, unique_key)]
    expire(book, [row for row in named if row.too_late(book.now)])
    return [row for row in named if not row.final]


def expire(book: Book, late: Sequence[Row]) -> None:
    """End expired runs. Stores may choose the order, so a run that waited for another of them may be released first or
    not."""
    for row in late:
        met = [need for other in late if other is not row for need in ends(other)]
        book.unclear.update(name[1] for need in row.needs if need in met and (name := _name(need)) and name[0] == "*")
    for row in late:
        end(book, row, "cancelled", "expired")
        book.count_decision(row, "expired", run=ANY)
    for row in late:
        release(book, row)


def cancel_all(book: Book, rows: Sequence[Row], reason: str, note: str | None) -> None:
    for row in rows:
        end(book, row, "cancelled", reason)
        row.note = note
        book.count_decision(row, reason, run=ANY, note=note)
    for row in rows:
        release(book, row)


def end(book: Book, row: Row, state: str, reason: str | None) -> None:
    row.state, row.reason, row.finished = state, reason, book.now


def unmet(book: Book, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the needs in `wanted` that are not met yet. Runs among them are flagged `awaited`."""
    found: list[str] = []
    for need in wanted:
        row, name = book.rows.get(need), _name(need)
        if name is not None:
            word, about = name
            mark = book.mark(about)
            if (mark.finished if word == "*" else mark.succeeded) is None:
                found.append(need)
        elif row is not None and not row.final:
            row.awaited = True
            found.append(need)
    return tuple(found)


def release(book: Book, ended: Row) -> None:
    """Meet the needs that the end of a run meets."""
    meet_needs(book, ends(ended))
    for new in [callback.to_run() for callback in ended.new.callbacks if callback.state == ended.state]:
        if new.id not in book.rows:
            book.arrivals += 1
            row = Row(new, book.arrivals, book.now, book.now, None, new.body, priority=new.priority, called=True)
            book.rows[new.id] = row
    name = fan_of(ended.id)
    if name is not None and name in book.fans:
        fan = book.fans[name]
        fan.ended += 1
        fan.failed += ended.state != "succeeded"
        let_in(book, name)


def fan_of(id: str) -> str | None:
    """Return the fan of the child with this id: what is before the last dot, if a number is behind it."""
    name, _, index = id.rpartition(".")
    return name if index.isdigit() else None


def let_in(book: Book, name: str) -> None:
    """If the fan is over, its gather need not wait for it any more."""
    if book.fans[name].over:
        meet_needs(book, [f"#{name} all"])


def put_fan(book: Book, name: str, total: int | None, allowed: int | None) -> bool:
    if name not in book.fans:
        book.fans[name] = Fan(total, allowed, book.now)
    elif total is not None and book.fans[name].total is None:
        book.fans[name].total = total
    else:
        return False
    let_in(book, name)
    return True


def forget_fans(book: Book) -> None:
    """Forget the fans whose gather has ended, or has not come for a while."""
    for name, fan in list(book.fans.items()):
        gather = book.rows.get(f"{name}.all")
        if fan.created <= book.now - ID_MEMORY if gather is None else gather.final:
            del book.fans[name]


def ends(row: Row) -> list[str]:
    """Return the needs that the end of a run meets."""
    met = [row.id] if row.awaited else []
    if row.marks:
        met.append("*{} {}".format(*row.about))
        if row.state == "succeeded":
            met.append("+{} {}".format(*row.about))
    return met


def meet_needs(book: Book, met: Sequence[str]) -> None:
    waiting = [row for row in book.rows.values() if not row.final and any(need in met for need in row.needs)]
    for row in waiting:
        for need in row.needs:
            if need in met:
                _remember(book, need)
    for row in waiting:
        row.needs = tuple(need for need in row.needs if need not in met)
        if not row.needs and row.cooldowns:
            before, row.due = row.due, _rested(book, row)
            move_expiry(row, before)


def move_expiry(row: Row, before: float) -> None:
    """Move the expiry with the due time: the time between them stays the same."""
    if row.expires is not None and row.due != before:
        row.expires = after(row.due, row.expires - before)


def _remember(book: Book, need: str) -> None:
    """Remember an end that a run waited for, even if it was a cancel, which writes no mark otherwise."""
    name = _name(need)
    if name is not None and name[0] == "*":
        mark = book.marks.setdefault(name[1], Mark())
        mark.finished = book.now if mark.finished is None else mark.finished


def _rested(book: Book, row: Row) -> float:
    mark, due = book.mark(row.about), row.due
    for rule in row.cooldowns:
        if mark.finished is not None and mark.failures >= rule.failures:
            due = max(due, mark.finished + rule.seconds)
    return after(due, 0)


def _name(need: str) -> tuple[str, tuple[str, str]] | None:
    """Return the sign and the (task, key) of `+task key` or `*task key`; None for the id of a run."""
    task, space, key = need.partition(" ")
    return (task[0], (task[1:], key)) if space else None
