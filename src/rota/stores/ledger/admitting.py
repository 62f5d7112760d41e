"""put: every run's guards are judged in the step that admits it; the first no wins."""

from collections.abc import Sequence

from msgspec.structs import replace

from rota.domain.decision import Decision, Reason
from rota.domain.guards import push_due, rest_reason
from rota.domain.run import NewRun, Standing, State
from rota.stores.book import Book
from rota.stores.ledger import holding


def put(book: Book, runs: Sequence[NewRun]) -> list[Decision]:
    return [_admit(book, new) for new in runs]


def _admit(book: Book, new: NewRun) -> Decision:
    spec = book.spec(new.task)
    enabled = spec is None or spec.enabled
    guarded = new.unique_key is not None or new.guards.rest or new.guards.max_pending is not None
    if (guarded or not enabled or book.full()) and book.get(new.id):
        return Decision(new.id, Reason.ACCEPTED)  # the same id again answers the same
    if not enabled:
        return Decision(new.id, Reason.DISABLED)
    if guarded and (refusal := _refusal(book, new)) is not None:  # a refusal is falsy
        return refusal
    if book.full():
        return Decision(new.id, Reason.QUEUE_FULL)
    due_at = new.due_at(book.now)
    per_key = spec.limit.per_key if spec and spec.limit else None
    keyed = per_key is not None and new.key is not None and due_at <= book.now
    parked = keyed and book.running_key(new.task, new.key or "") >= (per_key or 0)
    book.add(new, parked)
    if not parked:
        book.arrivals.append((new.task, due_at))
    return Decision(new.id, Reason.ACCEPTED)


def _refusal(book: Book, new: NewRun) -> Decision | None:
    """A no, or the run that this one joins; nothing if it may come in."""
    guards = new.guards
    if guards.unique and new.unique_key is not None:
        holders = holding.holders(book, new.task, new.unique_key)
        waiting = next((run for run in holders if run.state is not State.RUNNING), None)
        if waiting is not None:
            return _join(book, waiting, new)
        if holders and guards.unique != "queued":
            return Decision(holders[0].id, Reason.ALREADY_RUNNING)
    if not guards.reads_marks and guards.max_pending is None:
        return None
    mark = book.mark(new.task, new.unique_key or new.key or "")
    if guards.unique == "done" and mark.succeeded_at is not None:
        return Decision(new.id, Reason.ALREADY_DONE)
    if reason := rest_reason(guards.rest, mark, book.now):
        return Decision(new.id, reason)
    if guards.max_pending is not None and book.pending(new.task, guards.max_pending) >= guards.max_pending:
        return Decision(new.id, Reason.QUEUE_FULL)
    return None


def _join(book: Book, holder: Standing, new: NewRun) -> Decision:
    """The newest arguments win; the due time moves as the newcomer asks."""
    guards = new.guards
    if guards.join == "refuse":
        return Decision(holder.id, Reason.ALREADY_QUEUED)
    due_at, wanted = holder.due_at, new.due_at(book.now)
    if guards.join == "push":
        due_at = push_due(holder.created_at, holder.due_at, wanted, guards.max_wait)
    elif guards.join == "set":
        due_at = wanted
    expires_at = new.expiry(book.now)
    if expires_at is None:
        expires_at = holder.expires_at
    parked = holder.parked and due_at == holder.due_at  # who has moved is judged anew
    book.rewrite(holder.id, new.wire)
    book.save(replace(holder, due_at=due_at, expires_at=expires_at, parked=parked))
    if holder.state is State.QUEUED and (due_at < holder.due_at or parked != holder.parked):
        book.arrivals.append((holder.task, due_at))
    if due_at > holder.due_at:
        holding.freed(book, holder)
    return Decision(holder.id, Reason.JOINED)
