"""RedisStore: each verb is one script, which the server runs as a whole or not at all."""

import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Protocol, TypeVar, cast

import msgspec

from rota import store as port
from rota.domain.decision import Decision, Reason
from rota.domain.edits import RunEdit
from rota.domain.overrides import Overrides
from rota.domain.run import Lease, NewRun, Note
from rota.domain.schedule import Schedule, Tick
from rota.domain.settlement import Settlement, Verdict
from rota.domain.spec import TaskSpec, implied_limits, overridden, override_row
from rota.stores.audit import to_text
from rota.stores.bounds import REDIS_ITEMS, REDIS_PART
from rota.stores.group_commit import GroupCommit
from rota.stores.names import control_possible, direct_possible, possible_edit, possible_rows, possible_runs, storable
from rota.stores.redis import events, queries
from rota.stores.redis.client import RedisClient
from rota.stores.redis.msgpack import json_text, opaque, pack, to_json
from rota.stores.redis.plans import LongPlan, carry_out, put_plan
from rota.stores.redis.records import edit_item, new_item, read_runs, settlement_item
from rota.stores.redis.rows import TickRow, mark_item, read_schedule, reason_of, schedule_item, spec_item
from rota.stores.redis.subscriber import Subscriber
from rota.stores.redis.tallies import counted, summed
from rota.stores.unreadable import legible

log = logging.getLogger("rota")

T = TypeVar("T")
Q = TypeVar("Q")

_orders = msgspec.msgpack.Decoder(port.Orders)
_VERDICTS = {verdict.encode(): verdict for verdict in Verdict}


class Clock(Protocol):
    """What all open stores of a backend share; see `RedisBackend`."""

    skew: float
    latest: float


class RedisStore:
    def __init__(self, clock: Clock, client: RedisClient, subscriber: Subscriber) -> None:
        self._clock = clock
        self._client = client
        self._subscriber = subscriber
        self._puts = GroupCommit[NewRun, Decision](self._put_together, REDIS_ITEMS, direct=True)
        self._settles = GroupCommit[Settlement, Verdict](
            partial(_in_parts, self._settle_part), REDIS_ITEMS, direct=True
        )
        self._crews: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[str, bytes, bytes]] = {}

    async def put(
        self, runs: Sequence[NewRun], plan: port.Plan | None = None, audit: port.AuditEntry | None = None
    ) -> port.Reply[Decision]:
        if plan is None and audit is None:
            return await self._puts.add(runs)
        entry = _entries(audit)
        if plan is not None:
            return await put_plan(self.run, self._put_part, runs, plan, *entry(()))
        return await _in_parts(
            lambda part: self._put_part(part, b"", *entry([run.id for run in part])), runs, REDIS_ITEMS
        )

    def _put_together(self, runs: Sequence[NewRun]) -> Awaitable[port.Reply[Decision]]:
        """One caller alone may put more runs than one script takes."""
        return self._put_part(runs) if len(runs) <= REDIS_ITEMS else _in_parts(self._put_part, runs, REDIS_ITEMS)

    async def _put_part(self, runs: Sequence[NewRun], *more: bytes) -> port.Reply[Decision]:
        """`more`: the plan, empty without one, and the audit entry."""
        now, *others = await self.run("put", pack([new_item(new) for new in runs]), *more)
        if others == [b"long"]:
            raise LongPlan
        decisions = [Decision(new.id, Reason.ACCEPTED) for new in runs]
        for place, run, reason in zip(others[::3], others[1::3], others[2::3], strict=True):
            decision = Decision(run.decode(), reason_of(reason))
            decisions[place : place + 1] = [decision]  # a run that the plan cancelled has a place behind the last run
        return port.Reply(now, decisions)

    async def try_put(self, run: NewRun) -> port.Reply[Decision]:
        now, id, reason = await self.run("try_put", pack([new_item(run)]))
        return port.Reply(now, [Decision(id.decode(), reason_of(reason))])

    async def fire(self, ticks: Sequence[Tick], audit: port.AuditEntry | None = None) -> port.Reply[port.Fired]:
        entry = _entries(audit)
        return await _in_parts(lambda part: self._fire_part(part, *entry([tick.schedule for tick in part])), ticks)

    async def _fire_part(self, ticks: Sequence[Tick], *entry: bytes) -> port.Reply[port.Fired]:
        now, *answers = await self.run("fire", pack([_tick_item(tick) for tick in ticks]), *entry)
        fired: list[port.Fired] = []
        for applied, *words in answers:
            pairs = zip(words[::2], words[1::2], strict=True)
            fired.append(
                port.Fired(applied == 1, tuple([Decision(run.decode(), reason_of(why)) for run, why in pairs]))
            )
        return port.Reply(now, fired)

    hints_on = False

    @property
    def hands_over(self) -> port.HandsOver:
        return self

    async def claim(self, request: port.ClaimRequest) -> port.Claim:
        return await self.claim_ready(request, None, None)

    async def hears(self, worker: str) -> bool:
        return await self._subscriber.hears(worker)

    async def claim_ready(self, request: port.ClaimRequest, token: str | None, took: str | None) -> port.Claim:
        worker, n, report = request.worker, request.n, request.report
        queues = tuple(request.queues)
        crew, packed, text = self._crew(tuple(request.tasks), queues)
        kept = None if report is None else to_json(report.kept).decode()
        tallies = counted(report.tallies) if report is not None else []
        totals = summed(report.totals) if report is not None else []
        has_tasks = bool(request.tasks)
        sent = [worker, n, crew, request.free, request.lease, kept, tallies, has_tasks, token, took]
        sent += [queues or None, not request.offers, totals]
        now, wake, passed_over, runs, lapsed, due, late, *others = await self.run("claim", pack(sent), packed, text)
        claimed, odd_runs = read_runs(runs)
        orders, overrides = others[:1], queries.read_overrides(others[1:])
        if overrides:
            claimed = overridden(claimed, overrides)
        offered, odd_lapsed = read_runs(lapsed)
        schedules = [
            (id, text, legible("schedule", id.decode(errors="replace"), partial(read_schedule, text)))
            for id, text in zip(due[::2], due[1::2], strict=True)
        ]
        odd_schedules = [(id, text) for id, text, schedule in schedules if schedule is None]
        if odd_runs or odd_lapsed or odd_schedules:
            await self._set_aside(worker, n, odd_runs, odd_lapsed, odd_schedules)
        wait = None if wake is None else float(wake)
        ended = [id.decode() for id in late]
        fit = [schedule for _, _, schedule in schedules if schedule]
        given = _orders.decode(orders[0]) if orders and orders[0] else port.Orders()
        return port.Claim(now, claimed, offered, wait, passed_over == 1, fit, ended, given)

    async def _set_aside(
        self, worker: str, n: int, runs: list[bytes], lapsed: list[bytes], schedules: list[tuple[bytes, bytes]]
    ) -> None:
        """Put off what this version cannot read, because a newer version wrote it: else every claim would return it."""
        names = b", ".join([*runs, *lapsed, *(id for id, _ in schedules)][:5]).decode(errors="replace")
        log.error("%s: %s cannot be read by this version; left to others", self._client.address.shown, names)
        odd = [
            [opaque(id) for id in runs],
            [opaque(id) for id in lapsed],
            [opaque(word) for schedule in schedules for word in schedule],
        ]
        await self.run("aside", pack([worker, n, *odd]))

    def _crew(self, tasks: tuple[str, ...], queues: tuple[str, ...]) -> tuple[str, bytes, bytes]:
        """The crew of `tasks` and `queues`: its name, the tasks as MessagePack, and both as JSON. The name is a digest;
        it begins with "q" if there are queues."""
        name = tasks, queues
        if name not in self._crews:
            text = to_json(name if queues else tasks)
            digest = hashlib.sha1(text, usedforsecurity=False).hexdigest()[:16]
            if len(self._crews) > 100:
                self._crews.clear()
            self._crews[name] = (queries.BOUND if queues else "") + digest, pack(tasks), text
        return self._crews[name]

    async def renew(
        self, leases: Sequence[Lease], seconds: float, notes: Mapping[str, Note] | None = None
    ) -> port.Reply[port.Renewal]:
        items = [_lease_item(lease, (notes or {}).get(lease.run)) for lease in leases]
        now, *answers = await self.run("renew", pack([seconds, items]))
        return port.Reply(now, [port.Renewal(answer.decode()) for answer in answers])

    async def settle(self, settlements: Sequence[Settlement]) -> port.Reply[Verdict]:
        return await self._settles.add(settlements)

    async def _settle_part(self, settlements: Sequence[Settlement]) -> port.Reply[Verdict]:
        now, *verdicts = await self.run("settle", pack([settlement_item(settlement) for settlement in settlements]))
        return port.Reply(now, [_VERDICTS[verdict] for verdict in verdicts])

    async def control(
        self,
        command: port.Command,
        names: Sequence[str],
        note: str | None = None,
        by: str | None = None,
        of: port.Scope = port.Scope.RUNS,
        audit: port.AuditEntry | None = None,
        until: float | None = None,
    ) -> port.Reply[int]:
        async def control(names: Sequence[str]) -> port.Reply[int]:
            items: list[Any] = list(names)
            if of in (port.Scope.TASKS, port.Scope.KEYS):
                # the spec is for a task that nobody has declared: it can be paused too
                parts = [name.partition(" ") for name in names]
                items = [(task, spec_item(TaskSpec(task)), key) for task, _, key in parts]
            words = pack([command, of, storable(note), storable(by), items, until or False])
            now, *answers = await self.run("control", words, *entry(names))
            return port.Reply(now, answers)

        entry = _entries(audit)
        return await control_possible(names, lambda names: _in_parts(control, names))

    async def direct(
        self,
        workers: Sequence[str],
        seats: int | None = None,
        quiet: bool | None = None,
        stop: bool = False,
        audit: port.AuditEntry | None = None,
    ) -> port.Reply[bool]:
        async def send(names: Sequence[str]) -> port.Reply[bool]:
            now, *answers = await self.run("direct", pack([list(names), seats, quiet, stop]), *entry(names))
            return port.Reply(now, [answer == 1 for answer in answers])

        entry = _entries(audit)
        return await direct_possible(workers, lambda names: _in_parts(send, names))

    async def override(
        self, task: str, overrides: Overrides, audit: port.AuditEntry | None = None
    ) -> port.Reply[port.Declared]:
        row = override_row(task, overrides)
        words = pack([task, row.name, spec_item(row), spec_item(TaskSpec(task))])
        now, answer = await self.run("override", words, *_entries(audit)([task]))
        return port.Reply(now, [port.Declared(answer.decode())])

    async def freeze(
        self,
        frozen: bool,
        until: float | None = None,
        note: str | None = None,
        by: str | None = None,
        audit: port.AuditEntry | None = None,
    ) -> port.Reply[bool]:
        words = (until or False, storable(note) or False, storable(by) or False)
        now, changed = await self.run("freeze", pack([frozen, *words]), *_entries(audit)(()))
        return port.Reply(now, [changed == 1])

    async def fan(self, id: str, total: int | None = None, allowed: int | None = None) -> port.Reply[bool]:
        words = (False if total is None else total, False if allowed is None else allowed)
        now, changed = await self.run("fan", pack([id, *words]))
        return port.Reply(now, [changed == 1])

    async def edit(
        self,
        edits: Sequence[RunEdit],
        note: str | None = None,
        by: str | None = None,
        audit: port.AuditEntry | None = None,
    ) -> port.Reply[port.Edited]:
        async def send(edits: Sequence[RunEdit]) -> port.Reply[port.Edited]:
            items = [edit_item(possible_edit(one)) for one in edits]
            words = pack([items, storable(note), storable(by)])
            now, *answers = await self.run("edit", words, *entry([one.run for one in edits]))
            return port.Reply(now, [port.Edited(answer.decode()) for answer in answers])

        entry = _entries(audit)
        return await _in_parts(send, edits)

    async def declare(
        self,
        items: Sequence[TaskSpec | Schedule],
        terms: port.Terms | None = None,
        audit: port.AuditEntry | None = None,
    ) -> port.Reply[port.Declared]:
        implied = implied_limits(item for item in items if isinstance(item, TaskSpec))
        requests = [("limit", row.name, spec_item(row)) for row in implied] + [
            ("schedule", item.id, schedule_item(item))
            if isinstance(item, Schedule)
            else ("task", item.name, spec_item(item))
            for item in items
        ]
        by_hand = any(isinstance(item, Schedule) and not item.owner for item in items)
        entry = list(_entries(audit)(()))
        words = [pack(requests)]
        if terms is not None or entry:
            words += [pack(False if terms is None else [list(terms.versions.items()), terms.drop]), *entry]
        now, *answers = await self.run("schedule" if by_hand else "declare", *words)
        return port.Reply(now, [port.Declared(answer.decode()) for answer in answers])

    async def mark(self, edits: Sequence[port.MarkRow], audit: port.AuditEntry | None = None) -> port.Reply[bool]:
        async def send(edits: Sequence[port.MarkRow]) -> port.Reply[bool]:
            words = entry([f"{edit.task} {edit.key}" for edit in edits])
            now, *answers = await self.run("mark", pack([mark_item(edit) for edit in edits]), *words)
            return port.Reply(now, [answer == 1 for answer in answers])

        entry = _entries(audit)
        return await _in_parts(send, edits)

    async def audit(self, entries: Sequence[port.AuditEntry]) -> port.Reply[bool]:
        async def send(entries: Sequence[port.AuditEntry]) -> port.Reply[bool]:
            now, *answers = await self.run("audit", pack([[one.id, to_text(one), one.changed] for one in entries]))
            return port.Reply(now, [answer == 1 for answer in answers])

        return await _in_parts(send, entries)

    async def rows(self, kind: type[T], query: port.RowQuery = port.ALL_ROWS) -> port.Reply[T]:
        return await queries.rows(self.run, kind, possible_rows(query))

    async def stats(self, minutes: int | None = 60, every: int = port.MINUTE) -> port.Reply[port.Stat]:
        return await queries.stats(self.run, minutes, every)

    async def runs(self, query: port.RunQuery) -> port.Page:
        return await queries.runs(self.run, possible_runs(query))

    async def counted(self, query: port.RunQuery, at_most: int) -> port.RunCounts:
        return await queries.counted(self.run, possible_runs(query), at_most)

    async def depths(self) -> port.Reply[port.Depth]:
        return await queries.depths(self.run)

    async def events(self, query: port.EventQuery) -> port.EventPage:
        return await events.read(self.run, query)

    async def sweep(self, retention: port.Retention) -> port.Swept:
        request = [retention.succeeded, retention.failed, retention.most, retention.least]
        now, late, forgotten, more = await self.run("sweep", pack(request))
        return port.Swept(now, len(late), forgotten, more == 1, [id.decode() for id in late])

    def changes(self, worker: str | None = None) -> AbstractAsyncContextManager[AsyncIterator[port.Hint]]:
        return self._subscriber.listening()

    async def close(self) -> None:
        await self._puts.close()
        await self._settles.close()

    async def run(self, verb: str, *words: str | bytes | int | float) -> list[Any]:
        """Run the script of `verb`. The first word of its answer is the store's time."""
        answer = await self._client.run(verb, repr(self._clock.skew), repr(self._clock.latest), *words)
        while isinstance(
            answer, bytes
        ):  # a plan is under way: help, so that no caller waits for a planner that has died
            await carry_out(self.run)
            answer = await self._client.run(verb, repr(self._clock.skew), repr(self._clock.latest), *words)
        answer[0] = float(answer[0])
        self._clock.latest = answer[0]  # the script gets `latest` and never answers an earlier time
        return cast("list[Any]", answer)


async def _in_parts(
    send: Callable[[Sequence[Q]], Awaitable[port.Reply[T]]], questions: Sequence[Q], most: int | None = None
) -> port.Reply[T]:
    """Send a long batch as several scripts: the server serves nobody else while a script runs."""
    most = most or REDIS_PART
    reply = await send(questions[:most])
    for first in range(most, len(questions), most):
        part = await send(questions[first : first + most])
        reply = port.Reply(part.now, reply.items + part.items)
    return reply


def _entries(audit: port.AuditEntry | None) -> Callable[[Sequence[str]], list[bytes]]:
    """Return what gives each part of a batch its audit entry. The first part has the one of the caller, the others have
    entries of their own."""
    parts = 0

    def entry(names: Sequence[str]) -> list[bytes]:
        nonlocal parts
        parts += 1
        if audit is None:
            return []
        if parts == 1:
            return [pack([audit.id, to_text(audit)])]
        id, subjects = f"{audit.id}.{parts}", tuple(names[: port.SUBJECTS_KEPT])
        other = msgspec.structs.replace(audit, id=id, subjects=subjects, count=len(names))
        return [pack([id, to_text(other)])]

    return entry


def _tick_item(tick: Tick) -> TickRow:
    missed = tick.missed
    return TickRow(
        tick.schedule,
        tick.version,
        tick.next_at,
        then=tick.then,
        fires_at=tick.fires_at,
        nominals=tick.nominals,
        last_missed=missed.last if missed else None,
        missed=missed.count if missed else None,
        reason=missed.reason if missed else None,
        words=missed.words if missed else None,
        left=tick.left,
        runs=[new_item(run) for run in tick.runs],
        note=None if tick.note is None else storable(tick.note),
    )


def _lease_item(lease: Lease, note: Note | None) -> list[Any]:
    if note is None:
        return [lease.run, lease.fence, lease.worker]
    saved = None if note.saved is None else note.saved.decode()
    return [lease.run, lease.fence, lease.worker, True, json_text(note.progress), saved]
