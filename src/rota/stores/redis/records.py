"""Runs, schedules and the rest as the scripts keep them: MessagePack, with False where something is None.

Lua can tell texts from numbers and keeps both exactly; JSON passes through it as opaque text, never read there.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw, Struct

from rota.domain import wire
from rota.domain.decision import Decided, Reason
from rota.domain.guards import Guards, Mark, Rest
from rota.domain.policy import Policy
from rota.domain.run import Attempt, Failure, NewRun, Origin, Progress, Run, State
from rota.domain.schedule import Firing, Schedule
from rota.errors import Unstorable
from rota.store import Marked
from rota.stores.unreadable import legible

APART = 1024
"""Bodies longer than this are kept in a key of their own, so that they are not copied when the run changes."""

_pack = msgspec.msgpack.Encoder().encode
to_json = msgspec.json.Encoder().encode

Text = str | bool
Instant = float | bool


def pack(value: Any) -> bytes:
    try:
        return _pack(value)
    except (UnicodeEncodeError, OverflowError) as error:
        raise Unstorable(f"Redis cannot store this value: {error}") from error


STATES = {
    "q": State.QUEUED,
    "k": State.QUEUED,
    "w": State.QUEUED,
    "r": State.RUNNING,
    "p": State.PAUSED,
    "s": State.SUCCEEDED,
    "f": State.FAILED,
    "c": State.CANCELLED,
}
LETTERS = {
    State.QUEUED: "qkw",
    State.RUNNING: "r",
    State.PAUSED: "p",
    State.SUCCEEDED: "s",
    State.FAILED: "f",
    State.CANCELLED: "c",
}


class _Attempt(Struct, frozen=True, array_like=True):
    fence: int
    worker: str
    outcome: str
    claimed_at: float
    ended_at: float
    rest: str


class _Record(Struct, frozen=True, array_like=True):
    """As in lua/shared/book.lua. A run that is as it was put ends with its body."""

    seq: int
    created_at: float
    due_at: Instant
    expires_at: Instant
    task: str
    key: Text
    unique_key: Text
    marked: bool
    priority: int
    body: Text
    fence: int = 0
    failures: int = 0
    losses: int = 0
    needs: tuple[str, ...] | bool = False
    awaited: bool = False
    reason: Text = False
    note: Text = False
    error: Text = False
    finished_at: Instant = False
    attempts: tuple[_Attempt, ...] | bool = False
    progress: Text = False
    saved: Text = False
    result: Text = False
    asked: Text = False
    rest: tuple[Rest, ...] | bool = False
    touches: int = 1
    touched_at: Instant = False


class _Lease(Struct, frozen=True, array_like=True):
    fence: int
    worker: str
    n: int
    claimed_at: float
    until: float
    cancel: bool
    pause: bool


class _Rest(Struct, frozen=True, array_like=True):
    """What an attempt says that no script reads."""

    seconds: float | None = None
    error: Failure | None = None
    warnings: tuple[str, ...] = ()


class _Plan(Struct, frozen=True, array_like=True):
    """As in lua/shared/timetable.lua."""

    id: str
    text: str
    times: str
    owner: str
    task: str
    key: str
    anchor: Instant
    next_at: Instant
    fires_at: Instant
    version: int = 0
    since: float = 0.0
    paused: bool = False
    note: Text = False
    recent: tuple[Firing, ...] | bool = False


class _MarkRow(Struct, frozen=True, array_like=True):
    task: str
    key: str
    succeeded_at: Instant
    finished_at: Instant
    failures: int


class _DecidedRow(Struct, frozen=True, array_like=True):
    task: str
    key: str
    reason: Reason
    count: int
    first_at: float
    last_at: float
    run: Text
    note: Text
    by: Text


_records = msgspec.msgpack.Decoder(_Record)
_leases = msgspec.msgpack.Decoder(_Lease)
_rests = msgspec.json.Decoder(_Rest)
_failures = msgspec.json.Decoder(Failure)
_progress = msgspec.json.Decoder(Progress)
_plans = msgspec.msgpack.Decoder(_Plan)
_marks = msgspec.msgpack.Decoder(_MarkRow)
_decided = msgspec.msgpack.Decoder(_DecidedRow)
_schedules = msgspec.json.Decoder(Schedule)

_ORIGIN, _POLICY = Origin(), Policy()
_UNGUARDED = Guards()
_PREFIX = b'{"v":1,"args":{'
"""What nearly every body begins with; it is not stored."""
_HEADS = {b"p": b"\x9a", b"x": b"\xdc\x00\x19", b"y": b"\xdc\x00\x1b"}
"""How a list of as many fields begins as a run of that form has."""


def _text(value: Text) -> str | None:
    return value if isinstance(value, str) else None


def _bytes(value: Text) -> bytes | None:
    return value.encode() if isinstance(value, str) else None


def _instant(value: Instant) -> float | None:
    return None if value is False else float(value)


def _whole(body: bytes) -> bytes:
    return _PREFIX + body if body[:1] in (b'"', b"}") else body


def opaque(value: bytes) -> Raw:
    """Bytes as a MessagePack text, whatever they are: the scripts' library knows no other kind."""
    size = len(value)
    if size < 32:
        return Raw(bytes((0xA0 | size,)) + value)
    if size < 65536:
        return Raw(b"\xda" + size.to_bytes(2, "big") + value)
    return Raw(b"\xdb" + size.to_bytes(4, "big") + value)


def json_text(value: object | None) -> str | None:
    return None if value is None else to_json(value).decode()


def read_run(id: bytes, text: bytes, lease: bytes | None, body: bytes | None) -> Run:
    """Raises on a record that this version cannot read: see `legible`."""
    fresh = text[1] in b"pP"
    record = _record(text)
    held = None if lease is None or text[:1] != b"r" else _leases.decode(lease)
    stored = _whole(body if body is not None else (_bytes(record.body) or b""))
    read = wire.decode_or_blank(stored)
    if fresh and held is not None:
        return _first_claimed(id.decode(), record, held, stored, read)
    reason, error, progress = _text(record.reason), _text(record.error), _text(record.progress)
    return Run(
        id=id.decode(),
        state=STATES[chr(text[0])],
        due_at=record.created_at if record.due_at is False else record.due_at,
        expires_at=_instant(record.expires_at),
        fence=record.fence if held is None else held.fence,
        failures=record.failures,
        losses=record.losses,
        worker=None if held is None else held.worker,
        claimed_at=None if held is None else held.claimed_at,
        until=None if held is None else held.until,
        cancel_asked=record.asked == "cancel" if held is None else held.cancel,
        pause_asked=record.asked == "pause" if held is None else held.pause,
        parked=text[:1] == b"k",
        reason=None if reason is None else Reason(reason),
        note=_text(record.note),
        error=None if error is None else _failures.decode(error),
        finished_at=_instant(record.finished_at),
        attempts=() if isinstance(record.attempts, bool) else tuple(map(_attempt, record.attempts)),
        progress=None if progress is None else _progress.decode(progress),
        task=record.task,
        key=_text(record.key),
        unique_key=_text(record.unique_key),
        marked=record.marked,
        priority=record.priority,
        created_at=record.created_at,
        needs=() if isinstance(record.needs, bool) else record.needs,
        awaited=record.awaited,
        rest=() if isinstance(record.rest, bool) else record.rest,
        touches=record.touches,
        touched_at=record.created_at if record.touched_at is False else record.touched_at,
        result=_bytes(record.result),
        saved=_bytes(record.saved),
        args=bytes(read.args),
        origin=read.origin or _ORIGIN,
        policy=read.policy or _POLICY,
        member=read.member,
        wire=stored,
    )


def _first_claimed(id: str, record: _Record, held: _Lease, stored: bytes, read: wire.Body) -> Run:
    """The run that most claims bring, without a word on what has not happened to it yet."""
    due_at = record.created_at if record.due_at is False else record.due_at
    return Run(
        id,
        State.RUNNING,
        due_at,
        _instant(record.expires_at),
        held.fence,
        0,
        0,
        held.worker,
        held.claimed_at,
        held.until,
        held.cancel,
        held.pause,
        task=record.task,
        key=_text(record.key),
        unique_key=_text(record.unique_key),
        marked=record.marked,
        priority=record.priority,
        created_at=record.created_at,
        touched_at=record.created_at,
        args=bytes(read.args),
        origin=read.origin or _ORIGIN,
        policy=read.policy or _POLICY,
        member=read.member,
        wire=stored,
    )


def read_runs(flat: Sequence[Any]) -> tuple[list[Run], list[bytes]]:
    """Runs as the scripts tell them: id, record, lease, body, again and again. And the ids of those not to be read."""
    runs: list[Run] = []
    odd: list[bytes] = []
    words = iter(flat)
    for id, text, lease, body in zip(words, words, words, words, strict=True):
        run = legible("run", id.decode(errors="replace"), partial(read_run, id, text, lease, body))
        if run is None:
            odd.append(id)
        else:
            runs.append(run)
    return runs, odd


def read_seq(text: bytes) -> int:
    """The place of a run in the order of arrival."""
    return _record(text).seq


def _record(text: bytes) -> _Record:
    return _records.decode(_HEADS[text[1:2].lower()] + text[2:])


def _attempt(row: _Attempt) -> Attempt:
    rest = _rests.decode(row.rest)
    return Attempt(
        row.fence, row.worker, row.outcome, row.claimed_at, row.ended_at, rest.seconds, rest.error, rest.warnings
    )


def new_item(new: NewRun) -> list[Any]:
    """A run on its way in, as lua/shared/admitting.lua reads it; what it does not say is left off at the end."""
    body = new.wire.removeprefix(_PREFIX).decode()
    apart = len(body) > APART
    tail = (new.task, _or(new.key), _or(new.unique_key), new.marked, new.priority, False if apart else body)
    item: list[Any] = [new.id, new.task, new.priority, opaque(pack(tail)[1:]), new.delay or None, new.at]
    guards = new.guards
    if guards == _UNGUARDED and new.key is new.unique_key is None and not (apart or new.needs or new.group):
        item += (new.expires_after, new.expires_at)
    else:
        item += (
            new.expires_after,
            new.expires_at,
            new.key,
            new.unique_key,
            new.needs or None,
            guards.unique,
            None if guards.join == "keep" else guards.join,
            guards.max_wait,
            [(rule.failures, rule.seconds, rule.reason) for rule in guards.rest] or None,
            guards.max_pending,
            body if apart else None,
            guards.behind or None,
            new.group,
        )
    while item[-1] is None:
        item.pop()
    return item


def _or(value: str | None) -> Text:
    return False if value is None else value


def plan_item(schedule: Schedule) -> list[Any]:
    """A declaration: what it says as text, and where it begins. With a version it comes from elsewhere, as it was."""
    said = msgspec.structs.replace(
        schedule, anchor=None, next_at=None, fires_at=None, version=0, since=0.0, paused=False, note=None, recent=()
    )
    text = to_json(_schedules.decode(to_json(said))).decode()  # 30 and 30.0 are the same seconds
    times = to_json((said.trigger, said.start, said.end)).decode()
    stands = [False if value is None else value for value in (schedule.anchor, schedule.next_at, schedule.fires_at)]
    stood: list[Any] = [0, 0, False, False, False]
    if schedule.version:
        recent = schedule.recent or False
        stood = [schedule.version, schedule.since, schedule.paused, _or(schedule.note), recent]
    return [schedule.id, text, times, schedule.owner, schedule.task, schedule.key, *stands, *stood]


def read_plan(text: bytes) -> Schedule:
    plan = _plans.decode(text)
    return msgspec.structs.replace(
        _schedules.decode(plan.text),
        anchor=_instant(plan.anchor),
        next_at=_instant(plan.next_at),
        fires_at=_instant(plan.fires_at),
        version=plan.version,
        since=plan.since,
        paused=plan.paused,
        note=_text(plan.note),
        recent=() if isinstance(plan.recent, bool) else plan.recent,
    )


def mark_item(edit: Marked) -> list[Any]:
    mark = edit.mark
    if mark is None:
        return [edit.task, edit.key]
    stands = [False if value is None else value for value in (mark.succeeded_at, mark.finished_at)]
    return [edit.task, edit.key, *stands, mark.failures]


def read_mark(text: bytes) -> Marked:
    row = _marks.decode(text)
    return Marked(row.task, row.key, Mark(_instant(row.succeeded_at), _instant(row.finished_at), row.failures))


def read_decided(text: bytes) -> Decided:
    row = _decided.decode(text)
    return Decided(
        row.task,
        row.key,
        row.reason,
        row.count,
        row.first_at,
        row.last_at,
        _text(row.run),
        _text(row.note),
        _text(row.by),
    )
