"""Pulling: claim, renew and settle for pull workers, over the store of a client.

A pull worker only says what happened; the rules of the task decide here what comes of that. A claim of a pull worker
may wait, and is several claims of the store meanwhile: claim `n` has the numbers from `n * STEPS` on. The report with
each of them has the number, so that any process answers a repeated claim with the batch of the first.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from rota.client.client import Client, session_of
from rota.client.retries import patiently
from rota.client.session import Session
from rota.domain.arguments import encode_result
from rota.domain.lifecycle import (
    Cancelled,
    Discarded,
    Failed,
    Lost,
    Outcome,
    Paused,
    Released,
    RetryAsked,
    Skipped,
    Snoozed,
    TimedOut,
    settlement_of,
)
from rota.domain.policy import Retry
from rota.domain.run import Failure, Lease, Note, Progress, Run, State, storable
from rota.domain.settlement import Settlement, Verdict, without_secrets
from rota.domain.spec import TaskSpec, overridden
from rota.engine.endings import log_ending, log_lost
from rota.engine.events import ended
from rota.engine.hooks import Hooks
from rota.engine.outcomes import MESSAGE_LIMIT, TRACEBACK_LIMIT, stored
from rota.engine.steps import Forgotten, earlier_result
from rota.engine.tallies import Tallies
from rota.engine.ticks import Ticks
from rota.errors import InvalidOptions, StaleClaim
from rota.pull.values import (
    ClaimBody,
    Pulled,
    PullNote,
    PullOutcome,
    RenewBody,
    Renewed,
    Settled,
    failure_of,
    instant,
    pulled,
)
from rota.store import Claim, ClaimRequest, Orders, Renewal, Report, RowQuery, RunQuery, Store, Tally, Total, WorkerSeen

log = logging.getLogger("rota")

STEPS = 1000
"""Claims of the store that one claim of a pull worker may be."""
POLL = 5.0
"""Seconds between two claims of the store, if no hint comes; a waiting worker counts as idle for IDLE_MEMORY."""

Gone = Callable[[], Awaitable[object]]
"""Returns when the caller of a claim no longer waits for the answer."""


async def _never() -> None:
    await asyncio.Event().wait()


async def _results(store: Store, run: Run) -> dict[str, Any]:
    """Return what the steps before a step have returned; nothing for a run that is none, which costs nothing."""
    found: dict[str, Any] = {}
    if run.member is not None:
        for step, need in run.member.takes.items():
            with suppress(Forgotten):
                found[step] = msgspec.json.decode(await earlier_result(store, run.member, need))
    return found


class Pulling:
    def __init__(self, client: Client, hooks: Hooks | None = None) -> None:
        self._client = client
        self._hooks = hooks or Hooks()
        self._tallies = Tallies()  # sent with the next claim of any pull worker in this process
        self._unsent: tuple[tuple[Tally, ...], tuple[Total, ...]] = (), ()  # what a claim without an answer has sent

    # -- claim -----------------------------------------------------------------------------------------------------

    async def claim(self, worker: str, asked: ClaimBody, gone: Gone = _never) -> Pulled:
        """Answer runs that are leased to `worker`, or none after `asked.wait` seconds, or as soon as `gone` returns.

        Raise StaleClaim if the worker has sent a claim with a larger number.
        """
        session = await session_of(self._client)
        first, last, orders = asked.n * STEPS, *(await self._last(session.store, worker))
        if last >= first + STEPS:
            raise StaleClaim(last // STEPS)
        left = asyncio.ensure_future(gone())
        try:
            with session.listening(worker) as woken:
                claim = await self._claim(session, worker, asked, max(first, last), orders, woken, left)
        finally:
            left.cancel()
        told, wake = claim.orders, None if claim.runs else claim.wake
        runs = [pulled(run, await _results(session.store, run)) for run in claim.runs]
        return Pulled(instant(claim.now), asked.n, runs, wake, told.quiet, told.stop)

    async def _last(self, store: Store, worker: str) -> tuple[int, Orders]:
        """Return the number of the worker's last claim, and what people ask of it."""
        seen = (await patiently(lambda: store.rows(WorkerSeen, RowQuery(names=[worker])))).items
        return (seen[0].report.claim, seen[0].orders) if seen else (0, Orders())

    async def _claim(
        self,
        session: Session,
        worker: str,
        asked: ClaimBody,
        number: int,
        orders: Orders,
        woken: asyncio.Event,
        left: "asyncio.Future[object]",
    ) -> Claim:
        """Claim until there are runs, or nobody waits for them. The numbers grow one by one: the same claim, repeated
        elsewhere, finds the batch under its number."""
        loop = asyncio.get_running_loop()
        until, most = loop.time() + asked.wait, (asked.n + 1) * STEPS
        free = 0 if orders.quiet or orders.stop else asked.free
        fresh = number == asked.n * STEPS
        while True:
            woken.clear()
            claim = await self._claim_once(session.store, worker, asked, free, number, fresh)
            number, fresh = number + 1, True
            over = claim.runs or claim.orders.quiet or claim.orders.stop or left.done() or number == most
            if over or (rest := until - loop.time()) <= 0:
                return claim
            pause = min(POLL, session.backend.poll, POLL if claim.wake is None else claim.wake)
            await _first_of(woken, left, min(rest, pause))
            if left.done() or (loop.time() >= until and not woken.is_set()):
                return claim

    async def _claim_once(
        self, store: Store, worker: str, asked: ClaimBody, free: int, number: int, fresh: bool
    ) -> Claim:
        """One claim of the store. If its number is `fresh`, the store takes the counts of this process with it."""
        nothing: tuple[tuple[Tally, ...], tuple[Total, ...]] = (), ()
        counts = nothing
        if fresh:
            counts = self._unsent if any(self._unsent) else (self._tallies.take(), self._tallies.take_totals())
        tallies, totals = counts
        report = Report(claim=number, **msgspec.structs.asdict(asked.report), tallies=tallies, totals=totals)
        request = ClaimRequest(worker, number, asked.tasks, free, asked.lease, report, queues=asked.queues)
        if fresh:
            self._unsent = counts
        claim = await patiently(lambda: store.claim(request))
        if fresh:
            self._unsent = nothing
        self._tallies.claimed(claim.runs)
        await self._take_offers(store, claim)
        return claim

    async def _take_offers(self, store: Store, claim: Claim) -> None:
        """Do what an engine does with the offers of a claim: fire due schedules, and settle lapsed leases as lost."""
        lapsed = [run for run in claim.lapsed if run not in claim.runs]
        if lapsed:
            settlements = [settlement_of(run, Lost()) for run in lapsed]
            reply = await patiently(lambda: store.settle(settlements))
            for run, settlement, verdict in zip(lapsed, settlements, reply.items, strict=True):
                if verdict is Verdict.APPLIED:
                    log_lost(run, settlement)
                    self._recorded(run, settlement, reply.now)
        if claim.schedules:
            ticks = Ticks(store, self._hooks, self._tallies)
            ticks.take(claim.schedules, claim.now)
            await ticks.fire_taken()
        await self._client.ended_here(claim.ended)

    # -- renew -----------------------------------------------------------------------------------------------------

    async def renew(self, worker: str, asked: RenewBody) -> Renewed:
        """Extend leases. A run whose timeout is over is settled so, and is lost to the worker."""
        store = await self._client.store()
        leases = [Lease(each.run, each.fence, worker) for each in asked.leases]
        now, runs = await self._runs(store, [lease.run for lease in leases])
        late = [run for lease in leases if (run := _ours(runs, lease)) is not None and _is_late(run, now)]
        if late:
            too_late = [TimedOut(Failure("TimeoutError", f"took longer than {run.policy.timeout:g} s")) for run in late]
            await self._settle(store, [*zip(late, too_late, strict=True)])
        notes = {run: _note(note) for run, note in asked.notes.items()}
        reply = await patiently(lambda: store.renew(leases, asked.lease, notes))
        return Renewed(instant(reply.now), [Renewal(item) for item in reply.items])

    async def _runs(self, store: Store, ids: Sequence[str]) -> tuple[float, Mapping[str, Run]]:
        """Return runs with the policies that count: a timeout or retries that an operator has set are among them."""
        page = await patiently(lambda: store.runs(RunQuery(ids=list(ids))))
        specs = await self._specs(store, {run.task for run in page.runs})
        found = {spec.name: spec.overrides for spec in specs if spec.overrides}
        return page.now, {run.id: run for run in overridden(page.runs, found)}

    async def _specs(self, store: Store, names: set[str]) -> Sequence[TaskSpec]:
        if not names:
            return ()
        return (await patiently(lambda: store.rows(TaskSpec, RowQuery(names=sorted(names))))).items

    # -- settle ----------------------------------------------------------------------------------------------------

    async def settle(self, worker: str, outcomes: Sequence[PullOutcome]) -> Settled:
        """Record what happened. The store judges by fence and worker, and knows an outcome that it has applied."""
        names = [each.run for each in outcomes]
        if len(set(names)) < len(names):
            raise InvalidOptions("one outcome per run: a run is named twice")
        store = await self._client.store()
        _, runs = await self._runs(store, names)
        known = [
            (_as_leased(runs[each.run], each.fence, worker), _outcome(each)) for each in outcomes if each.run in runs
        ]
        notes = {each.run: PullNote(saved=each.saved) for each in outcomes if each.saved is not None}
        seconds = {each.run: each.seconds for each in outcomes}
        now, verdicts = await self._settle(store, known, notes, seconds)
        return Settled(instant(now), [verdicts.get(name, Verdict.STALE) for name in names])

    async def _settle(
        self,
        store: Store,
        endings: Sequence[tuple[Run, Outcome]],
        notes: Mapping[str, PullNote] | None = None,
        seconds: Mapping[str, float | None] | None = None,
    ) -> tuple[float, dict[str, Verdict]]:
        retries = await self._retries(store, endings)
        settlements = [
            without_secrets(
                settlement_of(
                    run,
                    _with_retry(outcome, retries.get(run.task) if not run.policy.own_retry else None),
                    (seconds or {}).get(run.id),
                    _note(notes[run.id]) if notes and run.id in notes else None,
                ),
                run.body,
                run.args,
            )
            for run, outcome in endings
        ]
        reply = await patiently(lambda: store.settle(settlements))
        found: dict[str, Verdict] = {}
        for (run, _), settlement, verdict in zip(endings, settlements, reply.items, strict=True):
            found[run.id] = Verdict(verdict)
            if verdict is Verdict.APPLIED:
                log_ending(run, settlement)
                self._recorded(run, settlement, reply.now)
        return reply.now, found

    async def _retries(self, store: Store, endings: Sequence[tuple[Run, Outcome]]) -> dict[str, Retry]:
        """Return the retries that the tasks have now, for calls that failed: a run may be older than its task's."""
        failed = {run.task for run, outcome in endings if isinstance(outcome, Failed | TimedOut)}
        return {spec.name: spec.in_force().policy.retry for spec in await self._specs(store, failed) if spec.executor}

    def _recorded(self, run: Run, settlement: Settlement, now: float) -> None:
        self._tallies.ended(run, settlement, now)
        if not self._hooks.empty:
            self._hooks.emit(ended(run, settlement, now))


async def _first_of(woken: asyncio.Event, left: "asyncio.Future[object]", seconds: float) -> None:
    """Wait for a hint, for the caller to leave, or for `seconds`."""
    waiting = asyncio.ensure_future(woken.wait())
    try:
        await asyncio.wait((waiting, left), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


def _ours(runs: Mapping[str, Run], lease: Lease) -> Run | None:
    run = runs.get(lease.run)
    return run if run is not None and run.is_leased_to(lease.fence, lease.worker) else None


def _is_late(run: Run, now: float) -> bool:
    return run.policy.timeout is not None and (run.claimed_at or now) + run.policy.timeout <= now


def _as_leased(run: Run, fence: int, worker: str) -> Run:
    """Return the run as the worker says that it has it: the store compares that with the lease."""
    if run.is_leased_to(fence, worker):
        return run
    return replace(run, state=State.RUNNING, fence=fence, worker=worker)


def _note(note: PullNote) -> Note:
    progress = None if note.progress is None else Progress(note.progress.share, storable(note.progress.message, 500))
    return Note(progress, None if note.saved is None else encode_result(note.saved))


def _with_retry(outcome: Outcome, retry: Retry | None) -> Outcome:
    return replace(outcome, retry=retry) if retry is not None and isinstance(outcome, Failed | TimedOut) else outcome


def _outcome(said: PullOutcome) -> Outcome:
    error = _storable(failure_of(said.error, said.outcome))
    match said.outcome:
        case "succeeded":
            return stored(said.result)
        case "failed":
            return Failed(error)
        case "retry_after":
            return RetryAsked(error, said.after)
        case "snooze":
            return Snoozed(said.after)
        case "discard":
            return Discarded(error)
        case "skipped":
            return Skipped(error.message)
        case "timed_out":
            return TimedOut(error)
        case "cancelled":
            return Cancelled()
        case "paused":
            return Paused()
        case "release":
            return Released()


def _storable(error: Failure) -> Failure:
    return Failure(
        storable(error.type, 200), storable(error.message, MESSAGE_LIMIT), storable(error.traceback, TRACEBACK_LIMIT)
    )
