"""Runs as the scripts keep them: how one is read, and how a new one is written."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from rota.domain import codec
from rota.domain.decision import Reason
from rota.domain.guards import Cooldown, Guards
from rota.domain.policy import Policy
from rota.domain.run import Attempt, Failure, NewRun, Origin, Progress, Run, State
from rota.stores.redis.packing import (
    Instant,
    Text,
    bytes_or_none,
    instant_or_none,
    opaque,
    or_false,
    pack,
    text_or_none,
)
from rota.stores.unreadable import legible

APART = 1024
"""Bodies longer than this are kept in a key of their own, so that they are not copied when the run changes."""

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
    details: str


class _Record(Struct, frozen=True, array_like=True):
    """As in lua/shared/book.lua. A run that is as it was put ends with its body."""

    seq: int
    created_at: float
    due_at: Instant
    expires_at: Instant
    task: str
    key: Text
    unique_key: Text
    writes_mark: bool
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
    cooldowns: tuple[Cooldown, ...] | bool = False
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


class _AttemptDetails(Struct, frozen=True, array_like=True):
    """What an attempt says that no script reads."""

    seconds: float | None = None
    error: Failure | None = None
    warnings: tuple[str, ...] = ()


_records = msgspec.msgpack.Decoder(_Record)
_leases = msgspec.msgpack.Decoder(_Lease)
_details = msgspec.json.Decoder(_AttemptDetails)
_failures = msgspec.json.Decoder(Failure)
_progress = msgspec.json.Decoder(Progress)

_ORIGIN, _POLICY = Origin(), Policy()
_UNGUARDED = Guards()
_PREFIX = b'{"v":1,"args":{'
"""What nearly every body begins with; it is not stored."""
_HEADS = {b"p": b"\x9a", b"x": b"\xdc\x00\x19", b"y": b"\xdc\x00\x1b"}
"""How a list of as many fields begins as a run of that form has."""


def _whole(body: bytes) -> bytes:
    return _PREFIX + body if body[:1] in (b'"', b"}") else body


def read_run(id: bytes, text: bytes, lease: bytes | None, body: bytes | None) -> Run:
    """Raises on a record that this version cannot read: see `legible`."""
    fresh = text[1] in b"pP"
    record = _record(text)
    held = None if lease is None or text[:1] != b"r" else _leases.decode(lease)
    stored = _whole(body if body is not None else (bytes_or_none(record.body) or b""))
    read = codec.decode_or_blank(stored)
    if fresh and held is not None:
        return _first_claimed(id.decode(), record, held, stored, read)
    reason, error, progress = text_or_none(record.reason), text_or_none(record.error), text_or_none(record.progress)
    return Run(
        id=id.decode(),
        state=STATES[chr(text[0])],
        due_at=record.created_at if record.due_at is False else record.due_at,
        expires_at=instant_or_none(record.expires_at),
        fence=record.fence if held is None else held.fence,
        failures=record.failures,
        losses=record.losses,
        worker=None if held is None else held.worker,
        claimed_at=None if held is None else held.claimed_at,
        until=None if held is None else held.until,
        cancel_requested=record.asked == "cancel" if held is None else held.cancel,
        pause_requested=record.asked == "pause" if held is None else held.pause,
        parked=text[:1] == b"k",
        reason=None if reason is None else Reason(reason),
        note=text_or_none(record.note),
        error=None if error is None else _failures.decode(error),
        finished_at=instant_or_none(record.finished_at),
        attempts=() if isinstance(record.attempts, bool) else tuple(map(_attempt, record.attempts)),
        progress=None if progress is None else _progress.decode(progress),
        task=record.task,
        key=text_or_none(record.key),
        unique_key=text_or_none(record.unique_key),
        writes_mark=record.writes_mark,
        priority=record.priority,
        created_at=record.created_at,
        needs=() if isinstance(record.needs, bool) else record.needs,
        awaited=record.awaited,
        cooldowns=() if isinstance(record.cooldowns, bool) else record.cooldowns,
        touches=record.touches,
        touched_at=record.created_at if record.touched_at is False else record.touched_at,
        result=bytes_or_none(record.result),
        saved=bytes_or_none(record.saved),
        args=bytes(read.args),
        origin=read.origin or _ORIGIN,
        policy=read.policy or _POLICY,
        member=read.member,
        body=stored,
    )


def _first_claimed(id: str, record: _Record, held: _Lease, stored: bytes, read: codec.Body) -> Run:
    """The run that most claims bring, without a word on what has not happened to it yet."""
    due_at = record.created_at if record.due_at is False else record.due_at
    return Run(
        id,
        State.RUNNING,
        due_at,
        instant_or_none(record.expires_at),
        held.fence,
        0,
        0,
        held.worker,
        held.claimed_at,
        held.until,
        held.cancel,
        held.pause,
        task=record.task,
        key=text_or_none(record.key),
        unique_key=text_or_none(record.unique_key),
        writes_mark=record.writes_mark,
        priority=record.priority,
        created_at=record.created_at,
        touched_at=record.created_at,
        args=bytes(read.args),
        origin=read.origin or _ORIGIN,
        policy=read.policy or _POLICY,
        member=read.member,
        body=stored,
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
    details = _details.decode(row.details)
    return Attempt(
        row.fence,
        row.worker,
        row.outcome,
        row.claimed_at,
        row.ended_at,
        details.seconds,
        details.error,
        details.warnings,
    )


def new_item(new: NewRun) -> list[Any]:
    """A run on its way in, as lua/shared/admitting.lua reads it; what it does not say is left off at the end."""
    body = new.body.removeprefix(_PREFIX).decode()
    apart = len(body) > APART
    tail = (
        new.task,
        or_false(new.key),
        or_false(new.unique_key),
        new.writes_mark,
        new.priority,
        False if apart else body,
    )
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
            [(rule.failures, rule.seconds, rule.reason) for rule in guards.cooldowns] or None,
            guards.max_pending,
            body if apart else None,
            guards.behind or None,
            new.group,
        )
    while item[-1] is None:
        item.pop()
    return item
