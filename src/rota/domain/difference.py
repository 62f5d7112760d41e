"""Difference: what a start of this code would change in a store."""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from rota.domain import codec
from rota.domain.policy import Policy
from rota.domain.schedule import Missed, Schedule, declared
from rota.domain.spec import TaskSpec
from rota.domain.ticks import due_tick, moved_tick, with_first_tick

Kind = Literal["added", "changed", "moved", "undeclared", "taken"]
"""moved: unchanged, but the rules of its zone have changed since its next tick was computed. undeclared: this app
declared it once and no longer does; a start does not change it. taken: it belongs to another app; a start does not
change it."""

DECLARED = (
    "trigger",
    "task",
    "key",
    "priority",
    "queue",
    "share",
    "guards",
    "overlap",
    "catch_up",
    "grace",
    "start",
    "end",
    "once",
    "deadline",
)
UNPUBLISHED = ("name", "paused", "paused_keys")
PUBLISHED = tuple(name for name in TaskSpec.__struct_fields__ if name not in UNPUBLISHED)


class Field(Struct, frozen=True):
    """One field that differs."""

    name: str
    before: object
    after: object


class Change(Struct, frozen=True):
    """A change of a schedule or of the published spec of a task. `next_before` and `next_after` are the next ticks of a
    schedule before and after the change."""

    kind: Kind
    of: Literal["schedule", "task"]
    id: str
    fields: tuple[Field, ...] = ()
    next_before: float | None = None
    next_after: float | None = None


class Owed(Struct, frozen=True):
    """What a due schedule makes when a worker starts: the number of runs, and the ticks that make none."""

    schedule: str
    task: str
    runs: int
    missed: Missed | None


def started(new: Sequence[Schedule], stored: Mapping[str, Schedule], now: float) -> dict[str, Schedule]:
    """Return all schedules as they are after a start of this code. Raise ValueError for a trigger that cannot be
    read."""
    after = dict(stored)
    for schedule in new:
        known = stored.get(schedule.id)
        if known is None or known.owner == schedule.owner:
            after[schedule.id] = declared(with_first_tick(schedule, now, known), known, now)
    return after


def schedule_changes(new: Sequence[Schedule], stored: Mapping[str, Schedule], owner: str, now: float) -> list[Change]:
    after = started(new, stored, now)
    changes = [change for schedule in new if (change := _change(schedule, stored.get(schedule.id), after))]
    names = {schedule.id for schedule in new}
    gone = [known for known in stored.values() if known.owner == owner and known.id not in names]
    return changes + [Change("undeclared", "schedule", known.id, next_before=known.next_at) for known in gone]


def _change(new: Schedule, known: Schedule | None, after: Mapping[str, Schedule]) -> Change | None:
    then = after[new.id]
    if known is None:
        return Change("added", "schedule", new.id, next_after=then.next_at)
    if known.owner != new.owner:
        field = Field("owner", known.owner, new.owner)
        return Change("taken", "schedule", new.id, (field,), known.next_at, known.next_at)
    if then is known:
        move = moved_tick(known)
        return None if move is None else Change("moved", "schedule", new.id, (), known.next_at, move.then)
    fields = (*_fields(known, then, DECLARED), *_body_fields(known, then))
    return Change("changed", "schedule", new.id, fields, known.next_at, then.next_at)


def task_changes(new: Sequence[TaskSpec], published: Mapping[str, TaskSpec]) -> list[Change]:
    """Return the changes of published tasks. A task that was paused before it was ever published counts as added."""
    found: list[Change] = []
    for spec in new:
        known = published.get(spec.name)
        if known is None or not known.executor:
            found.append(Change("added", "task", spec.name))
        elif fields := _fields(known, spec, PUBLISHED):
            found.append(Change("changed", "task", spec.name, tuple(fields)))
    return found


def owed(schedules: Mapping[str, Schedule], now: float) -> list[Owed]:
    """Return the schedules that are due now and not fired yet, because no worker ran."""
    found: list[Owed] = []
    for schedule in schedules.values():
        if schedule.paused or schedule.fires_at is None or schedule.fires_at > now or schedule.deadline is not None:
            continue
        tick = due_tick(schedule, now)
        if tick.runs or tick.missed:
            found.append(Owed(schedule.id, schedule.task, len(tick.runs), tick.missed))
    return found


def _fields(before: Struct, after: Struct, names: Sequence[str], prefix: str = "") -> list[Field]:
    """Return the fields that differ, also inside nested structs."""
    found: list[Field] = []
    for name in names:
        one, two = getattr(before, name), getattr(after, name)
        if isinstance(one, Struct) and isinstance(two, Struct) and type(one) is type(two):
            found += _fields(one, two, one.__struct_fields__, f"{prefix}{name}.")
        elif one != two:
            found.append(Field(f"{prefix}{name}", one, two))
    return found


def _body_fields(before: Schedule, after: Schedule) -> list[Field]:
    """Return the differences in the arguments and in the policy of the runs."""
    one, two = (codec.decode_or_blank(schedule.body) for schedule in (before, after))
    args = Field("args", bytes(one.args), bytes(two.args))
    policies = (one.policy or Policy(), two.policy or Policy())
    return ([args] if args.before != args.after else []) + _fields(*policies, Policy.__struct_fields__)
