"""Reads: runs (newest first, page by page), rows and counts. A long read is several short scripts, because the server
serves nobody else while a script runs."""

import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from rota.domain.decision import DecisionCount
from rota.domain.fan import Fan
from rota.domain.overrides import OVERRIDE_ROW, Overrides
from rota.domain.run import DEFAULT_QUEUE, State
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec, joined
from rota.errors import InvalidOptions
from rota.store import (
    TOTAL,
    AuditEntry,
    Depth,
    DueCount,
    Freeze,
    MarkRow,
    Orders,
    Page,
    Position,
    RateRow,
    Reply,
    Report,
    RowQuery,
    RunCounts,
    RunQuery,
    Stat,
    Total,
    WorkerSeen,
)
from rota.store.paging import COUNT_SECONDS
from rota.stores.audit import from_text
from rota.stores.redis import tallies
from rota.stores.redis.msgpack import pack
from rota.stores.redis.records import LETTERS, read_run, read_runs, read_seq
from rota.stores.redis.rows import FanRow, SpecRow, read_decision_count, read_mark, read_schedule
from rota.stores.search import Found, Search, of_ids
from rota.stores.unreadable import Kind, legible

T = TypeVar("T")
Q = TypeVar("Q")
Rows = dict[str, bytes]


class RunScript(Protocol):
    def __call__(self, verb: str, *words: str | bytes | int | float) -> Awaitable[list[Any]]: ...


class _WorkerRow(msgspec.Struct, array_like=True):
    n: int
    crew: str
    seen_at: float
    idle: bool
    ready: str | bool = False
    handed: str | bool = False
    lease: float = 0.0
    orders: Orders = Orders()


_specs = msgspec.msgpack.Decoder(SpecRow)
_workers = msgspec.msgpack.Decoder(_WorkerRow)
_fans = msgspec.msgpack.Decoder(FanRow)
_spec_texts = msgspec.json.Decoder(TaskSpec)
_reports = msgspec.json.Decoder(Report)
_tasks = msgspec.json.Decoder(tuple[str, ...])
_bound_crews = msgspec.json.Decoder(tuple[tuple[str, ...], tuple[str, ...]])
BOUND = "q"
"""The first letter of the name of a crew that serves only some queues."""


MANY = b"many"
"""The answer instead of runs: too many runs are in no lane, and would have to be sorted."""


COUNTED_AT_ONCE = 2000
"""The most runs that one script counts."""
_STATES = {letter: state.value for state, letters in LETTERS.items() for letter in letters}


async def runs(run: RunScript, query: RunQuery) -> Page:
    if query.ids is not None:
        now, _, _, found, *_ = await run("runs", pack([list(query.ids)]))
        return of_ids(query, {run.id: run for run in read_runs(found)[0]}, now)
    states = "".join(LETTERS[state] for state in query.states or State)
    order = None if query.sorts or query.order == "created" else query.order
    by_arrival = order is None and query.in_group is None
    search, now = Search(query, not by_arrival or not (query.states or query.tasks or query.key is not None)), 0.0
    while search.goes_on:
        after = search.after
        before = None if after is None else [repr(after.at), after.seq] if order else [None, after.seq]
        request = [None, states, query.tasks or None, query.key, search.wanted, before, query.in_group, order]
        now, following, looked, found, *seen = await run("runs", pack(request))
        if found == MANY:
            raise InvalidOptions(
                "order='due' sorts runs that run, are paused or wait for others: at most 5,000, and there are more: "
                "narrow the filter, or take the order of arrival"
            )
        rows = {found[at].decode(): found[at : at + 4] for at in range(0, len(found), 4)}
        at, seq = following or (None, None)
        place = None if seq is None else Position(float(at or 0.0), seq)
        seen_at = float(seen[0]) if seen and seen[0] is not None else place and order and place.at
        search.take(_legible("run", partial(_read_placed, order), rows), place, looked, seen_at or None)
    return search.page(now)


async def counted(run: RunScript, query: RunQuery, at_most: int) -> RunCounts:
    """Each script looks at a bounded number of runs; a count ends after COUNT_SECONDS, too."""
    states = "".join(LETTERS[state] for state in query.states or State)
    groups, before, begun = Counter[tuple[str, str]](), None, time.monotonic()
    while True:
        left = min(COUNTED_AT_ONCE, at_most + 1 - groups.total())
        request = [None, states, query.tasks or None, query.key, left, [None, before], query.in_group, None, True]
        _, following, _, found, *_ = await run("runs", pack(request))
        for name, count in zip(found[::2], found[1::2], strict=True):
            groups[name[1:].decode(), _STATES[name[:1].decode()]] += count
        if not following or groups.total() > at_most:
            return RunCounts(groups)
        if time.monotonic() - begun > COUNT_SECONDS:
            return RunCounts(groups, more=True)
        before = following[1]


def _read_placed(order: str | None, item: list[Any]) -> Found:
    run = read_run(*item)
    return Position((run.due_at if order == "due" else run.finished_at) or 0.0, read_seq(item[1])), run


def _legible(kind: Kind, read: Callable[[Q], T], items: Mapping[str, Q]) -> list[T]:
    """Read `items`, which are by name; leave out those that this version cannot read."""
    each = [legible(kind, name, partial(read, item)) for name, item in items.items()]
    return [found for found in each if found is not None]


async def depths(run: RunScript) -> Reply[Depth]:
    now, flat = await run("depths")
    counts = _numbers(flat)
    tasks = sorted({name[2:] for name in counts if name[0] in "qrp"})
    return Reply(now, [Depth(task, *(counts.get(f"{state}:{task}", 0) for state in "qrp")) for task in tasks])


async def stats(run: RunScript, minutes: int | None, every: int) -> Reply[Stat]:
    now, *found = await run("stats", TOTAL if minutes is None else every, minutes or 0)
    items: list[Stat] = []
    for minute, flat in found:
        read = {f"tally {name}": partial(tallies.read_tally, name, text) for name, text in _pairs(flat).items()}
        each = _legible("row", lambda tally: tally(), read)
        items += [Stat(int(minute), tally) for tally in sorted(each, key=lambda one: (one.task, one.origin))]
    return Reply(now, items)


async def rows(run: RunScript, kind: type[T], query: RowQuery) -> Reply[T]:
    reader: Callable[[RunScript, RowQuery], Awaitable[tuple[float, list[Any]]]] = _KINDS[kind]
    now, found = await reader(run, query)
    return Reply(now, found[: query.limit])


async def _rows(run: RunScript, name: str, query: RowQuery, pattern: str = "*") -> tuple[float, Rows]:
    """Of the hash `name`: the rows of `query.names`, or else all rows whose names match `pattern`."""
    if query.names is not None:
        now, _, flat = await run("rows", pack([name, list(query.names)]))
        return now, _pairs(flat)
    cursor, found = "0", Rows()
    while True:
        now, following, flat = await run("rows", pack([name, None, None, None, cursor, pattern]))
        found |= _pairs(flat)
        cursor = following.decode()
        if cursor == "0":
            return now, found


def _after(found: Rows, query: RowQuery) -> Rows:
    return {name: found[name] for name in sorted(found) if name > query.after}


def _pairs(flat: list[bytes]) -> Rows:
    return {name.decode(): value for name, value in zip(flat[::2], flat[1::2], strict=True)}


def _numbers(flat: list[bytes]) -> dict[str, int]:
    return {name: int(number) for name, number in _pairs(flat).items()}


async def _read_specs(run: RunScript, query: RowQuery) -> tuple[float, list[TaskSpec]]:
    now, found = await _rows(run, "specs", query)
    specs = _legible("spec", _read_spec, _after(found, query))
    if query.names is not None and specs:
        _, found = await _rows(run, "specs", replace(query, names=[OVERRIDE_ROW + spec.name for spec in specs]))
    rows = {name: text for name, text in found.items() if name.startswith(OVERRIDE_ROW)}
    return now, [spec.as_of(now) for spec in joined(specs, _legible("spec", _read_spec, rows))]


def read_overrides(answer: Sequence[Sequence[bytes]]) -> dict[str, Overrides]:
    """Read the rows of overrides that a claim answers."""
    rows = [_spec_texts.decode(text) for texts in answer for text in texts]
    return {row.name.removeprefix(OVERRIDE_ROW): row.overrides for row in rows if row.overrides is not None}


def _read_spec(text: bytes) -> TaskSpec:
    row = _specs.decode(text)
    keys = () if isinstance(row.paused_keys, bool) else tuple(row.paused_keys)
    until = None if isinstance(row.paused_until, bool) else row.paused_until
    return replace(_spec_texts.decode(row.text), paused=row.paused, paused_keys=keys, paused_until=until)


async def _read_workers(run: RunScript, query: RowQuery) -> tuple[float, list[WorkerSeen]]:
    now, found = await _rows(run, "workers", query)
    _, reports = await _rows(run, "reports", query)
    _, crews = await _rows(run, "crews", replace(query, names=None))

    def read_worker(name: str) -> WorkerSeen:
        row = _workers.decode(found[name])
        report = _reports.decode(reports[name]) if name in reports else Report()
        crew = crews.get(row.crew)
        tasks: tuple[str, ...] = ()
        queues: tuple[str, ...] = ()
        if crew is not None and row.crew.startswith(BOUND):
            tasks, queues = _bound_crews.decode(crew)
        elif crew is not None:
            tasks = _tasks.decode(crew)
        return WorkerSeen(name, tasks, row.seen_at, row.idle, report, row.orders, queues)

    return now, _legible("row", read_worker, {f"worker {name}": name for name in _after(found, query)})


async def _read_schedules(run: RunScript, query: RowQuery) -> tuple[float, list[Schedule]]:
    now, found = await _rows(run, "schedules", query)
    schedules = _legible("schedule", read_schedule, _after(found, query))
    return now, [row for row in schedules if query.task is None or row.task == query.task]


async def _read_marks(run: RunScript, query: RowQuery) -> tuple[float, list[MarkRow]]:
    now, found = await _rows(run, "marks", replace(query, names=None), _about(query))
    marks = sorted(_legible("row", read_mark, _called("mark", found)), key=lambda row: (row.task, row.key))
    return now, [row for row in marks if query.key is None or row.key == query.key]


async def _read_decisions(run: RunScript, query: RowQuery) -> tuple[float, list[DecisionCount]]:
    if query.task is None and query.key is None:
        now, _, flat = await run("rows", pack(["decisions", None, "decided", query.limit]))
        found = _pairs(flat)
    else:
        now, found = await _rows(run, "decisions", replace(query, names=None), _about(query))
    rows = sorted(
        _legible("row", read_decision_count, _called("decision", found)), key=lambda row: row.last_at, reverse=True
    )
    return now, [row for row in rows if query.key is None or row.key == query.key]


def _called(what: str, found: Rows) -> Rows:
    return {f"{what} {name}": text for name, text in found.items()}


def _about(query: RowQuery) -> str:
    """The glob pattern that matches the names of the rows of `query.task`."""
    if query.task is None:
        return "*"
    return "".join(f"\\{letter}" if letter in "*?[]\\^" else letter for letter in tallies.pair(query.task)) + "*"


async def _read_freeze(run: RunScript, query: RowQuery) -> tuple[float, list[Freeze]]:
    now, found = await _rows(run, "freeze", replace(query, names=[""]))
    each = [msgspec.msgpack.decode(text, type=list[Any]) for text in found.values()]
    rows = [Freeze(float(since), until or None, note or None, by or None) for since, until, note, by in each]
    return now, [row for row in rows if row.in_force(now)]


async def _read_fans(run: RunScript, query: RowQuery) -> tuple[float, list[Fan]]:
    now, found = await _rows(run, "fans", query)
    rows = {name: _fans.decode(text) for name, text in _after(found, query).items()}
    return now, [row.to_fan(name) for name, row in sorted(rows.items())]


async def _read_totals(run: RunScript, query: RowQuery) -> tuple[float, list[Total]]:
    now, found = await _rows(run, "totals", query)
    return now, sorted(tallies.read_total(name, int(count)) for name, count in found.items())


async def _read_due(run: RunScript, query: RowQuery) -> tuple[float, list[DueCount]]:
    now, flat = await run("due")
    found: dict[tuple[str, str], tuple[int, float]] = {}
    for lane, count, head in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
        named: str = lane.decode()
        task, queue, *_ = [*named.partition(":")[2].split("\0"), ""]
        place = task, queue or DEFAULT_QUEUE
        others, since = found.get(place, (0, math.inf))  # lanes of several priorities, and of shares, have one queue
        found[place] = others + int(count), min(since, float(head))
    rows = sorted(DueCount(*place, *counted) for place, counted in found.items() if query.task in (None, place[0]))
    return now, rows[: query.limit]


async def _read_rate(run: RunScript, query: RowQuery) -> tuple[float, list[RateRow]]:
    task, key = query.task or "", query.key or ""
    now, full_at = await run("rate", pack([task, key]))
    return now, [RateRow(task, key, float(full_at))] if full_at else []


async def _read_audit(run: RunScript, query: RowQuery) -> tuple[float, list[AuditEntry]]:
    now, _, flat = await run("rows", pack(["audit", None, "audited", query.limit]))
    return now, _legible("row", _read_entry, _called("audit", _pairs(flat)))


def _read_entry(packed: bytes) -> AuditEntry:
    at, changed, text = msgspec.msgpack.decode(packed, type=tuple[float, int, str])
    return from_text(text, at, changed)


_KINDS: dict[type, Any] = {
    Total: _read_totals,
    DueCount: _read_due,
    RateRow: _read_rate,
    Fan: _read_fans,
    AuditEntry: _read_audit,
    Freeze: _read_freeze,
    TaskSpec: _read_specs,
    WorkerSeen: _read_workers,
    Schedule: _read_schedules,
    MarkRow: _read_marks,
    DecisionCount: _read_decisions,
}
