"""Runs as rows: every batch goes in as one JSON array and comes out as one, so a verb is a few statements."""

from functools import partial
from typing import Any

import msgspec

from rota.domain import codec
from rota.domain.policy import Policy
from rota.domain.run import Origin, Run, RunHead
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.store import Tally
from rota.stores.unreadable import legible

_HEAD = """id, state, due_at, expires_at, fence, failures, losses, worker, claimed_at, until,
    json(iif(cancel_requested, 'true', 'false')), json(iif(pause_requested, 'true', 'false')),
    json(iif(parked = 1, 'true', 'false')), reason, note, json(error), finished_at, json(attempts), json(progress),
    task, key, unique_key, json(iif(writes_mark, 'true', 'false')), priority, created_at,
    json(coalesce(needs, '[]')), json(iif(awaited, 'true', 'false')), json(coalesce(cooldowns, '[]')),
    touches, coalesce(touched_at, created_at)"""

STANDINGS = f"json_group_array(json_array({_HEAD}))"
RUNS = f"json_group_array(json_array(json_array({_HEAD}), body, result, saved))"


class StandingRow(RunHead, frozen=True, array_like=True):
    """A Standing as the JSON array above; `result` and `saved` come last and are left out."""


class _RunRow(msgspec.Struct, frozen=True, array_like=True):
    standing: StandingRow
    body: str
    result: str | None
    saved: str | None


_standings = msgspec.json.Decoder(list[StandingRow])
_runs = msgspec.json.Decoder(list[_RunRow])
_named = msgspec.json.Decoder(list[tuple[str, str]])
_charted = msgspec.json.Decoder(list[tuple[int, str, str]])
_tally_decoder = msgspec.json.Decoder(Tally)
_schedule_decoder = msgspec.json.Decoder(Schedule)
_spec_decoder = msgspec.json.Decoder(TaskSpec)
_encoder = msgspec.json.Encoder()


def to_json(value: Any) -> str:
    return _encoder.encode(value).decode()


def read_standings(text: str) -> list[StandingRow]:
    """All that can be read; the others are as good as unknown."""
    try:
        return _standings.decode(text)
    except msgspec.DecodeError:
        found = [legible("run", str(row[0]), partial(_a_standing, row)) for row in msgspec.json.decode(text)]
        return [standing for standing in found if standing is not None]


def _a_standing(row: object) -> StandingRow:
    return msgspec.convert(row, StandingRow)


def read_runs(text: str) -> tuple[list[Run], list[str]]:
    """The runs, and the ids of those that cannot be read."""
    try:
        return [_run(row) for row in _runs.decode(text)], []
    except msgspec.DecodeError:
        found = {str(row[0][0]): partial(_a_run, row) for row in msgspec.json.decode(text)}
        runs = {id: legible("run", id, read) for id, read in found.items()}
        return [run for run in runs.values() if run is not None], [id for id, run in runs.items() if run is None]


def _a_run(row: object) -> Run:
    return _run(msgspec.convert(row, _RunRow))


def read_schedules(text: str) -> list[tuple[str, Schedule | None]]:
    """By id; None for one that this version cannot read: it spoils no other."""
    rows = _named.decode(text)
    return [(id, legible("schedule", id, partial(_schedule_decoder.decode, body))) for id, body in rows]


def read_specs(text: str) -> list[TaskSpec]:
    """All that can be read, from pairs of a name and a spec."""
    found = [legible("spec", name, partial(_spec_decoder.decode, body)) for name, body in _named.decode(text)]
    return [spec for spec in found if spec is not None]


def read_tallies(text: str) -> list[tuple[int, Tally]]:
    """All that can be read, each with its minute."""
    found = [
        (minute, legible("row", f"tally {task} of minute {minute}", partial(_tally_decoder.decode, body)))
        for minute, task, body in _charted.decode(text)
    ]
    return [(minute, tally) for minute, tally in found if tally is not None]


def _run(row: _RunRow) -> Run:
    body = codec.decode_or_blank(row.body)
    stands = row.standing
    return Run(
        id=stands.id,
        state=stands.state,
        due_at=stands.due_at,
        expires_at=stands.expires_at,
        fence=stands.fence,
        failures=stands.failures,
        losses=stands.losses,
        worker=stands.worker,
        claimed_at=stands.claimed_at,
        until=stands.until,
        cancel_requested=stands.cancel_requested,
        pause_requested=stands.pause_requested,
        parked=stands.parked,
        reason=stands.reason,
        note=stands.note,
        error=stands.error,
        finished_at=stands.finished_at,
        attempts=stands.attempts,
        progress=stands.progress,
        task=stands.task,
        key=stands.key,
        unique_key=stands.unique_key,
        writes_mark=stands.writes_mark,
        priority=stands.priority,
        created_at=stands.created_at,
        needs=stands.needs,
        awaited=stands.awaited,
        cooldowns=stands.cooldowns,
        touches=stands.touches,
        touched_at=stands.touched_at,
        result=None if row.result is None else row.result.encode(),
        saved=None if row.saved is None else row.saved.encode(),
        args=bytes(body.args),
        origin=body.origin or Origin(),
        policy=body.policy or Policy(),
        member=body.member,
        body=row.body.encode(),
    )


def saved_row(run: RunHead) -> tuple[Any, ...]:
    """What may change of a run, in the order of SAVE."""
    return (
        run.id,
        run.state,
        run.due_at,
        run.expires_at,
        run.failures,
        run.losses,
        run.cancel_requested,
        run.pause_requested,
        2 if run.needs else int(run.parked),
        run.reason,
        run.note,
        None if run.error is None else to_json(run.error),
        run.finished_at,
        to_json(run.attempts),
        None if run.progress is None else to_json(run.progress),
        None if run.saved is None else run.saved.decode(),
        None if run.result is None else run.result.decode(),
        run.worker,
        run.until,
        to_json(run.needs) if run.needs else None,
        run.awaited,
    )


# A save never claims: it keeps a lease or ends it. Results and checkpoints were not read, so none erases them.
SAVE = """
UPDATE runs SET
    state = v.value ->> 1, due_at = v.value ->> 2, expires_at = v.value ->> 3, failures = v.value ->> 4,
    losses = v.value ->> 5, cancel_requested = v.value ->> 6, pause_requested = v.value ->> 7, parked = v.value ->> 8,
    reason = v.value ->> 9, note = v.value ->> 10, error = v.value ->> 11, finished_at = v.value ->> 12,
    attempts = v.value ->> 13, progress = v.value ->> 14, saved = coalesce(v.value ->> 15, saved),
    result = coalesce(v.value ->> 16, result),
    worker = v.value ->> 17, until = v.value ->> 18, needs = v.value ->> 19, awaited = v.value ->> 20,
    claimed_at = iif(v.value ->> 17 IS NULL, NULL, claimed_at),
    claim_n = iif(v.value ->> 17 IS NULL, NULL, claim_n), offer_at = NULL
FROM json_each(?) AS v WHERE runs.id = v.value ->> 0
"""


def ended_row(run: RunHead) -> tuple[Any, ...]:
    """What an ending changes of a run, in the order of END."""
    return (
        run.id,
        run.state,
        run.failures,
        run.losses,
        run.reason,
        None if run.error is None else to_json(run.error),
        run.finished_at,
        to_json(run.attempts),
        None if run.result is None else run.result.decode(),
        None if run.saved is None else run.saved.decode(),
        None if run.progress is None else to_json(run.progress),
        run.note,
    )


# Most saves are endings: with the columns that an ending leaves alone, they would cost twice as much.
END = """
UPDATE runs SET
    state = v.value ->> 1, failures = v.value ->> 2, losses = v.value ->> 3, reason = v.value ->> 4,
    error = v.value ->> 5, finished_at = v.value ->> 6, attempts = v.value ->> 7,
    result = coalesce(v.value ->> 8, result), saved = coalesce(v.value ->> 9, saved), progress = v.value ->> 10,
    note = v.value ->> 11, parked = 0, worker = NULL, claim_n = NULL, claimed_at = NULL, until = NULL, offer_at = NULL
FROM json_each(?) AS v WHERE runs.id = v.value ->> 0
"""
