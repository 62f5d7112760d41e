"""The fields of a run, of a put and of a settlement. Each field is listed here once; the stores derive their forms.

These tables give the column lists of SQLite, the record of a run in Redis with the constants that the Lua scripts use
for it, and the column lists of PostgreSQL's functions and views. Append a new field of a run after the others, also
if no Redis record has it: the views of PostgreSQL keep their order. Its form is the next letter. The field also needs a
column in each SQL store (a migration) and the rule that uses it.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum
from operator import attrgetter
from typing import Any, Literal

from msgspec import Struct

from rota.domain.run import DEFAULT_QUEUE, NewRun
from rota.domain.settlement import Charge, Finish, Requeue, Settlement

Kind = Literal["text", "integer", "small", "big", "float", "flag", "bytes", "json", "list"]
"""How a value is stored. `json` is a value as JSON; `list` is a tuple, and an empty tuple is stored as nothing."""
Written = Literal["put", "lease", "save", "end", "join"]
"""When SQLite writes a column: put: only then; lease: at a claim; save: at a save; end: at a save and at an ending;
join: at a join."""


class Hold(IntEnum):
    """What keeps a queued or paused run from being claimed. A queued run without a hold is in the due index; claims
    search only there.

    These are the values of the column `hold` in PostgreSQL and SQLite (in SQLite, `state` says "paused"). Redis has the
    hold as the first letter of a record: q, k, w, p. In the domain the holds are `Run.parked`, `Run.needs` and
    `State.PAUSED`. A paused run keeps its needs; a run that has needs is not parked.
    """

    NONE = 0
    PARKED = 1
    """The limit or the rate of its key is used up: see stores/ledger/holds.py."""
    NEEDS = 2
    """The run waits for the ends of other runs: see domain/needs.py."""
    PAUSED = 3


class Field(Struct, frozen=True):
    """A field of a run. `name` is the name of the field in `domain.run` and of the column.

    `form` is the first form of a Redis record that has the field; "" if no form has it. `blank` is the value that Lua
    uses for a record of an earlier form; "" if every form has the field. `tables` are PostgreSQL's, by first letter:
    queue, leases, finished. A `carried` field keeps its value when a run moves from one of these tables to another.
    """

    name: str
    kind: Kind
    form: str = ""
    blank: str = ""
    tables: str = "qlf"
    carried: bool = False
    written: Written = "put"


RUN = (
    Field("seq", "big", "a", carried=True),
    Field("created_at", "float", "a", carried=True),
    Field("due_at", "float", "a", "", written="save"),
    Field("expires_at", "float", "a", written="save"),
    Field("task", "text", "a", carried=True),
    Field("key", "text", "a", carried=True),
    Field("unique_key", "text", "a", carried=True),
    Field("writes_mark", "flag", "a", carried=True),
    Field("priority", "small", "a", carried=True),
    Field("body", "bytes", "a", carried=True),
    Field("fence", "integer", "b", "0", written="lease"),
    Field("failures", "integer", "b", "0", written="end"),
    Field("losses", "integer", "b", "0", written="end"),
    Field("needs", "list", "b", "false", carried=True, written="save"),
    Field("awaited", "flag", "b", "false", written="save"),
    Field("reason", "text", "b", "false", "f", written="end"),
    Field("note", "text", "b", "false", written="end"),
    Field("error", "json", "b", "false", written="end"),
    Field("finished_at", "float", "b", "false", "f", written="end"),
    Field("attempts", "json", "b", "false", written="end"),
    Field("progress", "json", "b", "false", written="end"),
    Field("saved", "bytes", "b", "false", written="end"),
    Field("result", "bytes", "b", "false", "f", written="end"),
    Field("command", "text", "b", "false", ""),  # of an ended run: "cancel" or "pause", if its last lease had it
    Field("cooldowns", "list", "b", "false", carried=True),
    Field("touches", "integer", "c", "1", carried=True, written="join"),
    Field("touched_at", "float", "c", "false", carried=True, written="join"),
    # in no Redis record: these come from the Redis key, from the first letter of the record, or from the lease
    Field("id", "text", carried=True),
    Field("state", "text", tables="f", written="end"),
    Field("parked", "flag", tables="", written="save"),
    Field("worker", "text", tables="l", written="save"),
    Field("claimed_at", "float", tables="l", written="lease"),
    Field("until", "float", tables="l", written="save"),
    Field("cancel_requested", "flag", tables="lf", written="save"),
    Field("pause_requested", "flag", tables="lf", written="save"),
    Field("queue", "text", "d", "false", carried=True),
    Field("share", "text", "d", "false", carried=True),
)


def kept_queue(queue: str) -> str:
    """Return the name of a queue as SQL stores keep it: nothing for the default queue, so that it takes no room."""
    return "" if queue == DEFAULT_QUEUE else queue


BY_NAME = {field.name: field for field in RUN}
RECORD = tuple(field for field in RUN if field.form)
"""The fields of a Redis record, in their order."""
FORMS = {form: sum(field.form <= form for field in RECORD) for form in sorted({field.form for field in RECORD})}
"""The forms of a Redis record, and how many fields each has. The form is the version of the record: a newer version of
rota wrote a record whose letter is not here."""


class PutField(Struct, frozen=True):
    """A field of a put. `get` reads the value from a NewRun; a value that equals `default` is not sent.

    A `stored` field is stored unchanged. PostgreSQL admits a run that has only `plain` fields without a check of its
    guards. `column` is the name of the field in SQL, if `name` is a keyword of SQL. Redis gets `task`, `priority` and
    the fields of the form "a" as one packed text, `tail`.
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
    PutField("queue", "text", attrgetter("queue"), DEFAULT_QUEUE, plain=True),
    PutField("fingerprint", "text", attrgetter("fingerprint")),
    PutField("callbacks", "list", attrgetter("callbacks"), ()),
    PutField("share", "text", attrgetter("share"), plain=True),
    PutField("unique_row", "text", attrgetter("unique_row")),
    PutField("within", "float", attrgetter("guards.within")),
    PutField("sliding", "flag", attrgetter("guards.sliding"), False),
)

TIMES = ("delay", "at", "expires_after", "expires_at")
"""The fields of a put that say when. A run without them is due at once."""

KEPT = tuple(
    field for field in PUT if field.stored and field.name in BY_NAME and BY_NAME[field.name].form not in ("", "a")
)
"""The stored fields of a put that the form "a" of a Redis record does not have."""


class SettlementField(Struct, frozen=True):
    """A field of a settlement. `get` reads the value from a Settlement; `default` is the most frequent value."""

    name: str
    kind: Kind
    get: Callable[[Settlement], Any]
    default: Any = None


def _of_finish(name: str) -> Callable[[Settlement], Any]:
    return lambda settlement: getattr(settlement.action, name) if isinstance(settlement.action, Finish) else None


def _of_note(name: str) -> Callable[[Settlement], Any]:
    return lambda settlement: settlement.note and getattr(settlement.note, name)


def _attempt(settlement: Settlement) -> tuple[object, ...]:
    """Return what the worker knows of an attempt. Most have neither log nor trace, and take no room
    for them."""
    known = settlement.seconds, settlement.error, settlement.warnings
    return (*known, settlement.log, settlement.trace) if settlement.log or settlement.trace else known


SETTLEMENT_FIELDS = (
    SettlementField("id", "text", attrgetter("run")),
    SettlementField("fence", "integer", attrgetter("fence")),
    SettlementField("worker", "text", attrgetter("worker")),
    SettlementField("state", "text", _of_finish("state")),
    SettlementField("reason", "text", _of_finish("reason")),
    SettlementField("result", "bytes", _of_finish("result")),
    SettlementField("delay", "float", lambda s: s.action.delay if isinstance(s.action, Requeue) else 0.0, 0.0),
    SettlementField("charge", "text", attrgetter("charge"), Charge.NONE),
    SettlementField("error", "json", attrgetter("error")),
    SettlementField("attempt", "json", _attempt),
    SettlementField("lost", "flag", attrgetter("lost"), False),
    SettlementField("called", "flag", attrgetter("called"), True),
    SettlementField("mark", "flag", attrgetter("mark"), True),
    SettlementField("progress", "json", _of_note("progress")),
    SettlementField("saved", "bytes", _of_note("saved")),
    SettlementField("stops", "text", attrgetter("stops")),
)
"""The fields of a settlement, in the order in which Redis and PostgreSQL get them. A settlement without a `state` is a
requeue. `attempt` is what the worker knows of the attempt; each store writes it in its own form."""
SETTLEMENT: dict[str, Kind] = {field.name: field.kind for field in SETTLEMENT_FIELDS}

LEASE = ("fence", "worker", "n", "claimed_at", "until", "cancel", "pause", "limits")
"""The fields of a lease in Redis: the claim that took the run, the commands that the run got since, and the rows of the
named limits that the lease counts against; most leases have none and end before."""


def names(fields: Iterable[Field | PutField]) -> list[str]:
    return [field.name for field in fields]
