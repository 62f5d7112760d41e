"""Rows of the database as runs, schedules, specs and tallies."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from rota.domain import codec
from rota.domain.decision import Reason
from rota.domain.guards import Cooldown
from rota.domain.policy import Policy
from rota.domain.run import Attempt, Failure, Origin, Progress, Run, State
from rota.domain.schedule import Firing, Schedule
from rota.domain.spec import TaskSpec
from rota.store import ENDINGS, EventPage, Handed, Tally
from rota.stores.events import EventRow, event_of, gap
from rota.stores.fields import BY_NAME, Kind
from rota.stores.postgres import words
from rota.stores.postgres.columns import SCHEDULE_STATE
from rota.stores.postgres.driver import Record
from rota.stores.unreadable import legible

_attempts = msgspec.json.Decoder(tuple[Attempt, ...])
_failure = msgspec.json.Decoder(Failure)
_progress = msgspec.json.Decoder(Progress)
_cooldowns = msgspec.json.Decoder(tuple[Cooldown, ...])
_spec = msgspec.json.Decoder(TaskSpec)
_message = msgspec.json.Decoder(dict[str, Any])
_events = msgspec.json.Decoder(list[tuple[int, EventRow]])
_states = {state.value: state for state in State}
_ORIGIN, _POLICY = Origin(), Policy()

_ScheduleState = tuple[float | None, float | None, float | None, int, float, bool, str | None, int]
_schedule = msgspec.json.Decoder(tuple[Schedule, _ScheduleState, tuple[Firing, ...]])

RUN_COLUMNS = ", ".join(words.RUN_COLUMNS)
_READERS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "state": (_states.__getitem__, None),
    "reason": (Reason, None),
    "error": (_failure.decode, None),
    "attempts": (lambda texts: _attempts.decode("[" + ",".join(texts) + "]"), ()),
    "progress": (_progress.decode, None),
    "needs": (tuple[str, ...], ()),
    "cooldowns": (_cooldowns.decode, ()),
}
_READ = [(words.RUN_COLUMNS.index(name), read, blank) for name, (read, blank) in _READERS.items()]
"""Columns that are not the value of their field: the position, the function that reads it, and what NULL means."""


def read_run(row: Iterable[Any]) -> Run:
    """Read a row of RUN_COLUMNS, by position: by name it would take nearly twice the time."""
    *values, body = row
    for place, read, blank in _READ:
        values[place] = blank if values[place] is None else read(values[place])
    known = codec.decode_or_blank(body)
    values += (bytes(known.args), known.origin or _ORIGIN, known.policy or _POLICY, known.member, body)
    values += (known.headers or {}, known.on_end, known.unique_in)
    return Run(*values)


_FROM_JSON: dict[Kind, Callable[[Any], Any]] = {"bytes": lambda text: bytes.fromhex(text[2:]), "float": float}
"""How a value in JSON becomes the value that the driver returns; the other kinds are the same."""


def read_handed(text: str) -> Handed | None:
    """Read the message of the function `hand_over`. None if it cannot be read: the worker's next claim returns the
    run."""
    try:
        message = _message.decode(text)
        row = message["run"] | message["lease"]
        values = [
            None if (value := row.get(name)) is None else _FROM_JSON.get(BY_NAME[name].kind, _as_it_is)(value)
            for name in words.RUN_COLUMNS
        ]
        worker, token, run = message["worker"], message["token"], legible("run", row["id"], lambda: read_run(values))
    except (msgspec.DecodeError, ValueError, LookupError, TypeError):
        return None
    return None if run is None else Handed(workers=frozenset((worker,)), worker=worker, token=token, run=run)


def _as_it_is(value: Any) -> Any:
    return value


def read_schedule(text: str) -> Schedule:
    """Read what the function `as_json` made of a row: the declaration, the state, the last firings."""
    declared, state, recent = _schedule.decode(text)
    return msgspec.structs.replace(declared, **dict(zip(SCHEDULE_STATE, (*state, recent), strict=True)))


def read_spec(row: Record) -> TaskSpec:
    state = {"paused": row["paused"], "paused_keys": tuple(row["paused_keys"]), "paused_until": row["until"]}
    overrides = None if row["overrides"] is None else _spec.decode(row["overrides"]).overrides
    return msgspec.structs.replace(_spec.decode(row["spec"]), **state, overrides=overrides)


def read_events(row: Record) -> EventPage:
    """Read the answer of the function `read_events`."""
    rows = _events.decode(row["page"]) if row["page"] else []
    events = [event_of(event, str(number)) for number, event in rows]
    if row["missing"]:
        events.insert(0, gap(row["now"], str(row["gone"])))
    return EventPage(row["now"], events, str(row["last"]))


def read_tally(row: Record) -> Tally:
    counts = dict(zip((*ENDINGS, "waited", "ran"), row["counts"], strict=True))
    waits, durations = _counts(row["waits"]), _counts(row["durations"])
    return Tally(row["task"], origin=row["origin"], waits=waits, durations=durations, **counts)


def _counts(dense: list[int]) -> dict[int, int]:
    return {bucket: count for bucket, count in enumerate(dense) if count}
