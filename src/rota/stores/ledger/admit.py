"""put and fire: the transaction that admits a run also checks its guards. The first guard that refuses decides."""

from collections.abc import Sequence

from msgspec.structs import replace

from rota.domain import settlement as rules
from rota.domain.decision import Decision, Reason
from rota.domain.guards import cooldown_reason
from rota.domain.joins import afresh, joined
from rota.domain.run import NewRun, RunHead, State
from rota.domain.schedule import Schedule, Tick, advanced
from rota.domain.spec import TaskSpec
from rota.store import Fired, Plan, Total, What
from rota.stores.book import Book, CountedDecision
from rota.stores.events import record, record_other
from rota.stores.idle import Arrival
from rota.stores.ledger import holds, uniques
from rota.stores.ledger.specs import in_force

_ACCEPTED = Reason.ACCEPTED


def put(book: Book, runs: Sequence[NewRun], plan: Plan | None = None) -> list[Decision]:
    decisions = _admit_all(book, runs)
    if plan is not None:
        planned = {decision.run for decision in decisions}
        gone = holds.cancel_group(book, plan.group, Reason.CANCELLED, plan.note, planned, plan.keep)
        decisions += [Decision(run.id, Reason.CANCELLED) for run in gone]
    return decisions


def fire(book: Book, ticks: Sequence[Tick]) -> list[Fired]:
    """Apply ticks. The schedules, runs and holders are loaded for all ticks together: thousands may be due at once."""
    book.load_schedules([tick.schedule for tick in ticks])
    runs = [run for tick in ticks for run in tick.runs]
    book.load([run.id for run in runs])
    book.load_holders([(run.task, run.unique_key) for run in runs if run.unique_key is not None])
    fired = [_fire(book, tick) for tick in ticks]
    upcoming = [tick.fires_at for tick, done in zip(ticks, fired, strict=True) if done.applied and tick.fires_at]
    if upcoming:
        # one hint for all schedules: one worker fires all that are due
        book.arrivals.append(Arrival(None, min(upcoming)))
    return fired


def _fire(book: Book, tick: Tick) -> Fired:
    """Advance the schedule and admit the runs of `tick`, if the schedule still has the version and the next time of the
    tick. A refused run still advances the schedule."""
    schedule = book.schedule(tick.schedule)
    if schedule is None or schedule.paused or (schedule.version, schedule.next_at) != (tick.version, tick.next_at):
        return Fired(False)
    decisions = tuple(_admit_all(book, tick.runs))
    book.put_schedule(advanced(schedule, tick, decisions))
    _record_fired(book, schedule, tick, decisions)
    if missed := tick.missed:
        book.count_decision(
            CountedDecision(schedule.task, schedule.key, missed.reason, missed.count, note=missed.words)
        )
    return Fired(True, decisions)


def _record_fired(book: Book, schedule: Schedule, tick: Tick, decisions: Sequence[Decision]) -> None:
    """Record that `schedule` has fired, and what became of the last nominal time of `tick`."""
    last = decisions[-1] if decisions else tick.missed
    reason = None if last is None else last.reason.value
    record_other(book, "fired", "schedules", schedule.id, schedule.task, schedule.key, reason)


def _admit_all(book: Book, runs: Sequence[NewRun]) -> list[Decision]:
    """Admit each run, in their order. Count the decisions that are no admission."""
    decisions: list[Decision] = []
    accepted: dict[str, int] = {}
    specs: dict[str, TaskSpec | None] = {}  # no put changes a spec
    for new in runs:
        if new.task not in specs:
            specs[new.task] = in_force(book, new.task)
        decision = _admit(book, new, specs[new.task])
        decisions.append(decision)
        if decision.reason is _ACCEPTED:
            accepted[new.task] = accepted.get(new.task, 0) + 1
        # JOINED by its own id: the id was put before, perhaps by this put, sent again
        elif decision != Decision(new.id, Reason.JOINED):
            book.count_decision(CountedDecision(new.task, new.key, decision.reason, run=decision.run))
            if decision.reason is not Reason.JOINED:
                record_other(book, "refused", "runs", decision.run, new.task, new.key, decision.reason.value)
    for task, count in accepted.items():
        book.count_total(Total(What.DECIDED, task, _ACCEPTED.value, count))
    return decisions


def _known_id(book: Book, new: NewRun) -> Decision | None:
    """Return the answer to a put whose submitter gave the id, if that id is taken: the same task and
    arguments answer the run, whatever its state."""
    known = book.fingerprint(new.id)
    if known is None and book.get(new.id) is None:
        return None
    return Decision(new.id, Reason.JOINED if known == new.fingerprint else Reason.ID_CONFLICT)


def _admit(book: Book, new: NewRun, spec: TaskSpec | None) -> Decision:
    if new.fingerprint is not None and (known := _known_id(book, new)) is not None:
        return known
    enabled = spec is None or spec.enabled
    guards = new.guards
    guarded = new.unique_key is not None or guards.cooldowns or guards.max_pending is not None
    full = book.full()
    if (guarded or new.needs or new.callbacks or not enabled or full) and book.get(new.id):
        return Decision(new.id, _ACCEPTED)  # a repeated put gets the same answer
    if not enabled:
        return Decision(new.id, Reason.DISABLED)
    if guarded and (refusal := _refusal(book, new)) is not None:  # a refusal is falsy
        uniques.slide(book, new, refusal.reason)
        return refusal
    if full and book.full():  # a guard may have ended a late run
        return Decision(new.id, Reason.QUEUE_FULL)
    due_at = new.due_at(book.now)
    per_key = spec.limit.per_key if spec and spec.limit else None
    keyed = per_key is not None and new.key is not None and due_at <= book.now
    parked = keyed and book.running_key(new.task, new.key or "") >= (per_key or 0)
    if guards.join == "replace":
        replace_holders(book, new)
    needs = (*new.needs, *_equals_of(book, new)) if guards.behind else new.needs
    if needs:
        new = replace(new, needs=holds.unmet(book, needs))
        parked = parked and not new.needs
    book.add(new, due_at, parked)
    if guarded:
        uniques.note_unique(book, new)
    if new.callbacks:
        book.keep_callbacks(new.id, new.callbacks)
    if new.fingerprint is not None:
        book.keep_fingerprint(new.id, new.fingerprint)
    if not parked and not new.needs:
        book.arrivals.append(Arrival(new.task, due_at, new.queue))
    return Decision(new.id, _ACCEPTED)


def _refusal(book: Book, new: NewRun) -> Decision | None:
    """Check the guards of `new`: the decision if it is refused or joins a run; None if it is to be added."""
    guards = new.guards
    if guards.unique and new.unique_key is not None:
        if (refusal := uniques.held_by_other(book, new)) is not None:
            return refusal
        holders = holds.holders(book, new.task, new.unique_key)
        waiting = [run for run in holders if run.state is not State.RUNNING]
        if waiting:  # if two wait, one was tried and the other waits for its end: the untried run is joined
            holder = min(waiting, key=lambda run: run.fence > 0)
            if guards.join not in ("wait", "replace") or holder.fence == 0:
                return _join_holder(book, holder, new)
        if holders and guards.unique != "queued":
            full = guards.join == "full"
            return Decision(holders[0].id, Reason.BUFFER_FULL if full else Reason.ALREADY_RUNNING)
    if not guards.reads_marks and guards.max_pending is None:
        return None
    mark = book.mark(new.task, new.unique_key or new.key or "")
    if guards.unique == "done" and (run := uniques.done_by(book, new, mark)) is not None:
        return Decision(run, Reason.ALREADY_DONE)
    if reason := cooldown_reason(guards.cooldowns, mark, book.now):
        return Decision(new.id, reason)
    if guards.max_pending is not None and book.pending(new.task, guards.max_pending) >= guards.max_pending:
        return Decision(new.id, Reason.QUEUE_FULL)
    return None


def _equals_of(book: Book, new: NewRun) -> list[str]:
    """The equal runs that `new` waits for: those that run now, and one that was tried and waits for its retry. There
    are no other holders, because `new` would have joined them."""
    return [run.id for run in holds.holders(book, new.task, new.unique_key)] if new.unique_key is not None else []


def replace_holders(book: Book, new: NewRun) -> None:
    """Cancel the equal runs of `new`: those that wait for a retry end, and those that run are asked to stop."""
    for run in holds.holders(book, new.task, new.unique_key or ""):
        if run.cancel_requested:
            continue
        note = f"replaced by {new.id}"
        if run.state is State.RUNNING:
            stopping = rules.cancel(run, book.now, note)
            book.save(stopping)
            book.touched.add(run.id)
            record(book, "cancel_requested", stopping, Reason.CANCELLED.value)
        else:
            holds.end_waiting(book, [run], Reason.CANCELLED, note)
        book.count_decision(CountedDecision(run.task, run.key, Reason.CANCELLED, run=run.id))


def _join_holder(book: Book, holder: RunHead, new: NewRun) -> Decision:
    """Give `holder`, which waits, the arguments of `new`, and move its due time as `new` asks. If the arguments differ,
    the run starts afresh. If `new` belongs to a group, its needs replace those of the holder."""
    if new.guards.join == "refuse":
        return Decision(holder.id, Reason.ALREADY_QUEUED)
    if new.guards.join == "full":
        return Decision(holder.id, Reason.BUFFER_FULL)
    run = joined(holder, new, book.now)
    wanted = [need for need in new.needs if need != holder.id]  # a run that waited for itself would never start
    needs = holder.needs if new.group is None else holds.unmet(book, wanted)
    moved = (run.due_at, run.priority) != (holder.due_at, holder.priority)
    # A parked run that moved is unparked: the next claim checks the limit again, at the run's new place in line.
    run = replace(run, needs=needs, parked=holder.parked and not moved and not needs)
    if book.rewrite(holder.id, new.body, run.priority):
        run = afresh(run, book.now)
    book.wait_for(holder.id, [need for need in needs if need not in holder.needs])
    book.save(run)
    record(book, "joined", run, Reason.JOINED.value)
    sooner = run.due_at < holder.due_at or run.parked != holder.parked or holder.needs
    if holder.state is State.QUEUED and not needs and sooner:
        book.arrivals.append(Arrival(holder.task, run.due_at, holder.queue))
    if run.due_at > holder.due_at or (needs and not holder.needs):
        holds.freed(book, holder)
    return Decision(holder.id, Reason.JOINED)
