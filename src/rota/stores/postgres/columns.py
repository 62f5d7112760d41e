"""What goes into the store's functions: a batch as one array per column."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from rota.domain.guards import Mark
from rota.domain.run import Failure, Lease, NewRun, Note
from rota.domain.schedule import Schedule, Tick
from rota.domain.settlement import Charge, Finish, Requeue, Settlement
from rota.domain.spec import TaskSpec
from rota.store import MarkRow, Plan, Tally
from rota.stores.retention import mark_memory

Column = list[Any]

_encoder = msgspec.json.Encoder()


def to_json(value: Any) -> str:
    return _encoder.encode(value).decode()


def clean(text: str | None) -> str | None:
    """PostgreSQL's text holds no NUL."""
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}") if text and "\x00" in text else text


def _thin(column: Column, default: Any = None) -> Column:
    """None for the default; nothing at all where every item has it: `unnest` pads with NULL."""
    if column.count(default) == len(column):
        return []
    return [None if value == default else value for value in column]


def is_plain(run: NewRun) -> bool:
    """Has it no guards that would have to be judged, nothing to wait for, and no group?"""
    guards = run.guards
    guarded = run.unique_key is not None or guards.cooldowns or guards.max_pending is not None
    return not (guarded or run.needs or run.group)


def of_runs(runs: Sequence[NewRun]) -> list[Column]:
    """The columns that every run has; what `of_guards` gives comes behind them."""
    return [
        [run.id for run in runs],
        [run.task for run in runs],
        _thin([run.key for run in runs]),
        _thin([run.unique_key for run in runs]),
        _thin([run.guards.reads_marks for run in runs], False),
        _thin([run.priority for run in runs], 0),
        _thin([run.delay for run in runs], 0.0),
        _thin([run.at for run in runs]),
        _thin([run.expires_after for run in runs]),
        _thin([run.expires_at for run in runs]),
        [run.body for run in runs],
    ]


def of_guards(runs: Sequence[NewRun]) -> list[Column]:
    return [
        _thin([run.guards.unique for run in runs]),
        _thin([run.guards.join for run in runs]),
        _thin([run.guards.max_wait for run in runs]),
        _thin([to_json(run.guards.cooldowns) if run.guards.cooldowns else None for run in runs]),
        _thin([run.guards.max_pending for run in runs]),
        _thin([to_json(run.needs) if run.needs else None for run in runs]),
        _thin([run.guards.behind and run.unique_key is not None for run in runs], False),
        _thin([run.group for run in runs]),
    ]


NO_GUARDS: list[Column] = [[], [], [], [], [], [], [], []]


def of_put(runs: Sequence[NewRun], plan: Plan | None = None) -> list[Any]:
    plain = plan is None and all(is_plain(run) for run in runs)
    known = list(dict.fromkeys(run.task for run in runs))
    planned: list[Any] = [None, [], None] if plan is None else [plan.group, list(plan.keep), clean(plan.note)]
    return [plain, known, *of_runs(runs), *(NO_GUARDS if plain else of_guards(runs)), *planned]


def as_payload(runs: Sequence[NewRun]) -> str:
    """The same as JSON, for the function `submit`: any driver can carry one text."""
    return to_json([_incoming(run) for run in runs])


def _incoming(run: NewRun) -> dict[str, Any]:
    fields = {
        "id": run.id,
        "task": run.task,
        "key": run.key,
        "unique_key": run.unique_key,
        "writes_mark": run.writes_mark,
        "priority": run.priority,
        "delay": run.delay,
        "at": run.at,
        "expires_after": run.expires_after,
        "expires_at": run.expires_at,
        "body": f"\\x{run.body.hex()}",
        "uniqueness": run.guards.unique,
        "meeting": run.guards.join,
        "max_wait": run.guards.max_wait,
        "cooldowns": to_json(run.guards.cooldowns) if run.guards.cooldowns else None,
        "max_pending": run.guards.max_pending,
        "needs": to_json(run.needs) if run.needs else None,
        "behind": run.guards.behind and run.unique_key is not None,
        "grp": run.group,
    }
    return {name: value for name, value in fields.items() if value is not None}


def of_ticks(ticks: Sequence[Tick]) -> list[Column]:
    runs = [run for tick in ticks for run in tick.runs]
    return [
        [tick.schedule for tick in ticks],
        [tick.version for tick in ticks],
        [tick.next_at for tick in ticks],
        [tick.then for tick in ticks],
        [tick.fires_at for tick in ticks],
        _thin([tick.missed and tick.missed.last for tick in ticks]),
        _thin([tick.missed and tick.missed.count for tick in ticks]),
        _thin([tick.missed and tick.missed.reason.value for tick in ticks]),
        _thin([tick.missed and tick.missed.words for tick in ticks]),
        [place for place, tick in enumerate(ticks, 1) for _ in tick.runs],
        [nominal for tick in ticks for nominal in tick.nominals],
        *of_runs(runs),
        *of_guards(runs),
    ]


class _Attempt(Struct, frozen=True, omit_defaults=True):
    outcome: str
    seconds: float | None = None
    error: Failure | None = None
    warnings: tuple[str, ...] = ()


def _attempt(settlement: Settlement) -> str:
    """What the client knows of an attempt, without the braces; the outcome first, which the store looks for."""
    known = _Attempt(settlement.outcome, settlement.seconds, settlement.error, settlement.warnings)
    return to_json(known)[1:-1]


def of_settlements(said: Sequence[Settlement]) -> list[Any]:
    ids = [one.run for one in said]
    ended = [one.action if isinstance(one.action, Finish) else None for one in said]
    stops = _thin([one.stops for one in said])
    return [
        len(set(ids)) == len(ids) and not any(stops),
        ids,
        [one.fence for one in said],
        [one.worker for one in said],
        [None if finish is None else finish.state.value for finish in ended],
        _thin([finish and finish.reason and finish.reason.value for finish in ended]),
        _thin([finish and finish.result for finish in ended]),
        _thin([one.action.delay if isinstance(one.action, Requeue) else 0.0 for one in said], 0.0),
        _thin([one.charge.value for one in said], Charge.NONE.value),
        _thin([one.error and to_json(one.error) for one in said]),
        [_attempt(one) for one in said],
        _thin([one.lost for one in said], False),
        _thin([one.called for one in said], True),
        _thin([one.mark for one in said], True),
        _thin([one.note and one.note.progress and to_json(one.note.progress) for one in said]),
        _thin([one.note and one.note.saved for one in said]),
        stops,
    ]


def of_leases(leases: Sequence[Lease]) -> list[Column]:
    return [[lease.run for lease in leases], [lease.fence for lease in leases], [lease.worker for lease in leases]]


def of_notes(notes: Sequence[Note | None]) -> list[Column]:
    return [
        _thin([note is not None for note in notes], False),
        _thin([note and note.progress and to_json(note.progress) for note in notes]),
        _thin([note and note.saved for note in notes]),
    ]


_STANDING = ("anchor", "next_at", "fires_at", "version", "since", "paused", "note", "recent")
"""What a store keeps of a schedule beside what was declared."""


def _declared(schedule: Schedule) -> str:
    """Its upper half; the same text for the same declaration."""
    fields = msgspec.structs.asdict(schedule)
    return to_json(Schedule(**{name: value for name, value in fields.items() if name not in _STANDING}))


def of_declarations(items: Iterable[TaskSpec | Schedule]) -> list[Column]:
    columns = list(zip(*(_of_spec(i) if isinstance(i, TaskSpec) else _of_schedule(i) for i in items), strict=True))
    return [list(column) for column in columns] if columns else [[] for _ in range(23)]


def _of_spec(spec: TaskSpec) -> tuple[Any, ...]:
    limit, rate = spec.limit, spec.rate
    return (
        spec.name,
        to_json(msgspec.structs.replace(spec, paused=False)),
        spec.enabled,
        spec.gated,
        limit.total if limit else None,
        limit.per_key if limit else None,
        rate.interval if rate else None,
        rate.burst if rate else None,
        rate.per_key if rate else None,
        mark_memory(spec),
        *(None,) * 13,
    )


def _of_schedule(schedule: Schedule) -> tuple[Any, ...]:
    return (
        schedule.id,
        *(None,) * 9,
        schedule.task,
        schedule.key,
        schedule.owner,
        _declared(schedule),
        to_json((schedule.trigger, schedule.start, schedule.end)),
        schedule.anchor,
        schedule.next_at,
        schedule.fires_at,
        schedule.version,
        schedule.since,
        schedule.paused,
        clean(schedule.note),
        to_json(schedule.recent),
    )


def of_marks(edits: Sequence[MarkRow]) -> list[Column]:
    """Clearing compares with no mark at all."""
    marks = [edit.mark or Mark() for edit in edits]
    return [
        [edit.task for edit in edits],
        [edit.key for edit in edits],
        [edit.mark is None for edit in edits],
        [mark.succeeded_at for mark in marks],
        [mark.finished_at for mark in marks],
        [mark.failures for mark in marks],
    ]


def of_tallies(tallies: Sequence[Tally]) -> list[Column]:
    """Each list of numbers as the text of an array: arrays of arrays must be rectangular."""
    return [
        [tally.task for tally in tallies],
        [_array([tally.succeeded, tally.failed, tally.retried, tally.other]) for tally in tallies],
        [_array(_dense(tally.waits)) for tally in tallies],
        [_array(_dense(tally.durations)) for tally in tallies],
    ]


def _dense(counts: dict[int, int]) -> list[int]:
    return [counts.get(bucket, 0) for bucket in range(max(counts, default=-1) + 1)]


def _array(numbers: Sequence[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"
