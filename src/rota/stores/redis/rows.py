"""Specs, schedules, marks, decisions and ticks as scripts have them; `scripts.words` gives Lua the places of fields."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from rota.domain.decision import DecisionCount, Reason
from rota.domain.fan import Fan
from rota.domain.guards import Mark
from rota.domain.overrides import OVERRIDE_ROW, Overrides
from rota.domain.schedule import Firing, Schedule
from rota.domain.spec import LIMIT_ROW, TaskSpec
from rota.store import MarkRow
from rota.stores.redis.msgpack import Instant, Text, instant_or_none, json_text, or_false, text_or_none, to_json
from rota.stores.retention import mark_memory

_REASONS = {reason.encode(): reason for reason in Reason}


def reason_of(word: bytes) -> Reason:
    return _REASONS.get(word, Reason.UNKNOWN)


class SpecRow(Struct, frozen=True, array_like=True):
    """`text` is the whole spec as JSON; the scripts read the other fields. False: the task has no limit or no rate."""

    text: str
    paused: bool
    enabled: bool
    total: int | bool
    per_key: int | bool
    interval: float | bool
    burst: int | bool
    each: bool
    limit: str
    rate: str
    memory: float
    limits: Sequence[str | int] | bool = False
    """The row and the number of each named limit, one after the other."""
    weights: dict[str, int] | bool = False
    paused_keys: Sequence[str] | bool = False
    paused_until: float | bool = False
    overrides: Sequence[int | str | bool] | bool = False
    """Of a row of overrides: their version, and the whole row as JSON if it changes the policy of runs."""


class FanRow(Struct, frozen=True, array_like=True):
    """False: the total is not known; all children may fail."""

    total: int | bool
    allowed: int | bool
    ended: int
    failed: int
    created_at: float

    def to_fan(self, id: str) -> Fan:
        total = None if self.total is False else int(self.total)
        allowed = None if self.allowed is False else int(self.allowed)
        return Fan(id, total, allowed, self.ended, self.failed, self.created_at)


class TickRow(Struct, frozen=True, array_like=True):
    schedule: str
    version: int
    next_at: float | None
    then: float | None
    fires_at: float | None
    nominals: Sequence[float]
    last_missed: float | None
    missed: int | None
    reason: Reason | None
    words: str | None
    left: int | None
    runs: list[list[Any]]
    """Each as `records.new_item` has it."""
    note: str | None = None


class ScheduleRow(Struct, frozen=True, array_like=True):
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
    made: int = 0


class MarkFields(Struct, frozen=True, array_like=True):
    task: str
    key: str
    succeeded_at: Instant
    finished_at: Instant
    failures: int
    holder: Text = False


class DecisionRow(Struct, frozen=True, array_like=True):
    task: str
    key: str
    reason: Reason
    count: int
    first_at: float
    last_at: float
    run: Text
    note: Text
    by: Text


_rows = msgspec.msgpack.Decoder(ScheduleRow)
_marks = msgspec.msgpack.Decoder(MarkFields)
_decision_counts = msgspec.msgpack.Decoder(DecisionRow)
_schedules = msgspec.json.Decoder(Schedule)


def spec_item(spec: TaskSpec) -> SpecRow:
    text = to_json(msgspec.json.decode(to_json(spec.declaration()), type=TaskSpec)).decode()  # 30 and 30.0 are the same
    limit, rate = spec.limit, spec.rate
    return SpecRow(
        text,
        paused=False,
        enabled=spec.enabled,
        total=(limit and limit.total) or False,
        per_key=(limit and limit.per_key) or False,
        interval=rate.interval if rate else False,
        burst=rate.burst if rate else False,
        each=rate.per_key if rate else False,
        limit=(json_text(limit) or "") + (json_text(spec.limits) or "" if spec.limits else ""),
        rate=json_text(rate) or "",
        memory=mark_memory(spec),
        limits=[word for limit in spec.limits for word in (f"{LIMIT_ROW}{limit.name}", limit.total or 0)] or False,
        weights=(spec.share and spec.share.weights) or False,
        overrides=_overrides(spec.overrides, text) if spec.name.startswith(OVERRIDE_ROW) else False,
    )


def _overrides(given: Overrides | None, text: str) -> Sequence[int | str | bool] | bool:
    if given is None:
        return False
    return given.version, text if given.retry is not None or given.timeout is not None else False


def schedule_item(schedule: Schedule) -> list[Any]:
    """A schedule to declare: the declaration as JSON, then the state. A schedule with a version comes from another
    store, and keeps the state that it had there."""
    declaration = msgspec.structs.replace(
        schedule,
        anchor=None,
        next_at=None,
        fires_at=None,
        version=0,
        since=0.0,
        paused=False,
        note=None,
        made=0,
        recent=(),
    )
    text = to_json(_schedules.decode(to_json(declaration))).decode()  # decoded once: 30 and 30.0 are the same
    times = to_json(declaration.when).decode()
    ticks = [False if value is None else value for value in (schedule.anchor, schedule.next_at, schedule.fires_at)]
    state: list[Any] = [0, 0, False, False, False, 0]
    if schedule.version:
        recent = schedule.recent or False
        state = [schedule.version, schedule.since, schedule.paused, or_false(schedule.note), recent, schedule.made]
    return [schedule.id, text, times, schedule.owner, schedule.task, schedule.key, *ticks, *state]


def read_schedule(text: bytes) -> Schedule:
    row = _rows.decode(text)
    return msgspec.structs.replace(
        _schedules.decode(row.text),
        anchor=instant_or_none(row.anchor),
        next_at=instant_or_none(row.next_at),
        fires_at=instant_or_none(row.fires_at),
        version=row.version,
        since=row.since,
        paused=row.paused,
        note=text_or_none(row.note),
        recent=() if isinstance(row.recent, bool) else row.recent,
        made=row.made,
    )


def mark_item(edit: MarkRow) -> list[Any]:
    mark = edit.mark
    if mark is None:
        return [edit.task, edit.key]
    instants = [False if value is None else value for value in (mark.succeeded_at, mark.finished_at)]
    fields = [edit.task, edit.key, *instants, mark.failures]
    return fields if mark.holder is None else [*fields, mark.holder]


def read_mark(text: bytes) -> MarkRow:
    row = _marks.decode(text)
    instants = instant_or_none(row.succeeded_at), instant_or_none(row.finished_at)
    return MarkRow(row.task, row.key, Mark(*instants, row.failures, text_or_none(row.holder)))


def read_decision_count(text: bytes) -> DecisionCount:
    row = msgspec.structs.astuple(_decision_counts.decode(text))
    values: list[Any] = [None if value is False else value for value in row]
    return DecisionCount(*values)
