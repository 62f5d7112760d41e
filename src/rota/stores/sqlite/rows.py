"""Runs as rows. A batch is written and read as one JSON array, so that a verb takes few statements."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import astuple

from rota.domain import codec
from rota.domain.policy import Policy
from rota.domain.run import DEFAULT_QUEUE, NewRun, Origin, Run, RunHead
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.store import Tally
from rota.stores.charts import SlotName
from rota.stores.fields import BY_NAME, PUT, RUN, Kind, Written, kept_queue
from rota.stores.unreadable import legible

_BY_KIND = {"flag": "json(iif({0}, 'true', 'false'))", "json": "json({0})", "list": "json(coalesce({0}, '[]'))"}
_BY_NAME = {
    "parked": "json(iif(hold = 1, 'true', 'false'))",
    "touched_at": "coalesce(touched_at, created_at)",
    "share": "nullif(share, '')",
    "queue": f"iif(queue = '', '{DEFAULT_QUEUE}', queue)",
    "result": "NULL",
    "saved": "NULL",
}
"""Expressions for fields that are not read as their column. `result` and `saved` may be long; few rules need them."""


def _expression(name: str) -> str:
    return _BY_NAME.get(name) or _BY_KIND.get(BY_NAME[name].kind, "{0}").format(name)


_HEAD = ", ".join(map(_expression, RunHead.__struct_fields__))

HEADS = f"json_group_array(json_array({_HEAD}))"
RUNS = f"json_group_array(json_array(json_array({_HEAD}), body, result, saved))"


class HeadRow(RunHead, frozen=True, array_like=True):
    """A RunHead as the JSON array `_HEAD`."""


class _RunRow(msgspec.Struct, frozen=True, array_like=True):
    head: HeadRow
    body: str
    result: str | None
    saved: str | None


_heads = msgspec.json.Decoder(list[HeadRow])
_runs = msgspec.json.Decoder(list[_RunRow])
_named = msgspec.json.Decoder(list[tuple[str, str]])
_charted = msgspec.json.Decoder(list[tuple[int, int, str, str, str]])
_tally_decoder = msgspec.json.Decoder(Tally)
_schedule_decoder = msgspec.json.Decoder(Schedule)
_spec_decoder = msgspec.json.Decoder(TaskSpec)
_encoder = msgspec.json.Encoder()


def to_json(value: Any) -> str:
    return _encoder.encode(value).decode()


def read_heads(text: str) -> list[HeadRow]:
    """Return the heads that can be read; the others are left out."""
    try:
        return _heads.decode(text)
    except msgspec.DecodeError:
        found = [
            legible("run", str(row[0]), partial(msgspec.convert, row, HeadRow)) for row in msgspec.json.decode(text)
        ]
        return [head for head in found if head is not None]


def read_runs(text: str) -> tuple[list[Run], list[str]]:
    """Return the runs, and the ids of the runs that cannot be read."""
    try:
        return [_run(row) for row in _runs.decode(text)], []
    except msgspec.DecodeError:
        found = {str(row[0][0]): partial(_a_run, row) for row in msgspec.json.decode(text)}
        runs = {id: legible("run", id, read) for id, read in found.items()}
        return [run for run in runs.values() if run is not None], [id for id, run in runs.items() if run is None]


def _a_run(row: object) -> Run:
    return _run(msgspec.convert(row, _RunRow))


def read_schedules(text: str) -> list[tuple[str, Schedule | None]]:
    """Return pairs of an id and a schedule; None for a schedule that cannot be read."""
    rows = _named.decode(text)
    return [(id, legible("schedule", id, partial(_schedule_decoder.decode, body))) for id, body in rows]


def read_specs(text: str) -> list[TaskSpec]:
    """Return the specs that can be read, from pairs of a name and a spec."""
    found = [legible("spec", name, partial(_spec_decoder.decode, body)) for name, body in _named.decode(text)]
    return [spec for spec in found if spec is not None]


def read_tally(place: SlotName, text: str | None) -> Tally | None:
    """Return the tally at `place`; None if there is none, or it cannot be read."""
    if text is None:
        return None
    _, minute, task, _ = place
    return legible("row", f"tally {task} of minute {minute}", partial(_tally_decoder.decode, text))


def read_tallies(text: str) -> list[tuple[int, Tally]]:
    """Return the tallies that can be read, each with its minute."""
    found = [
        (minute, read_tally((every, minute, task, origin), body))
        for every, minute, task, origin, body in _charted.decode(text)
    ]
    return [(minute, tally) for minute, tally in found if tally is not None]


_RESULT, _SAVED = (RunHead.__struct_fields__.index(name) for name in ("result", "saved"))


def _run(row: _RunRow) -> Run:
    body = codec.decode_or_blank(row.body)
    bulk = [bytes(body.args), body.origin or Origin(), body.policy or Policy(), body.member, row.body.encode()]
    values: list[Any] = [*astuple(row.head), *bulk, body.headers or {}, body.on_end, body.unique_in]
    values[_RESULT] = None if row.result is None else row.result.encode()
    values[_SAVED] = None if row.saved is None else row.saved.encode()
    return Run(*values)


_TEXTS = [field.name for field in PUT if field.stored and field.kind == "text"]
_texts = attrgetter(*_TEXTS)
_COMPUTED = [
    *(
        "writes_mark",
        "queue",
        "share",
        "priority",
        "created_at",
        "due_at",
        "expires_at",
        "hold",
        "needs",
        "cooldowns",
        "grp",
        "awaited",
    )
]
_ADDED = [*_TEXTS, *(field.name for field in PUT if field.stored and field.kind == "bytes"), *_COMPUTED]
AT_ONCE = (50, 5, 1)
"""Rows of one statement. A row among 50 costs half as much as a row alone; with few sizes all stay prepared."""


def added_row(new: NewRun, now: float, due_at: float, parked: bool) -> tuple[Any, ...]:
    """Return the values of a new run, in the order of ADD."""
    return (
        *_texts(new),
        new.body.decode(),
        new.writes_mark,
        kept_queue(new.queue),
        new.share or "",
        new.priority,
        now,
        due_at,
        new.expiry(now),
        2 if new.needs else int(parked),
        to_json(new.needs) if new.needs else None,
        _written("list", new.cooldowns),
        new.group,
        bool(new.callbacks),
    )


class Values:
    """A statement that inserts rows: `before`, the values of each row as in `row`, `after`."""

    def __init__(self, before: str, row: str, after: str) -> None:
        self._texts = {size: f"{before} VALUES {', '.join([row] * size)} {after}" for size in AT_ONCE}
        self.one = self._texts[1]
        """The statement that inserts one row."""

    def statements(self, rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, list[Any]]]:
        """Yield the statements that insert `rows`, each with its values."""
        place = 0
        for size, text in self._texts.items():
            while len(rows) - place >= size:
                yield text, list(chain.from_iterable(rows[place : place + size]))
                place += size


ADD = Values(
    f"INSERT INTO runs ({', '.join(_ADDED)}, state)",
    f"({', '.join('?' * len(_ADDED))}, 'queued')",
    "ON CONFLICT (id) DO NOTHING",
)


def _written(kind: Kind, value: Any) -> Any:
    if kind == "json":
        return None if value is None else to_json(value)
    if kind == "list":
        return to_json(value) if value else None
    return value.decode() if kind == "bytes" and value is not None else value


class _Update:
    """A statement that writes some fields of runs, and its rows. A long field of the kind `bytes` that is None was not
    read: the statement keeps its column."""

    def __init__(self, written: frozenset[Written], also: str) -> None:
        chosen = [field.name for field in RUN if field.written in written]
        self._values = attrgetter("id", *chosen)
        self._writers: list[tuple[int, Kind]] = [
            (place, BY_NAME[name].kind) for place, name in enumerate(chosen, 1) if _is_encoded(name)
        ]
        self._hold = chosen.index("parked") + 1 if "parked" in chosen else 0
        places = {name: f"v.value ->> {place}" for place, name in enumerate(chosen, 1)}
        sets = [
            f"{name} = coalesce({place}, {name})" if BY_NAME[name].kind == "bytes" else f"{name} = {place}"
            for name, place in places.items()
        ]
        text = ", ".join([*sets, also.format(**places)]).replace("parked = ", "hold = ")
        self.statement = f"UPDATE runs SET {text} FROM json_each(?) AS v WHERE runs.id = v.value ->> 0"

    def row(self, run: RunHead) -> list[Any]:
        values = list(self._values(run))
        for place, kind in self._writers:
            values[place] = _written(kind, values[place])
        if self._hold:
            values[self._hold] = 2 if run.needs else int(run.parked)
        return values


def _is_encoded(name: str) -> bool:
    return BY_NAME[name].kind in ("json", "list", "bytes")


SAVE = _Update(
    frozenset({"save", "end"}),
    "claimed_at = iif({worker} IS NULL, NULL, claimed_at), claim_n = iif({worker} IS NULL, NULL, claim_n), "
    "offer_at = NULL",
)
"""A save keeps a lease or ends it; only a claim writes a new lease."""

END = _Update(
    frozenset({"end"}), "hold = 0, worker = NULL, claim_n = NULL, claimed_at = NULL, until = NULL, offer_at = NULL"
)
"""Most saves are endings. To write the columns that an ending leaves unchanged would double their cost."""
