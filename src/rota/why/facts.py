"""Facts from evidence: each function looks at one thing that can keep work from starting."""

from collections.abc import Collection, Iterable, Iterator
from itertools import takewhile

from rota.client.fleet import is_blocked, nobody, stranded_words
from rota.domain.activity import touch_guards
from rota.domain.decision import DecisionCount, Reason
from rota.domain.gates import RateState
from rota.domain.guards import cooldown_reason
from rota.domain.joins import REPLACED
from rota.domain.once import period_of
from rota.domain.policy import Rate
from rota.domain.run import DEFAULT_QUEUE, Run, State
from rota.domain.spec import TaskSpec
from rota.domain.text import coarse, plural
from rota.store import MarkRow
from rota.why.answer import Fact, at, away, quoted
from rota.why.evidence import BESIDE, DECISIONS_SHOWN, Evidence
from rota.why.links import to_run
from rota.why.needs import about_needs

SOON = 1.0
"""Seconds for which a due run may wait although nothing is wrong."""
LATE = 5.0
"""Seconds after which a due schedule should have fired, or the next run of an open rate should have started."""


def about_workers(seen: Evidence, wanted: bool = True) -> Fact:
    """Say which workers know the task and serve the queue. A missing worker holds nothing up unless one is `wanted`."""
    missing = nobody(seen.task, seen.fleet, seen.queue)
    if missing is not None:
        return Fact("workers", missing, holds=wanted)
    live = len(seen.live())
    words = f"{plural(live, 'live worker')} {'knows' if live == 1 else 'know'} {seen.task}"
    serve = "" if seen.queue == DEFAULT_QUEUE else f" and {'serves' if live == 1 else 'serve'} queue {seen.queue}"
    return Fact("workers", words + serve)


def about_clocks(seen: Evidence) -> Iterator[Fact]:
    """Report hosts whose clocks are wrong: due times go by the store's clock, what a handler reads does not."""
    for worker in seen.live():
        if ahead := worker.report.ahead:
            wrong = f"{coarse(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} the store's"
            yield Fact("clock", f"the clock of {worker.report.host or worker.name} is {wrong}: set it (NTP)")


def about_blocked(seen: Evidence, runs: Iterable[Run]) -> Iterator[Fact]:
    """Report workers that renew the leases of `runs` but do not claim. The store cannot tell the two possible causes
    apart."""
    leased = list(runs)
    for worker in seen.fleet.workers:
        if any(is_blocked(worker, run, seen.now) for run in leased):
            words = f"{worker.name} last claimed {away(worker.seen_at, seen.now)}, but its leases are renewed"
            yield Fact("workers", f"{words}: a call blocks its event loop or holds its interpreter; see its log")


def about_stranded(seen: Evidence) -> Iterator[Fact]:
    """Report runs of dead workers: the one that has waited longest for a rescue, and how many there are. If a worker is
    alive, they hold nothing up: it rescues them within a moment."""
    runs = seen.stranded
    if not runs:
        return
    first = min(runs, key=lambda run: run.until or 0.0)
    more = f"; so {'does' if len(runs) == 2 else 'do'} {plural(len(runs) - 1, 'other run')}" if len(runs) > 1 else ""
    text = f"run {first.id} waits: {stranded_words(first, seen.fleet)}{more}"
    yield Fact("run", text, holds=not seen.fleet.alive, link=to_run(first.id))


def about_seats(seen: Evidence, waiting: Collection[Run]) -> Iterator[Fact]:
    """Report that runs wait because every worker that knows the task is quiet, or full."""
    quiet = [worker.name for worker in seen.live() if worker.orders.quiet]
    awake = [worker.report for worker in seen.live() if not worker.orders.quiet]
    if quiet and not awake and waiting:
        whose = f"the {plural(len(quiet), 'live worker')} that {'knows' if len(quiet) == 1 else 'know'} {seen.task}"
        words = f"{whose} {'is' if len(quiet) == 1 else 'are'} quiet; `rota workers resume {quiet[0]}`"
        yield Fact("workers", words, holds=True)
    seats = [(report.seats, report.leased + report.overdue) for report in awake]
    late = any(_ready(run) and seen.now - run.due_at > SOON for run in waiting)
    if late and seats and all(0 < total <= taken for total, taken in seats):
        total = sum(total for total, _ in seats)
        whose = f"the {plural(len(seats), 'live worker')} that {'knows' if len(seats) == 1 else 'know'} {seen.task}"
        yield Fact("seats", f"{_all_seats(total)} of {whose} {'is' if total == 1 else 'are'} taken", holds=True)


def _all_seats(total: int) -> str:
    return "the only seat" if total == 1 else f"all {total:,} seats"


def _ready(run: Run) -> bool:
    return run.state is State.QUEUED and not run.parked and not run.needs


def about_freeze(seen: Evidence) -> Iterator[Fact]:
    freeze = seen.freeze
    if freeze is None:
        return
    by, note = f" by {freeze.by}" if freeze.by else "", f": {quoted(freeze.note)}" if freeze.note else ""
    end = "`rota thaw` ends it" if freeze.until is None else f"until {at(freeze.until, seen.now)}, or `rota thaw`"
    words = f"nothing starts here: frozen {at(freeze.since, seen.now)}{by}{note}; {end}"
    yield Fact("freeze", words, True, freeze.until)


def about_task(seen: Evidence) -> Iterator[Fact]:
    yield from about_freeze(seen)
    spec = seen.spec
    if spec is None or not spec.executor:
        yield Fact("task", f"nobody has published {seen.task}: no worker with its code has started here")
    if spec is None:
        return
    yield from about_overrides(seen, spec)
    if spec.overrides is not None and spec.overrides.enabled is False:
        words = f"{seen.task} is disabled by an override: its runs wait, and new ones are refused"
        yield Fact("task", f"{words}; `rota tasks set {seen.task} enabled=`", True)
    elif not spec.enabled:
        words = f"{seen.task} is disabled in its code or settings: its runs wait, and new ones are refused"
        yield Fact("task", f"{words}; set enabled=true and restart its workers", True)
    if spec.paused:
        paused = next((row for row in seen.of_task if row.reason is Reason.PAUSED and row.run is None), None)
        end = "" if spec.paused_until is None else f"until {at(spec.paused_until, seen.now)}, or "
        words = f"{seen.task} is paused{decided(paused, seen.now)}; {end}`rota tasks resume {seen.task}`"
        yield Fact("task", words, True, spec.paused_until)
    if seen.key is not None and seen.key in spec.paused_keys:
        paused = next((row for row in seen.decisions if row.reason is Reason.PAUSED and row.run is None), None)
        words = f"the key {seen.key!r} of {seen.task} is paused{decided(paused, seen.now)}"
        yield Fact("key", f"{words}; `rota tasks resume {seen.task} --key {seen.key}`", True)
    elif spec.paused_keys:
        yield Fact("task", f"paused keys: {quoted(', '.join(map(repr, spec.paused_keys)))}")
    if spec.limit and spec.limit.total and seen.depth.running >= spec.limit.total:
        reached = f"{seen.depth.running} of {spec.limit.total} run: the limit is reached"
        yield Fact("limit", reached, bool(seen.waiting))
    for shared in seen.shared:
        used, who = sum(shared.running.values()), ", ".join(f"{n} of {task}" for task, n in shared.running.items())
        if used >= shared.total:
            words = f"{used} of {shared.total} run under the limit {shared.name} ({who}): the limit is reached"
            yield Fact("limit", words, bool(seen.waiting))


def about_overrides(seen: Evidence, spec: TaskSpec) -> Iterator[Fact]:
    """Say which values are not those of the code, and whose they are."""
    given = spec.overrides
    if given is None or not given.values():
        return
    by = f" by {given.by}" if given.by else ""
    names = ", ".join(given.values())
    words = f"an override ({away(given.at, seen.now)}{by}){noted(given.note)} wins over the code: {names}"
    yield Fact("override", f"{words}; `rota tasks set {seen.task} --clear`")


def about_rate(seen: Evidence, waiting: Iterable[Run]) -> Iterator[Fact]:
    """Report a rate. It is open again at most one interval after the last start; until then it holds due runs up."""
    rate = None if seen.spec is None else seen.spec.rate
    if rate is None:
        return
    words = f"at most {plural(rate.n, 'start')} per {rate.per:g} s{' per key' if rate.per_key else ''}"
    for run in waiting:
        ready = _ready(run) and seen.now - run.due_at > SOON
        last = _last_start(seen, run.key if rate.per_key else None)
        if ready and last is not None and seen.now - last < max(rate.interval, LATE):
            opens = last + rate.interval
            by = f", {away(opens, seen.now)} at most" if opens > seen.now else ""
            yield Fact("rate", f"{words}: the next may start later{by}", True, _opens_at(seen, rate))
            return
    yield Fact("rate", words)


def _opens_at(seen: Evidence, rate: Rate) -> float | None:
    """Return when the rate lets the next run start, as the store counts it; None if it does so now."""
    opens = None if seen.rate is None else RateState(seen.rate.full_at).opens_at(rate)
    return opens if opens is not None and opens > seen.now else None


def _last_start(seen: Evidence, key: str | None) -> float | None:
    starts = [
        at
        for run in (*seen.started, *seen.unfinished)
        if key is None or run.key == key
        for at in (run.claimed_at, *(attempt.claimed_at for attempt in run.attempts if attempt.outcome != REPLACED))
        if at is not None
    ]
    return max(starts, default=None)


def about_queue(seen: Evidence) -> Iterator[Fact]:
    depth = seen.depth
    yield Fact("queue", f"{depth.queued:,} queued, {depth.running:,} running, {depth.paused:,} paused")
    if seen.first is not None:
        yield from about_waiting(seen.first, seen)


def about_waiting(run: Run, seen: Evidence) -> Iterator[Fact]:
    """Report what one queued or paused run waits for."""
    name = f"run {run.id}"
    if run.state is State.PAUSED:
        yield Fact("run", f"{name} is paused{f': {run.note}' if run.note else ''}; `rota runs resume {run.id}`", True)
    yield from about_needs(run, seen.trail, seen.now)
    if misfit := unbindable(run):
        times = len(misfit)
        tries = {1: "once", 2: "twice"}.get(times, f"{times} times")
        due = "next try" if run.due_at > seen.now else "the next try was due"
        text = f"{name} was tried {tries} and could not be called: {misfit[-1]}; {due} {at(run.due_at, seen.now)}"
        yield Fact("run", text, True, run.due_at if run.due_at > seen.now else None)
    elif run.due_at > seen.now:
        yield Fact("run", f"{name} is due {at(run.due_at, seen.now)}{_tried(run)}", True, run.due_at)
    elif run.parked and seen.spec is not None and run.key in seen.spec.paused_keys:
        yield Fact("run", f"{name} waits: its key {run.key!r} is paused", True)
    elif run.parked:
        words = f"{name} waits until others of its key {run.key!r} have ended or its rate lets it"
        rate = None if seen.spec is None or seen.spec.limit else seen.spec.rate
        yield Fact("run", words, True, None if rate is None else _opens_at(seen, rate))
    elif run.state is State.QUEUED and not run.needs:
        yield Fact("run", f"{name} was due {at(run.due_at, seen.now)}{_tried(run)}")
    if run.expires_at is not None:
        yield Fact("run", f"{name} expires {at(run.expires_at, seen.now)}: it never starts after that")


def about_share(run: Run, seen: Evidence) -> Iterator[Fact]:
    """Report where a due run stands among the runs of its task that take turns."""
    if run.share is None or not _ready(run) or run.due_at > seen.now:
        return
    due = [each for each in seen.beside if _ready(each) and each.due_at <= seen.now and each.share is not None]
    level = [each for each in due if (each.queue, each.priority) == (run.queue, run.priority)]
    before_it = takewhile(lambda each: each.id != run.id, level)  # in the order of claims: first due, then first come
    ahead = sum(each.share == run.share for each in before_it)
    others = len({each.share for each in level} - {run.share})
    least = "at least " if len(seen.beside) == BESIDE else ""
    before = f"{least}{plural(ahead, 'due run')} of {run.share!r} before it"
    place = before if ahead else f"it is the next of {run.share!r}"
    turns = f"{plural(others, 'other share')} {'takes' if others == 1 else 'take'} turns with it"
    yield Fact("share", f"{place}, and {turns if others else 'no other share waits'}")


def unbindable(run: Run) -> list[str]:
    """Return the errors of the last attempts, if the handler could not be called in any of them; empty if the last one
    was called."""
    found: list[str] = []
    for attempt in reversed(run.attempts):
        if attempt.outcome != Reason.UNBINDABLE:
            break
        found.insert(0, attempt.error.message if attempt.error else "its arguments do not fit")
    return found


def _tried(run: Run) -> str:
    """Return in brackets how the last attempt ended."""
    if not run.attempts:
        return ""
    last = run.attempts[-1]
    if run.failures and run.error:
        return f" (try {run.failures + 1}, after {quoted(run.error)})"
    if last.outcome in ("lost", "crashed"):
        return f" (again, after the worker {last.worker} was lost with it {plural(run.losses, 'time')})"
    return f" (the last try was {last.outcome})" if last.outcome in ("snoozed", "interrupted", "released") else ""


def about_origin(run: Run) -> Iterator[Fact]:
    """Report which plan or flow `run` belongs to."""
    member, origin = run.member, run.origin
    if origin.kind == "plan":
        yield Fact("plan", f"plan {origin.of} of {origin.period} made it: planning again moves or cancels what waits")
    elif member is not None and member.step:
        flow, _, period = member.group.rpartition("@")
        yield Fact("flow", f"it is step {member.step} of {flow} in {period}")


def about_key(seen: Evidence) -> Iterator[Fact]:
    if seen.key is None:
        return
    running = seen.running
    per_key = seen.spec.limit.per_key if seen.spec and seen.spec.limit else None
    if running:
        full = per_key is not None and len(running) >= per_key
        started = away(running[-1].claimed_at or seen.now, seen.now)
        text = f"{plural(len(running), 'run')} of {seen.key!r} running, the first started {started}"
        yield Fact("key", text + (f": its limit of {per_key} is reached" if full else ""), full and bool(seen.waiting))
    mark = seen.mark
    if mark is None:
        return
    if mark.succeeded_at is not None:
        yield Fact("key", f"{seen.key!r} last succeeded {at(mark.succeeded_at, seen.now)}")
    if mark.failures:
        yield Fact("key", f"{seen.key!r} has failed {plural(mark.failures, 'time')} in a row")
    yield from _rest(seen)


def _rest(seen: Evidence) -> Iterator[Fact]:
    spec, mark = seen.spec, seen.mark
    if spec is None or mark is None or mark.finished_at is None:
        return
    guards = spec.guards if spec.activity is None else touch_guards(spec.activity, spec.guards)
    for rule in guards.cooldowns:
        if cooldown_reason((rule,), mark, seen.now) is not None:
            until = mark.finished_at + rule.seconds
            failed = plural(mark.failures, "failed run")
            why = f"its breaker is open after {failed}" if rule.failures else "it rests"
            words = f"{seen.key!r}: {why}; new runs are taken again {at(until, seen.now)}"
            yield Fact("key", words, True, until)


def about_decisions(seen: Evidence) -> Iterator[Fact]:
    for row in list(seen.decisions)[:DECISIONS_SHOWN]:
        key = f" for {row.key!r}" if row.key else ""
        often = "once" if row.count == 1 else f"{row.count:,} times, first {away(row.first_at, seen.now)}"
        note = f" ({row.note})" if row.note else ""
        by = f" by {row.by}" if row.by else ""
        decision = f"{row.reason}{key}{by}: {often}, last {away(row.last_at, seen.now)}{note}"
        yield Fact("decided", f"{decision}{_explained(row, seen)}")


def _explained(row: DecisionCount, seen: Evidence) -> str:
    done = seen.done.get((row.reason, row.key), MarkRow(row.task, row.key, None))
    done_at = None if done.mark is None else done.mark.succeeded_at
    holder, until = seen.holders.get(row.run or ""), seen.windows.get(row.key)
    window = "" if until is None else f", which keeps others out until {at(until, seen.now)}"
    match row.reason:
        case Reason.ALREADY_DONE if until is not None and until <= seen.now:
            return f"; its window ended {at(until, seen.now)}, so that it may run again"
        case Reason.ALREADY_QUEUED | Reason.ALREADY_RUNNING | Reason.ALREADY_DONE if holder not in (None, row.task):
            undo = (
                f"; `rota marks clear {holder} {row.key}` lets it run again"
                if row.reason is Reason.ALREADY_DONE
                else ""
            )
            return f"; run {row.run} of {holder} has the key{window}{undo}"
        case Reason.ALREADY_DONE if done_at is None:
            return "; it was reset since, so that it may run again"
        case Reason.ALREADY_DONE:
            return f"; it was done {at(done_at or 0.0, seen.now)}{window}, and {_undo(done, seen)} lets it run again"
        case Reason.LATE if done_at is not None and done_at > row.last_at:
            return f"; it was done {at(done_at, seen.now)} after all"
        case Reason.LATE:
            return "; it has not succeeded since"
        case _:
            return ""


def _undo(row: MarkRow, seen: Evidence) -> str:
    """Return the command that forgets a success: `rota reset` for one of a period, `rota marks clear` for any other."""
    if "@" in row.key or (seen.spec is not None and seen.spec.once is not None):
        return f"`rota reset {row.task} --period {period_of(row.key)}`"
    return f"`rota marks clear {row.task} {row.key}`"


def about_last(seen: Evidence) -> Iterator[Fact]:
    if (run := seen.last) is not None:
        why = f": {run.error}" if run.error else f" ({run.reason})" if run.reason else ""
        text = f"{run.id} {run.state} {away(run.finished_at or 0, seen.now)}{why}"
        yield Fact("last run", text, link=to_run(run.id))


def decided(row: DecisionCount | None, now: float) -> str:
    if row is None:
        return ""
    by = f" by {row.by}" if row.by else ""
    return f" ({away(row.last_at, now)}{by}){noted(row.note)}"


def noted(note: str | None) -> str:
    return f" ({note})" if note else ""
