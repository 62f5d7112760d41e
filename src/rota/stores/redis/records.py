"""Runs as the scripts store them: how to read a run, and how to send a new one."""

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from rota.domain import codec
from rota.domain.decision import Reason
from rota.domain.edits import RunEdit
from rota.domain.guards import Cooldown, Guards
from rota.domain.policy import Policy
from rota.domain.run import DEFAULT_QUEUE, Attempt, CallbackRun, Failure, NewRun, Origin, Progress, Run, RunHead, State
from rota.domain.settlement import Settlement
from rota.stores import fields
from rota.stores.redis.msgpack import (
    Instant,
    Text,
    bytes_or_none,
    instant_or_none,
    json_text,
    opaque,
    or_false,
    pack,
    text_or_none,
)
from rota.stores.redis.scripts import FIRST_IN_ITEM, ITEM
from rota.stores.unreadable import legible

APART = 1024
"""Bytes. A longer body has a key of its own, so that the server does not copy the body when the run changes."""

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


class _Lease(Struct, frozen=True, array_like=True):
    fence: int
    worker: str
    n: int
    claimed_at: float
    until: float
    cancel: bool
    pause: bool


class _AttemptDetails(Struct, frozen=True, array_like=True):
    """The part of an attempt that no script reads."""

    seconds: float | None = None
    error: Failure | None = None
    warnings: tuple[str, ...] = ()
    log: str = ""
    trace: str = ""


_TYPES: dict[fields.Kind, Any] = {
    "text": Text,
    "integer": int,
    "small": int,
    "big": int,
    "float": Instant,
    "flag": bool,
    "bytes": Text,
    "json": Text,
}
_OTHER_TYPES: dict[str, Any] = {
    "created_at": float,
    "task": str,
    "needs": tuple[str, ...] | bool,
    "attempts": tuple[_Attempt, ...] | bool,
    "cooldowns": tuple[Cooldown, ...] | bool,
}
_BLANKS: dict[str, Any] = {"0": 0, "1": 1, "false": False}


def _struct_field(field: fields.Field) -> tuple[str, Any] | tuple[str, Any, Any]:
    kept_as = _OTHER_TYPES.get(field.name) or _TYPES[field.kind]
    return (field.name, kept_as, _BLANKS[field.blank]) if field.blank else (field.name, kept_as)


_Record: Any = msgspec.defstruct("_Record", map(_struct_field, fields.RECORD), frozen=True, array_like=True)
"""The fields of `fields.RECORD`; a record of an earlier form ends sooner."""
_records = msgspec.msgpack.Decoder[Any](_Record)
_leases = msgspec.msgpack.Decoder(_Lease)
_details = msgspec.json.Decoder(_AttemptDetails)
_failures = msgspec.json.Decoder(Failure)
_progress = msgspec.json.Decoder(Progress)

_ORIGIN, _POLICY = Origin(), Policy()
_UNGUARDED = Guards()
_PREFIX = b'{"v":1,"args":{'
"""The beginning of nearly every body; it is not stored."""
_HEADS = {
    form.encode(): bytes((0x90 | count,)) if count < 16 else b"\xdc" + count.to_bytes(2, "big")
    for form, count in fields.FORMS.items()
}
"""For each form, the head of a MessagePack list with as many fields. A record is stored without this head."""


_AS_PUT = next(iter(_HEADS))
"""The form of a run that has not changed since its put."""


def _whole(body: bytes) -> bytes:
    return _PREFIX + body if body[:1] in (b'"', b"}") else body


def read_run(id: bytes, text: bytes, lease_text: bytes | None, body: bytes | None) -> Run:
    """Raises on a record that this version cannot read: see `legible`."""
    record = _record(text)
    lease = None if lease_text is None or text[:1] != b"r" else _leases.decode(lease_text)
    stored = _whole(body if body is not None else (bytes_or_none(record.body) or b""))
    read = codec.decode_or_blank(stored)
    if lease is not None and text[1:2].lower() == _AS_PUT:
        return _first_claimed(id.decode(), record, lease, stored, read)
    found: dict[str, Any] = {name: read(value) for (name, read), value in zip(_READ, _values(record), strict=True)}
    if lease is None:
        found |= {"cancel_requested": record.command == "cancel", "pause_requested": record.command == "pause"}
    else:
        found |= {"fence": lease.fence, "worker": lease.worker, "claimed_at": lease.claimed_at, "until": lease.until}
        found |= {"cancel_requested": lease.cancel, "pause_requested": lease.pause}
    if record.due_at is False:
        found["due_at"] = record.created_at
    if record.touched_at is False:
        found["touched_at"] = record.created_at
    found["body"] = stored
    return Run(
        **found,
        id=id.decode(),
        state=STATES[chr(text[0])],
        parked=text[:1] == b"k",
        args=bytes(read.args),
        origin=read.origin or _ORIGIN,
        policy=read.policy or _POLICY,
        member=read.member,
        headers=read.headers or {},
        on_end=read.on_end,
        unique_in=read.unique_in,
    )


def _first_claimed(id: str, record: Any, lease: _Lease, stored: bytes, read: codec.Body) -> Run:
    """A run that was never claimed before, as most claims return it. Its later fields have their defaults: this takes
    less time than `read_run`."""
    due_at = record.created_at if record.due_at is False else record.due_at
    return Run(
        id,
        State.RUNNING,
        due_at,
        instant_or_none(record.expires_at),
        lease.fence,
        0,
        0,
        lease.worker,
        lease.claimed_at,
        lease.until,
        lease.cancel,
        lease.pause,
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
        headers=read.headers or {},
        on_end=read.on_end,
        unique_in=read.unique_in,
    )


def read_runs(flat: Sequence[Any]) -> tuple[list[Run], list[bytes]]:
    """Read runs from the answer of a script: id, record, lease and body of each. Return also the ids of the runs that
    this version cannot read."""
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
    """The number of the run in the order of arrival."""
    return int(_record(text).seq)


def _record(text: bytes) -> Any:
    form = text[1:2].lower()
    if form not in _HEADS:
        raise ValueError(f"its record has the form {form.decode(errors='replace')!r}, which a newer version writes")
    return _records.decode(_HEADS[form] + text[2:])


def _attempt(row: _Attempt) -> Attempt:
    return Attempt(*astuple(row)[:-1], *astuple(_details.decode(row.details)))


_READERS: dict[str, Callable[[Any], Any]] = {
    "reason": lambda value: None if value is False else Reason(value),
    "error": lambda value: None if value is False else _failures.decode(value),
    "progress": lambda value: None if value is False else _progress.decode(value),
    "attempts": lambda value: () if value is False else tuple(map(_attempt, value)),
    "queue": lambda value: DEFAULT_QUEUE if value is False else value,
}
_KINDS: dict[fields.Kind, Callable[[Any], Any]] = {
    "text": text_or_none,
    "float": instant_or_none,
    "bytes": bytes_or_none,
    "list": lambda value: () if value is False else value,
}


def _as_it_is(value: Any) -> Any:
    return value


_READ = [
    (field.name, _READERS.get(field.name) or _KINDS.get(field.kind) or _as_it_is)
    for field in fields.RECORD
    if field.name in RunHead.__struct_fields__
]
_values = attrgetter(*(name for name, _ in _READ))


def new_item(new: NewRun) -> list[Any]:
    """Return `new` in the order of `scripts.ITEM`, without the empty fields at the end."""
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
    item: list[Any] = [*_first(new)]
    item.insert(_TAIL, opaque(pack(tail)[1:]))
    item[_DELAY], item[_NEEDS] = new.delay or None, new.needs or None
    kept = fields.KEPT and any(field.get(new) is not None for field in fields.KEPT)
    routed = new.queue != DEFAULT_QUEUE or new.share is not None
    given = new.guards != _UNGUARDED or routed or new.fingerprint is not None or bool(new.callbacks)
    if apart or given or kept:
        item += [None if (value := get(new)) == default else value for get, default in _REST]
        if new.guards.cooldowns:  # in full: msgspec would leave out a reason that is the default
            item[_COOLDOWNS] = [(rule.failures, rule.seconds, rule.reason) for rule in new.guards.cooldowns]
        if new.callbacks:
            item[_CALLBACKS] = [_callback(callback) for callback in new.callbacks]
        item.append(body if apart else None)
    while item[-1] is None:
        item.pop()
    return item


def edit_item(edit: RunEdit) -> list[Any]:
    """Return `edit` as the script `edit` takes it."""
    body = None if edit.body is None else edit.body.removeprefix(_PREFIX).decode()
    replaces = None if edit.replaces is None else edit.replaces.removeprefix(_PREFIX).decode()
    numbers = [False if number is None else number for number in (edit.due_at, edit.expires_at, edit.priority)]
    return [
        edit.run,
        *numbers,
        or_false(body),
        body is not None and len(body) > APART,
        or_false(replaces),
        or_false(edit.share),
    ]


def _callback(callback: CallbackRun) -> list[Any]:
    """A callback as holds.lua puts it: its fields, and the packed tail of its record."""
    body = callback.body.removeprefix(_PREFIX.decode())
    tail = (callback.task, False, False, False, callback.priority, body)
    queue = False if callback.queue == DEFAULT_QUEUE else callback.queue
    letter = LETTERS[callback.state]
    return [letter, callback.id, callback.task, callback.priority, opaque(pack(tail)[1:]), queue]


_REST = [(field.get, field.default) for field in fields.PUT if field.name in ITEM[len(FIRST_IN_ITEM) :]]
"""How to read each field of an item that most runs do not have, and the value that is not sent."""
_first = attrgetter(*(name for name in FIRST_IN_ITEM if name != "tail"))
_TAIL, _DELAY, _NEEDS, _COOLDOWNS, _CALLBACKS = map(ITEM.index, ("tail", "delay", "needs", "cooldowns", "callbacks"))


def settlement_item(settlement: Settlement) -> list[Any]:
    """Return `settlement` in the order of `scripts.SETTLEMENT`, without the empty fields at the end."""
    item: list[Any] = [settlement.outcome]
    for get, write, default in _SETTLEMENT:
        value = get(settlement)
        item.append(None if value is None or value == default else write(value))
    while item[-1] is None:
        item.pop()
    return item


def _write_settled(field: fields.SettlementField) -> Callable[[Any], Any]:
    if field.name == "state":
        return LETTERS.__getitem__
    writers: dict[fields.Kind, Callable[[Any], Any]] = {"json": json_text, "bytes": bytes.decode}
    return writers.get(field.kind, _as_it_is)


_SETTLEMENT = [
    (field.get, _write_settled(field), None if field.kind == "flag" else field.default)
    for field in fields.SETTLEMENT_FIELDS
]
"""How to read and write each field of a settlement, and the value that is not sent. Flags are always sent."""
