"""Runs as rows: every batch goes in as one JSON array and comes out as one, so a verb is a few statements."""

from typing import Any

import msgspec

from rota.domain import wire
from rota.domain.policy import Policy
from rota.domain.run import Origin, Run, Standing
from rota.domain.schedule import Schedule

_STANDING = """id, state, due_at, expires_at, fence, failures, losses, worker, claimed_at, until,
    json(iif(cancel_asked, 'true', 'false')), json(iif(pause_asked, 'true', 'false')),
    json(iif(parked = 1, 'true', 'false')), reason, note, json(error), finished_at, json(attempts), json(progress),
    task, key, unique_key, json(iif(marked, 'true', 'false')), priority, created_at,
    json(coalesce(needs, '[]')), json(iif(awaited, 'true', 'false')), json(coalesce(rest, '[]'))"""

STANDINGS = f"json_group_array(json_array({_STANDING}))"
RUNS = f"json_group_array(json_array(json_array({_STANDING}), body, result, saved))"


class StandingRow(Standing, frozen=True, array_like=True):
    """A Standing as the JSON array above; `result` and `saved` come last and are left out."""


class _RunRow(msgspec.Struct, frozen=True, array_like=True):
    standing: StandingRow
    body: str
    result: str | None
    saved: str | None


_standings = msgspec.json.Decoder(list[StandingRow])
_runs = msgspec.json.Decoder(list[_RunRow])
_named = msgspec.json.Decoder(list[tuple[str, str]])
_schedule_decoder = msgspec.json.Decoder(Schedule)
_encoder = msgspec.json.Encoder()


def to_json(value: Any) -> str:
    return _encoder.encode(value).decode()


def read_standings(text: str) -> list[StandingRow]:
    return _standings.decode(text)


def read_runs(text: str) -> list[Run]:
    return [_run(row) for row in _runs.decode(text)]


def read_schedules(text: str) -> list[tuple[str, Schedule | None]]:
    """By id; None for one that a newer version wrote and this one cannot read: it spoils no other."""
    return [(id, _schedule(body)) for id, body in _named.decode(text)]


def _schedule(body: str) -> Schedule | None:
    try:
        return _schedule_decoder.decode(body)
    except msgspec.DecodeError:
        return None


def _run(row: _RunRow) -> Run:
    body = wire.decode_or_blank(row.body)
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
        cancel_asked=stands.cancel_asked,
        pause_asked=stands.pause_asked,
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
        marked=stands.marked,
        priority=stands.priority,
        created_at=stands.created_at,
        needs=stands.needs,
        awaited=stands.awaited,
        rest=stands.rest,
        result=None if row.result is None else row.result.encode(),
        saved=None if row.saved is None else row.saved.encode(),
        args=bytes(body.args),
        origin=body.origin or Origin(),
        policy=body.policy or Policy(),
        member=body.member,
        wire=row.body.encode(),
    )


def saved_row(run: Standing) -> tuple[Any, ...]:
    """What may change of a run, in the order of SAVE."""
    return (
        run.id,
        run.state,
        run.due_at,
        run.expires_at,
        run.failures,
        run.losses,
        run.cancel_asked,
        run.pause_asked,
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
    losses = v.value ->> 5, cancel_asked = v.value ->> 6, pause_asked = v.value ->> 7, parked = v.value ->> 8,
    reason = v.value ->> 9, note = v.value ->> 10, error = v.value ->> 11, finished_at = v.value ->> 12,
    attempts = v.value ->> 13, progress = v.value ->> 14, saved = coalesce(v.value ->> 15, saved),
    result = coalesce(v.value ->> 16, result),
    worker = v.value ->> 17, until = v.value ->> 18, needs = v.value ->> 19, awaited = v.value ->> 20,
    claimed_at = iif(v.value ->> 17 IS NULL, NULL, claimed_at),
    claim_n = iif(v.value ->> 17 IS NULL, NULL, claim_n), offer_at = NULL
FROM json_each(?) AS v WHERE runs.id = v.value ->> 0
"""


def ended_row(run: Standing) -> tuple[Any, ...]:
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
