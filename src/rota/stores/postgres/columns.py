"""The arguments of the SQL functions: a batch is one array per column."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from rota.domain.edits import RunEdit
from rota.domain.guards import Mark
from rota.domain.overrides import Overrides
from rota.domain.run import Failure, Lease, NewRun, Note
from rota.domain.schedule import Schedule, Tick
from rota.domain.settlement import Settlement
from rota.domain.spec import LIMIT_ROW, TaskSpec, override_row
from rota.store import ENDINGS, MarkRow, Plan, Report, Tally, Terms
from rota.stores.fields import PUT, SETTLEMENT_FIELDS, TIMES, PutField, SettlementField
from rota.stores.retention import mark_memory

Column = list[Any]
Columns = list[Column | None]

_encoder = msgspec.json.Encoder()


def to_json(value: Any) -> str:
    return _encoder.encode(value).decode()


def clean(text: str | None) -> str | None:
    """Replace NUL characters: PostgreSQL cannot store them in text."""
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}") if text and "\x00" in text else text


def _thin(column: Column, default: Any = None) -> Column | None:
    """Replace the default by None. If every item has the default, the column is None: `unnest` pads it with NULL. An
    empty list would do the same, but asyncpg needs 2 microseconds to encode one."""
    if column.count(default) == len(column):
        return None
    return [None if value == default else value for value in column]


def is_plain(run: NewRun) -> bool:
    """Has `run` no guards, no needs, no group, no id of its own and no callbacks?"""
    guards = run.guards
    guarded = run.unique_key is not None or guards.cooldowns or guards.max_pending is not None
    return not (guarded or run.needs or run.group or run.fingerprint or run.callbacks)


def of_runs(runs: Sequence[NewRun], plain: bool = False) -> Columns:
    """A column for each field of PUT. If all runs are plain, there are no columns of guards."""
    return [None if plain and not field.plain else _column(field, runs) for field in PUT]


def _column(field: PutField, runs: Sequence[NewRun]) -> Column | None:
    values = list(map(field.get, runs))
    if field.name in _ALWAYS:
        return values
    if field.kind == "list" and any(values):
        return [to_json(value) if value else None for value in values]
    return _thin(values, field.default)


_ALWAYS = ("id", "task", "body")
"""Fields without a default."""


def of_edits(edits: Sequence[RunEdit]) -> list[Column]:
    """A column for each field of RunEdit."""
    return [[getattr(one, name) for one in edits] for name in RunEdit.__struct_fields__]


def of_put(runs: Sequence[NewRun], plan: Plan | None = None) -> list[Any]:
    plain = plan is None and all(is_plain(run) for run in runs)
    known = list(dict.fromkeys(run.task for run in runs))
    of_plan: list[Any] = [None, None, None] if plan is None else [plan.group, list(plan.keep), clean(plan.note)]
    return [plain, known, *of_runs(runs, plain), *of_plan]


def of_bare(runs: Sequence[NewRun]) -> list[Any] | None:
    """The arguments of the function `put_bare`; None if a run of the batch is not plain, or says when it is due."""
    if not all(map(is_plain, runs)) or any(_column(field, runs) is not None for field in _TIMED):
        return None
    known = list(dict.fromkeys([run.task for run in runs]))
    return [known, *(None if field.name == "task" and len(known) == 1 else _column(field, runs) for field in _BARE)]


_TIMED = [field for field in PUT if field.name in TIMES]
_BARE = [field for field in PUT if field.plain and field.name not in TIMES]


def as_payload(runs: Sequence[NewRun]) -> str:
    """The runs as JSON, for the function `submit`: every driver can send one text."""
    return to_json([_incoming(run) for run in runs])


def _incoming(run: NewRun) -> dict[str, Any]:
    columns = {field.sql: _column(field, [run]) for field in PUT}
    found = {name: column[0] for name, column in columns.items() if column is not None}
    return found | {"body": f"\\x{run.body.hex()}"}


def of_ticks(ticks: Sequence[Tick]) -> Columns:
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
        _thin([tick.left for tick in ticks]),
        _thin([clean(tick.note) for tick in ticks]),
        [place for place, tick in enumerate(ticks, 1) for _ in tick.runs],
        [nominal for tick in ticks for nominal in tick.nominals],
        *of_runs(runs),
    ]


class _Attempt(Struct, frozen=True, omit_defaults=True):
    outcome: str
    seconds: float | None = None
    error: Failure | None = None
    warnings: tuple[str, ...] = ()
    log: str = ""
    trace: str = ""


def _attempt(settlement: Settlement) -> str:
    """The client's part of an attempt, as JSON without braces; `outcome` is first, for the function `was_settled`."""
    known = _Attempt(
        settlement.outcome,
        settlement.seconds,
        settlement.error,
        settlement.warnings,
        settlement.log,
        settlement.trace,
    )
    return to_json(known)[1:-1]


def of_settlements(settlements: Sequence[Settlement]) -> list[Any]:
    """Whether the batch is simple (see the function `settle`), then a column for each field of a settlement."""
    ids = {settlement.run for settlement in settlements}
    simple = len(ids) == len(settlements) and not any(settlement.stops for settlement in settlements)
    return [simple, *(_settled(field, settlements) for field in SETTLEMENT_FIELDS)]


def _settled(field: SettlementField, settlements: Sequence[Settlement]) -> Column | None:
    if field.name == "attempt":
        return [_attempt(settlement) for settlement in settlements]
    values: Column = list(map(field.get, settlements))
    if field.kind == "json":
        values = [None if value is None else to_json(value) for value in values]
    if field.name in _ENUMS:  # drivers get plain texts
        values = [None if value is None else value.value for value in values]
    if field.name in _ALWAYS_SETTLED:
        return values
    return _thin(values, field.default)


_ENUMS = ("state", "reason", "charge")
_ALWAYS_SETTLED = ("id", "fence", "worker", "state")
"""Fields of a settlement that differ from one to the next: their columns are sent in full."""


def of_leases(leases: Sequence[Lease]) -> list[Column]:
    return [[lease.run for lease in leases], [lease.fence for lease in leases], [lease.worker for lease in leases]]


def of_notes(notes: Sequence[Note | None]) -> Columns:
    return [
        _thin([note is not None for note in notes], False),
        _thin([note and note.progress and to_json(note.progress) for note in notes]),
        _thin([note and note.saved for note in notes]),
    ]


SCHEDULE_STATE = ("anchor", "next_at", "fires_at", "version", "since", "paused", "note", "made", "recent")
"""The fields of a schedule that the store keeps beside the declaration, in the order of the function `as_json`."""


def _declared(schedule: Schedule) -> str:
    """The declaration as JSON, without the state; the same text for the same declaration."""
    fields = msgspec.structs.asdict(schedule)
    return to_json(Schedule(**{name: value for name, value in fields.items() if name not in SCHEDULE_STATE}))


def of_declarations(items: Iterable[TaskSpec | Schedule], implied: Iterable[TaskSpec] = ()) -> list[Column]:
    """Return the columns of `items`. Before them come those of `implied`, which are added if they are missing: for
    them `enabled`, the third column, is NULL."""
    rows = [(*_of_spec(row)[:2], None, *_of_spec(row)[3:]) for row in implied]
    rows += [_of_spec(item) if isinstance(item, TaskSpec) else _of_schedule(item) for item in items]
    columns = list(zip(*rows, strict=True))
    return [list(column) for column in columns] if columns else [[] for _ in range(25)]


def of_overrides(task: str, overrides: Overrides) -> list[Any]:
    row = _of_spec(override_row(task, overrides))
    return [task, row[1], row[2], *row[4:9]]


def of_terms(terms: Terms | None) -> list[Any]:
    if terms is None:
        return [None, [], []]
    return [list(terms.versions), list(terms.versions.values()), list(terms.drop)]


def _of_spec(spec: TaskSpec) -> tuple[Any, ...]:
    limit, rate = spec.limit, spec.rate
    return (
        spec.name,
        to_json(spec.declaration()),
        spec.enabled,
        msgspec.structs.replace(spec, paused_keys=()).gated or spec.share is not None,
        limit.total if limit else None,
        limit.per_key if limit else None,
        rate.interval if rate else None,
        rate.burst if rate else None,
        rate.per_key if rate else None,
        mark_memory(spec),
        "\n".join(f"{LIMIT_ROW}{limit.name}" for limit in spec.limits) or None,
        *(None,) * 14,
    )


def _of_schedule(schedule: Schedule) -> tuple[Any, ...]:
    return (
        schedule.id,
        *(None,) * 10,
        schedule.task,
        schedule.key,
        schedule.owner,
        _declared(schedule),
        to_json(schedule.when),
        schedule.anchor,
        schedule.next_at,
        schedule.fires_at,
        schedule.version,
        schedule.since,
        schedule.paused,
        clean(schedule.note),
        schedule.made,
        to_json(schedule.recent),
    )


def of_marks(edits: Sequence[MarkRow]) -> list[Column]:
    marks = [edit.mark or Mark() for edit in edits]  # to clear a mark that does not exist changes nothing
    return [
        [edit.task for edit in edits],
        [edit.key for edit in edits],
        [edit.mark is None for edit in edits],
        [mark.succeeded_at for mark in marks],
        [mark.finished_at for mark in marks],
        [mark.failures for mark in marks],
        [mark.holder for mark in marks],
    ]


def of_report(report: Report | None, offers: bool) -> list[Column | bool]:
    """What a report counts, with `offers` between its first columns and those that later versions have added; what has
    no counts is left out."""
    tallies, totals = (report.tallies, report.totals) if report else ((), ())
    found: list[Column | bool] = [*_of_tallies(tallies)]
    if tallies or totals or not offers:
        found.append(offers)
    if tallies or totals:
        found.append([tally.origin for tally in tallies])
    if totals:
        whats, names, reasons, counts = zip(*map(astuple, totals), strict=True)
        found += [list(whats), list(names), list(reasons), list(counts)]
    return found


def _of_tallies(tallies: Sequence[Tally]) -> list[Column]:
    """Each list of numbers is the text of an array: PostgreSQL has no arrays of arrays of different lengths."""
    return [
        [tally.task for tally in tallies],
        [_array([getattr(tally, name) for name in (*ENDINGS, "waited", "ran")]) for tally in tallies],
        [_array(_dense(tally.waits)) for tally in tallies],
        [_array(_dense(tally.durations)) for tally in tallies],
    ]


def _dense(counts: dict[int, int]) -> list[int]:
    return [counts.get(bucket, 0) for bucket in range(max(counts, default=-1) + 1)]


def _array(numbers: Sequence[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"
