"""Schedules, marks and decisions as the scripts store them."""

from typing import Any

import msgspec
from msgspec import Struct

from rota.domain.decision import DecisionCount, Reason
from rota.domain.guards import Mark
from rota.domain.schedule import Firing, Schedule
from rota.store import MarkRow
from rota.stores.redis.msgpack import Instant, Text, instant_or_none, or_false, text_or_none, to_json


class _Schedule(Struct, frozen=True, array_like=True):
    """As in lua/shared/schedules.lua."""

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


class _DecisionRow(Struct, frozen=True, array_like=True):
    task: str
    key: str
    reason: Reason
    count: int
    first_at: float
    last_at: float
    run: Text
    note: Text
    by: Text


_rows = msgspec.msgpack.Decoder(_Schedule)
_marks = msgspec.msgpack.Decoder(_MarkRow)
_decision_counts = msgspec.msgpack.Decoder(_DecisionRow)
_schedules = msgspec.json.Decoder(Schedule)


def schedule_item(schedule: Schedule) -> list[Any]:
    """A schedule to declare: the declaration as JSON, then the state. A schedule with a version comes from another
    store, and keeps the state that it had there."""
    declaration = msgspec.structs.replace(
        schedule, anchor=None, next_at=None, fires_at=None, version=0, since=0.0, paused=False, note=None, recent=()
    )
    text = to_json(_schedules.decode(to_json(declaration))).decode()  # decoded once: 30 and 30.0 are the same
    times = to_json((declaration.trigger, declaration.start, declaration.end)).decode()
    ticks = [False if value is None else value for value in (schedule.anchor, schedule.next_at, schedule.fires_at)]
    state: list[Any] = [0, 0, False, False, False]
    if schedule.version:
        recent = schedule.recent or False
        state = [schedule.version, schedule.since, schedule.paused, or_false(schedule.note), recent]
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
    )


def mark_item(edit: MarkRow) -> list[Any]:
    mark = edit.mark
    if mark is None:
        return [edit.task, edit.key]
    instants = [False if value is None else value for value in (mark.succeeded_at, mark.finished_at)]
    return [edit.task, edit.key, *instants, mark.failures]


def read_mark(text: bytes) -> MarkRow:
    row = _marks.decode(text)
    return MarkRow(
        row.task, row.key, Mark(instant_or_none(row.succeeded_at), instant_or_none(row.finished_at), row.failures)
    )


def read_decision_count(text: bytes) -> DecisionCount:
    row = msgspec.structs.astuple(_decision_counts.decode(text))
    values: list[Any] = [None if value is False else value for value in row]
    return DecisionCount(*values)
