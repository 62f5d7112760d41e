"""Runs as rows: every batch goes in as one JSON array and comes out as one, so a verb is a few statements."""

from typing import Any

import msgspec

from rota.domain import wire
from rota.domain.policy import Policy
from rota.domain.run import Origin, Run, Standing

_STANDING = """id, state, due_at, expires_at, fence, failures, losses, worker, claimed_at, until,
    json(iif(cancel_asked, 'true', 'false')), reason, note, json(error), finished_at, json(attempts)"""

STANDINGS = f"json_group_array(json_array({_STANDING}))"
RUNS = f"json_group_array(json_array(json_array({_STANDING}), task, key, priority, created_at, body, result))"


class StandingRow(Standing, frozen=True, array_like=True):
    """A Standing as the JSON array above; `result` comes last and is left out."""


class _RunRow(msgspec.Struct, frozen=True, array_like=True):
    standing: StandingRow
    task: str
    key: str | None
    priority: int
    created_at: float
    body: str
    result: str | None


_standings = msgspec.json.Decoder(list[StandingRow])
_runs = msgspec.json.Decoder(list[_RunRow])
_encoder = msgspec.json.Encoder()


def to_json(value: Any) -> str:
    return _encoder.encode(value).decode()


def read_standings(text: str) -> list[StandingRow]:
    return _standings.decode(text)


def read_runs(text: str) -> list[Run]:
    return [_run(row) for row in _runs.decode(text)]


def _run(row: _RunRow) -> Run:
    stands = row.standing
    body = wire.decode_or_blank(row.body)
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
        reason=stands.reason,
        note=stands.note,
        error=stands.error,
        finished_at=stands.finished_at,
        attempts=stands.attempts,
        result=None if row.result is None else row.result.encode(),
        task=row.task,
        key=row.key,
        priority=row.priority,
        created_at=row.created_at,
        args=bytes(body.args),
        origin=body.origin or Origin(),
        policy=body.policy or Policy(),
        wire=row.body.encode(),
    )


def settled_row(run: Standing) -> tuple[Any, ...]:
    """The columns that a settlement may change, in the order of SETTLE."""
    return (
        run.id,
        run.state,
        run.due_at,
        run.expires_at,
        run.failures,
        run.losses,
        run.reason,
        None if run.error is None else to_json(run.error),
        run.finished_at,
        to_json(run.attempts),
        None if run.result is None else run.result.decode(),
    )


SETTLE = """
UPDATE runs SET
    state = v.value ->> 1, due_at = v.value ->> 2, expires_at = v.value ->> 3,
    failures = v.value ->> 4, losses = v.value ->> 5, reason = v.value ->> 6, error = v.value ->> 7,
    finished_at = v.value ->> 8, attempts = v.value ->> 9, result = v.value ->> 10,
    worker = NULL, claim_n = NULL, claimed_at = NULL, until = NULL, offer_at = NULL
FROM json_each(?) AS v WHERE runs.id = v.value ->> 0
"""
