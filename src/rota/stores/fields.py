"""The fields of a run, of a put and of a settlement: each is said once here, and every store derives its own form.

From these tables come SQLite's column lists, the record of a run in Redis and the constants by which the Lua scripts
know it, and the column lists of PostgreSQL's functions and views. A new field of a run goes behind the others, with a
form letter of its own; then it needs a column in each SQL store (a migration) and the rule that uses it.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum
from operator import attrgetter
from typing import Any, Literal

from msgspec import Struct

from rota.domain.run import NewRun

Kind = Literal["text", "integer", "small", "big", "float", "flag", "bytes", "json", "list"]
"""How a value is kept. `json` is a value as JSON; `list` is a tuple, of which an empty one is kept as nothing."""
Written = Literal["put", "lease", "save", "end", "join"]
"""When SQLite writes a column: a put (for good), a claim (with the lease), a save, a save and an ending, a join."""


class Hold(IntEnum):
    """What holds a queued or paused run; a run that nothing holds stands in the due index, and only there a claim finds
    it.

    This is the coding of the column `hold` in PostgreSQL and SQLite (there, `state` says "paused"). Redis has it as the
    first letter of a record: q, k, w, p. In the domain these are `Run.parked`, `Run.needs` and `State.PAUSED`. A run
    that is paused keeps its needs; a run that has needs is not parked.
    """

    NONE = 0
    PARKED = 1
    """Its key is saturated: see stores/ledger/holds.py."""
    NEEDS = 2
    """It waits for the ends of others: see domain/needs.py."""
    PAUSED = 3


class Field(Struct, frozen=True):
    """A field of a run. `name` is the name in `domain.run` and of the column.

    `form` is the first form of a Redis record that has the field; "" if no form has it. `blank` is what Lua has for it
    in a run of an earlier form; "" if every form has the field. `tables` are PostgreSQL's, by first letter: queue,
    leases, finished. A `carried` field keeps its value when a run moves from one of these tables to another.
    """

    name: str
    kind: Kind
    form: str = ""
    blank: str = ""
    tables: str = "qlf"
    carried: bool = False
    written: Written = "put"


RUN = (
    Field("seq", "big", "p", carried=True),
    Field("created_at", "float", "p", carried=True),
    Field("due_at", "float", "p", "", written="save"),
    Field("expires_at", "float", "p", written="save"),
    Field("task", "text", "p", carried=True),
    Field("key", "text", "p", carried=True),
    Field("unique_key", "text", "p", carried=True),
    Field("writes_mark", "flag", "p", carried=True),
    Field("priority", "small", "p", carried=True),
    Field("body", "bytes", "p", carried=True),
    Field("fence", "integer", "x", "0", written="lease"),
    Field("failures", "integer", "x", "0", written="end"),
    Field("losses", "integer", "x", "0", written="end"),
    Field("needs", "list", "x", "false", carried=True, written="save"),
    Field("awaited", "flag", "x", "false", written="save"),
    Field("reason", "text", "x", "false", "f", written="end"),
    Field("note", "text", "x", "false", written="end"),
    Field("error", "json", "x", "false", written="end"),
    Field("finished_at", "float", "x", "false", "f", written="end"),
    Field("attempts", "json", "x", "false", written="end"),
    Field("progress", "json", "x", "false", written="end"),
    Field("saved", "bytes", "x", "false", written="end"),
    Field("result", "bytes", "x", "false", "f", written="end"),
    Field("asked", "text", "x", "false", ""),  # of an ended run: "cancel" or "pause", if its last lease was asked so
    Field("cooldowns", "list", "x", "false", carried=True),
    Field("touches", "integer", "y", "1", carried=True, written="join"),
    Field("touched_at", "float", "y", "false", carried=True, written="join"),
    # no part of a Redis record: the key, the first letter, or the lease says it
    Field("id", "text", carried=True),
    Field("state", "text", tables="f", written="end"),
    Field("parked", "flag", tables="", written="save"),
    Field("worker", "text", tables="l", written="save"),
    Field("claimed_at", "float", tables="l", written="lease"),
    Field("until", "float", tables="l", written="save"),
    Field("cancel_requested", "flag", tables="lf", written="save"),
    Field("pause_requested", "flag", tables="lf", written="save"),
)

BY_NAME = {field.name: field for field in RUN}
RECORD = tuple(field for field in RUN if field.form)
"""The fields of a Redis record, in the order in which it has them."""
FORMS = {form: sum(field.form <= form for field in RECORD) for form in sorted({field.form for field in RECORD})}
"""The forms of a Redis record, and how many fields each has. The form is the version of the record: a letter that this
version does not know was written by a newer one."""


class PutField(Struct, frozen=True):
    """A field of a run on its way into a store. `get` takes its value from a NewRun; a value that equals `default` is
    left out of what is sent.

    A `stored` field is kept as it comes. A `plain` one may be given for a run that PostgreSQL admits without a look at
    its guards. `column` is its name in SQL, where `name` is a word of SQL. Redis has `task`, `priority` and what its
    record has in the form "p" in one packed text, `tail`.
    """

    name: str
    kind: Kind
    get: Callable[[NewRun], Any]
    default: Any = None
    stored: bool = False
    plain: bool = False
    column: str = ""

    @property
    def sql(self) -> str:
        return self.column or self.name


PUT = (
    PutField("id", "text", attrgetter("id"), stored=True, plain=True),
    PutField("task", "text", attrgetter("task"), stored=True, plain=True),
    PutField("key", "text", attrgetter("key"), stored=True, plain=True),
    PutField("unique_key", "text", attrgetter("unique_key"), stored=True),
    PutField("writes_mark", "flag", attrgetter("writes_mark"), False, plain=True),
    PutField("priority", "small", attrgetter("priority"), 0, plain=True),
    PutField("delay", "float", attrgetter("delay"), 0.0, plain=True),
    PutField("at", "float", attrgetter("at"), plain=True),
    PutField("expires_after", "float", attrgetter("expires_after"), plain=True),
    PutField("expires_at", "float", attrgetter("expires_at"), plain=True),
    PutField("body", "bytes", attrgetter("body"), stored=True, plain=True),
    PutField("unique", "text", attrgetter("guards.unique"), column="uniqueness"),
    PutField("join", "text", attrgetter("guards.join"), "keep", column="meeting"),
    PutField("max_wait", "float", attrgetter("guards.max_wait")),
    PutField("cooldowns", "list", attrgetter("guards.cooldowns"), ()),
    PutField("max_pending", "integer", attrgetter("guards.max_pending")),
    PutField("needs", "list", attrgetter("needs"), ()),
    PutField("behind", "flag", attrgetter("guards.behind"), False),
    PutField("group", "text", attrgetter("group"), column="grp"),
)

KEPT = tuple(
    field for field in PUT if field.stored and field.name in BY_NAME and BY_NAME[field.name].form not in ("", "p")
)
"""What a put says that the form "p" of a Redis record has no place for."""

SETTLEMENT: dict[str, Kind] = {
    "id": "text",
    "fence": "integer",
    "worker": "text",
    "state": "text",
    "reason": "text",
    "result": "bytes",
    "delay": "float",
    "charge": "text",
    "error": "json",
    "attempt": "json",
    "lost": "flag",
    "called": "flag",
    "mark": "flag",
    "progress": "json",
    "saved": "bytes",
    "stops": "text",
}
"""The fields of a settlement, in the order in which each server takes them. Without a `state` it is a requeue."""

LEASE = ("fence", "worker", "n", "claimed_at", "until", "cancel", "pause")
"""The fields of a lease in Redis: who holds a running run, and what was asked of it since."""


def names(fields: Iterable[Field | PutField]) -> list[str]:
    return [field.name for field in fields]
