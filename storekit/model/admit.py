"""put and fire: is a run accepted, joined to another run, or refused?"""

from collections.abc import Sequence

from rota.domain.run import NewRun, after
from rota.domain.schedule import Tick
from rota.store import Plan
from storekit.model import holds, uniques
from storekit.model.book import ANY, Book, Ending, Row

Answer = tuple[str, str]
"""(run, reason): the new run or the one that it joined or met, and the reason."""


def put(book: Book, news: Sequence[NewRun], plan: Plan | None = None) -> tuple[list[Answer], set[str]]:
    """Return an answer for each new run, and the ids of the runs that the plan cancelled."""
    answers = [answer_to(book, new) for new in news]
    if plan is None:
        return answers, set()
    kept = {run for run, _ in answers}
    gone = [row for row in book.in_group(plan.group) if row.id not in kept and row.new.unique_key not in plan.keep]
    holds.cancel_all(book, gone, "cancelled", plan.note)
    return answers, {row.id for row in gone}


def fire(book: Book, tick: Tick) -> list[Answer] | None:
    """Return the answers to the runs of a tick; None if the schedule has changed since the tick was computed."""
    row = book.schedules.current(tick)
    if row is None:
        return None
    answers = [answer_to(book, run) for run in tick.runs]
    book.schedules.advance(row, tick, [reason for _, reason in answers])
    if missed := tick.missed:
        place = row.fields["task"], row.fields["key"]
        book.decisions.add(*place, "missed", book.now, count=missed.count, note=missed.words)
    return answers


def answer_to(book: Book, new: NewRun) -> Answer:
    run, reason = admit(book, new)
    if reason == "accepted":
        book.decisions.totals[new.task, reason] += 1
    if reason != "accepted" and (run, reason) != (new.id, "joined"):
        book.decisions.add(
            new.task, new.key, reason, book.now, run=ANY if reason in ("already_running", "buffer_full") else run
        )
    return run, reason


def admit(book: Book, new: NewRun) -> Answer:
    if new.fingerprint is not None and (new.id in book.rows or new.id in book.fingerprints):
        return new.id, "joined" if book.fingerprints.get(new.id) == new.fingerprint else "id_conflict"
    if new.id in book.rows:
        return new.id, "accepted"
    if not book.in_force(new.task).enabled:
        return new.id, "disabled"
    run, reason = judge(book, new)
    uniques.note_arrival(book, new, reason)
    return run, reason


def judge(book: Book, new: NewRun) -> Answer:
    """Check the guards of a new run, and add it if none of them refuses it."""
    if (other := uniques.kept_out_by(book, new)) is not None:
        return other.id, "already_running" if other.state == "running" else "already_queued"
    equals = holds.equals(book, new.task, new.unique_key) if new.guards.unique else []
    waiting = sorted((row for row in equals if row.waiting), key=lambda row: row.fence > 0)
    if waiting and not (new.guards.join in ("wait", "replace") and waiting[0].fence):
        return waiting[0].id, join(book, waiting[0], new)
    if equals and new.guards.unique != "queued":
        return equals[0].id, "buffer_full" if new.guards.join == "full" else "already_running"
    if refusal := refused(book, new):
        return refusal
    if new.guards.join == "replace":
        replace_holders(book, equals, f"replaced by {new.id}")
        equals = holds.equals(book, new.task, new.unique_key)
    behind = [row.id for row in equals] if new.guards.behind else []
    add(book, new, holds.unmet(book, [*new.needs, *behind]))
    return new.id, "accepted"


def replace_holders(book: Book, equals: Sequence[Row], note: str) -> None:
    """Cancel all of `equals`. The decisions have no note."""
    for row in equals:
        if row.command == "cancel":
            continue
        row.note = note
        book.count_decision(row, "cancelled", run=row.id if len(equals) == 1 else ANY)
        if row.state == "running":
            row.command = "cancel"
        else:
            holds.end(book, row, "cancelled", "cancelled")
            holds.release(book, row)


def refused(book: Book, new: NewRun) -> Answer | None:
    guards = new.guards
    mark = book.mark((new.task, new.unique_key or new.key or ""))
    if guards.unique == "done" and (run := uniques.done_by(book, new)) is not None:
        return run, "already_done"
    for rule in guards.cooldowns:
        if mark.finished is not None and mark.failures >= rule.failures and book.now < mark.finished + rule.seconds:
            return new.id, str(rule.reason)
    queued = [row for row in book.rows.values() if row.new.task == new.task and row.state == "queued"]
    if guards.max_pending is not None and sum(not row.needs for row in queued) >= guards.max_pending:
        return new.id, "queue_full"
    return None


def add(book: Book, new: NewRun, needs: tuple[str, ...]) -> None:
    book.arrivals += 1
    cooldowns = new.guards.cooldowns if new.guards.behind and needs else ()
    due, expires = times(book, new)
    if new.fingerprint is not None:
        book.fingerprints[new.id] = new.fingerprint
    book.rows[new.id] = Row(new, book.arrivals, book.now, due, expires, new.body, needs, cooldowns, new.priority)
    book.rows[new.id].awaited = bool(new.callbacks)
    uniques.note_accepted(book, new)


def times(book: Book, new: NewRun) -> tuple[float, float | None]:
    """Return when a new run is due and when it expires."""
    due = after(book.now, new.delay) if new.at is None else new.at
    if new.expires_after is None:
        return due, new.expires_at
    return due, after(max(book.now, due), new.expires_after)


def start_afresh(row: Row, body: bytes) -> None:
    """Give the run other work: failures, losses, progress and checkpoint of the old work do not count for it."""
    row.body = body
    row.failures = row.losses = 0
    row.progress = row.saved = row.error = None
    if row.endings and row.endings[-1].outcome != "replaced":
        row.endings.append(Ending(row.fence, "", "replaced", False))


def join(book: Book, row: Row, new: NewRun) -> str:
    if new.guards.join == "refuse":
        return "already_queued"
    if new.guards.join == "full":
        return "buffer_full"
    before, due = row.due, times(book, new)[0]
    if new.guards.join == "set":
        row.due = due
    elif new.guards.join == "push":
        longest = new.guards.max_wait
        row.due = max(row.due, due if longest is None else min(due, row.created + longest))
    row.priority = max(row.priority, new.priority)
    row.touches, row.touched = row.touches + 1, book.now
    if new.expires_after is not None:
        row.expires = after(max(book.now, row.due), new.expires_after)
    elif new.expires_at is not None and new.expires_at > row.due:
        row.expires = new.expires_at
    else:
        holds.move_expiry(row, before)
    if row.body != new.body:
        start_afresh(row, new.body)
    if new.group is not None:
        row.needs = holds.unmet(book, [need for need in new.needs if need != row.id])
    return "joined"
