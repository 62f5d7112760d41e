"""The values of `{word}` in the SQL functions: column lists from `stores/fields.py`, numbers from `stores/bounds.py`.

`{g.carried}` is the list `carried` with "g." before each column.
"""

import re

from rota.domain.run import DEFAULT_QUEUE, RunHead
from rota.store import SLOTS_KEPT
from rota.stores import bounds, fields
from rota.stores.fields import BY_NAME, PUT, RUN, SETTLEMENT, TIMES, Kind

TYPES: dict[Kind, str] = {
    "text": "text",
    "integer": "integer",
    "small": "smallint",
    "big": "bigint",
    "float": "float8",
    "flag": "boolean",
    "bytes": "bytea",
    "json": "text",
    "list": "text",
}

_MOVED = [field for field in RUN if field.tables == "qlf"]
_VIEWED = [field for field in RUN if field.name in ("seq", "body", *RunHead.__struct_fields__)]
_PLAIN = [field for field in PUT if field.plain]
_BARE = [field for field in _PLAIN if field.name not in TIMES]

DEFAULTED = ("queue", "writes_mark", "priority")
"""Columns of the queue that are not NULL although a put may leave them out."""

_LISTS: dict[str, list[str]] = {
    # columns that a run keeps in every move from one table to another
    "carried": [field.name for field in _MOVED if field.carried],
    # columns that it also keeps when it leaves the queue
    "waited": [field.name for field in _MOVED if not field.carried and field.name not in ("fence", "note")],
    # fields of a put that are stored unchanged
    "stored": [field.sql for field in PUT if field.stored],
    "plain_stored": [field.sql for field in _PLAIN if field.stored],
    # a batch of puts: an array for each field
    "put_fields": [field.sql for field in PUT],
    "put_arrays": [f"p_{field.sql}" for field in PUT],
    "put_parameters": [f"p_{field.sql} {TYPES[field.kind]}[]" for field in PUT],
    "plain_fields": [field.sql for field in _PLAIN],
    "plain_arrays": [f"p_{field.sql}" for field in _PLAIN],
    # a batch of puts without guards and times
    "bare_fields": [field.sql for field in _BARE],
    "bare_arrays": [f"p_{field.sql}" for field in _BARE],
    "bare_parameters": [f"p_{field.sql} {TYPES[field.kind]}[]" for field in _BARE],
    "bare_stored": [field.sql for field in _BARE if field.name not in ("task", *DEFAULTED)],
    "bare_as_put": [f"p_{field.sql}" if field in _BARE else "NULL" for field in PUT],
    # a batch of settlements
    "settle_fields": list(SETTLEMENT),
    "settle_arrays": [f"s_{name}" for name in SETTLEMENT],
    "settle_parameters": [f"s_{name} {TYPES[kind]}[]" for name, kind in SETTLEMENT.items()],
    # the lengths of slots, and for how long they are kept, in minutes
    "slot_lengths": [str(every) for every in SLOTS_KEPT],
    "slots_kept": [str(most) for most in SLOTS_KEPT.values()],
}

_STATES = {
    "queue": "CASE hold WHEN 3 THEN 'paused' ELSE 'queued' END",
    "leases": "'running'::text",
    "finished": "state::text",
}
_COMPUTED = {
    "touches": "coalesce(touches, 1)",
    "touched_at": "coalesce(touched_at, created_at)",
    "queue": f"CASE WHEN queue = '' THEN '{DEFAULT_QUEUE}' ELSE queue END",
}


def _viewed(field: fields.Field, table: str) -> str:
    """The expression of one column in the view of `table`."""
    name, kind = field.name, field.kind
    if name == "state":
        return f"{_STATES[table]} AS state"
    if name == "parked":
        return f"{'hold = 1' if table == 'queue' else 'false'} AS parked"
    if table[0] not in field.tables:
        return f"{'false' if kind == 'flag' else f'NULL::{TYPES[kind]}'} AS {name}"
    if name in _COMPUTED:
        return f"{_COMPUTED[name]} AS {name}"
    return f"{name}::text" if kind == "text" and field.tables != "qlf" else name


LISTS = _LISTS | {f"{table}_view": [_viewed(field, table) for field in _VIEWED] for table in _STATES}

RUN_COLUMNS = [*RunHead.__struct_fields__, "body"]
"""The columns of a run as clients read them, in the order of the fields of RunHead."""
assert all(name in BY_NAME for name in RUN_COLUMNS)


def written_out(text: str) -> str:
    """Replace each `{word}` in `text` by its value."""
    numbers = bounds.constants(bounds.POSTGRES)

    def word(found: re.Match[str]) -> str:
        alias, name = found.groups()
        if name.isupper():
            return numbers[name]
        return ", ".join(f"{alias}.{column}" if alias else column for column in LISTS[name])

    return re.sub(r"\{(?:(\w+)\.)?(\w+)\}", word, text)
