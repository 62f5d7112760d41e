"""claim: lease the best due runs that may start now to one worker."""

import heapq
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rota.domain.gates import Gate, NamedRoom, Pass
from rota.domain.run import after
from rota.store import IDLE_MEMORY, Claim, ClaimRequest, Orders
from rota.stores.book import Book, Candidate, Lane
from rota.stores.bounds import LEDGER
from rota.stores.events import record
from rota.stores.idle import Arrival, Idle, others_wake, wake_for
from rota.stores.ledger import holds
from rota.stores.ledger.gates import count_named, gate_of, keep_rates, try_run, unpark_opened
from rota.stores.ledger.shares import Turns
from rota.stores.ledger.specs import in_force, with_overrides


class Taken(Struct):
    """What one claim leases and parks."""

    chosen: list[Candidate]
    parked: list[Candidate]
    passed_over: bool = False
    """The claim passed over a due run that this worker may take once one of its own runs has ended."""

    @property
    def again(self) -> bool:
        """Whether the search stopped early, at a suspect or at the bound of parked runs: more runs may be claimable."""
        return len(self.parked) >= LEDGER.parked or bool(self.chosen and self.chosen[-1].losses)


def claim(book: Book, request: ClaimRequest) -> Claim:
    ended = holds.expire_due(book)
    taken = _take(book, request)
    runs = book.taken(request.worker, request.n)
    fresh = {run.id for run in taken.chosen} if book.recording else set[str]()
    for run in runs if fresh else ():
        if run.id in fresh:
            record(book, "started", run)
    due = book.offer_schedules() if request.offers and (request.tasks or request.free) else []
    wake = _register(book, request, taken, idle=request.offers and len(runs) < request.free)
    orders = book.orders(request.worker) or Orders()
    return Claim(
        book.now,
        with_overrides(book, runs),
        book.offer_lapsed() if request.offers else [],
        wake,
        taken.passed_over,
        due,
        ended,
        orders,
    )


def _take(book: Book, request: ClaimRequest) -> Taken:
    """Lease the best due runs to the worker. A repeated claim takes nothing: `Book.taken` returns its runs again."""
    worker, free = request.worker, request.free
    if request.n <= book.last_claim(worker):
        return Taken([], [])
    unpark_opened(book)
    if free <= 0:
        return Taken([], [])
    due = [lane for lane in book.lanes(_startable(book, request.tasks), request.queues) if lane.head <= book.now]
    if not due:
        return Taken([], [])
    named: dict[str, NamedRoom] = {}
    gates = {lane.task: gate for lane in due if (gate := gate_of(book, lane.task, named))}
    alone = not book.has_suspect(worker)
    taken, turns = Taken([], []), Turns(book)
    _choose(book, _streams(book, due, gates, turns, free, alone), gates, turns, free, taken)
    if taken.passed_over and not taken.chosen[-1].losses and len(taken.chosen) < free and not taken.again:
        # the runs behind the suspects
        _choose(book, _streams(book, due, gates, turns, free, False), gates, turns, free, taken)
    book.park(taken.parked)
    book.lease(worker, request.n, taken.chosen, request.lease)
    if named:
        count_named(book, taken.chosen, gates)
    for task, gate in gates.items():
        keep_rates(book, task, gate)
    turns.keep()
    taken.passed_over = taken.passed_over or not alone
    return taken


def _choose(
    book: Book,
    streams: Sequence[Iterator[Candidate]],
    gates: dict[str, Gate],
    turns: Turns,
    free: int,
    taken: Taken,
) -> None:
    known = {run.id for run in (*taken.chosen, *taken.parked)}
    for run in streams[0] if len(streams) == 1 else heapq.merge(*streams):
        if run.id in known:
            continue
        if run.losses and taken.chosen:
            taken.passed_over = True  # a suspect is claimed alone, by a later claim
            break
        gate = gates.get(run.task)
        if gate is not None:
            passed = try_run(book, gate, run)
            if passed is Pass.PARK:
                taken.parked.append(run)
                if taken.again:
                    break
            if passed is not Pass.OPEN:
                continue
            gate.take(run.key, book.now)
        taken.chosen.append(run)
        if run.share:
            turns.take(run)
        if run.losses:
            taken.passed_over = True  # a suspect is claimed alone, so that it endangers no other run
            break
        if len(taken.chosen) == free:
            break


def _streams(
    book: Book, due: Sequence[Lane], gates: dict[str, Gate], turns: Turns, free: int, suspects: bool
) -> list[Iterator[Candidate]]:
    """Return iterators of candidates: one read for all lanes without a gate and a share, and one walk per task with a
    gate or a share. A walk stops when its gate is shut."""
    shared = {lane.task for lane in due if lane.shared}
    plain = [lane for lane in due if lane.task not in gates and lane.task not in shared]
    streams = [book.pick(plain, free, suspects)] if plain else []
    for task in [*gates, *sorted(shared - gates.keys())]:
        lanes = [lane for lane in due if lane.task == task]
        walk = turns.walk(lanes, suspects) if task in shared else book.walk(lanes, suspects)
        streams.append(_while_open(book, gates[task], walk) if task in gates else walk)
    return streams


def _while_open(book: Book, gate: Gate, runs: Iterator[Candidate]) -> Iterator[Candidate]:
    while not gate.shut(book.now) and (run := next(runs, None)) is not None:
        yield run


def _startable(book: Book, tasks: Sequence[str]) -> list[str]:
    """The tasks that are neither paused nor disabled; none while the store is frozen."""
    if book.frozen() is not None:
        return []
    return [task for task in tasks if not ((spec := in_force(book, task)) and spec.as_of(book.now).starts_nothing)]


def _register(book: Book, request: ClaimRequest, taken: Taken, idle: bool) -> float | None:
    """Record the claim of the worker. Return the seconds until it should claim again; None if nothing is upcoming."""
    n, tasks, last = request.n, request.tasks, book.last_claim(request.worker)
    if not request.offers:
        book.register(replace(request, tasks=()), max(n, last), False, None, False)
        return None
    again = taken.again or n <= last
    wake_at = _wake_at(book, request, again) if idle else _next_schedule(book)
    book.register(request, max(n, last), idle, wake_at if idle else None, n > last)
    if not tasks and not idle:  # the worker stops: wake another one, which takes over its alarm
        book.arrivals.append(Arrival(None, book.now))
    return None if wake_at is None else max(0.0, wake_at - book.now)


def _next_schedule(book: Book) -> float | None:
    """Return the next time of a schedule for a worker without free seats; None if an idle worker wakes in time."""
    fires_at = book.next_schedule()
    if fires_at is None or any(_wakes_by(idle, fires_at, book.now) for idle in book.idle()):
        return None
    return fires_at


def _wakes_by(idle: Idle, fires_at: float, now: float) -> bool:
    return idle.seen_at > now - IDLE_MEMORY and idle.wake_at is not None and idle.wake_at <= max(fires_at, now)


def _pause_ends(book: Book, request: ClaimRequest) -> list[float]:
    """Return when the freeze of the store, or the first pause of a task, ends by itself, if runs wait for that."""
    ends = {task: _pause_end(book, task) for task in request.tasks}
    held = [task for task, end in ends.items() if end is not None]
    waiting = {lane.task for lane in book.lanes(held, request.queues)} if held else set[str]()
    found = [end for task, end in ends.items() if end is not None and task in waiting]
    return [min(found)] if found else []


def _pause_end(book: Book, task: str) -> float | None:
    if (frozen := book.frozen()) is not None:
        return frozen.until
    spec = book.spec(task)
    end = spec.paused_until if spec is not None and spec.paused else None
    return end if end is not None and end > book.now else None


def _wake_at(book: Book, request: ClaimRequest, again: bool) -> float | None:
    queues, open_tasks = request.queues, _startable(book, request.tasks)
    due = {lane.task for lane in book.lanes(open_tasks, queues) if lane.head <= book.now}
    if again and due:
        return book.now  # this claim stopped early or was a repeated one: claim again now
    others = others_wake(book.idle(), request.worker, frozenset(request.tasks), frozenset(queues), book.now)
    coming = list(book.upcoming(open_tasks, queues, len(others) + 1))
    if (fires_at := book.next_schedule()) is not None:
        coming.append(fires_at)  # one worker fires all schedules due then; their runs send hints to others
    coming += _pause_ends(book, request)
    opening = book.next_opening(open_tasks)
    for task in due:
        spec = in_force(book, task)
        if spec and spec.rate and not spec.rate.per_key:
            opens_at = book.rate(task, "").opens_at(spec.rate)
            if opens_at > book.now:
                opening = opens_at if opening is None else min(opening, opens_at)
    if opening is not None:
        coming.append(after(opening, 0))  # rounded up: a worker that wakes too early claims in vain
    return wake_for(others, sorted(coming))
