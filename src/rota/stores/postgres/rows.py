"""What comes out of the store: records as runs, schedules and counts."""

from collections.abc import Mapping
from typing import Any

import msgspec

from rota.domain import wire
from rota.domain.decision import Reason
from rota.domain.policy import Policy
from rota.domain.run import Attempt, Failure, Origin, Progress, Run, State
from rota.domain.schedule import Firing, Schedule
from rota.domain.spec import TaskSpec
from rota.store import Tally

_attempts = msgspec.json.Decoder(tuple[Attempt, ...])
_failure = msgspec.json.Decoder(Failure)
_progress = msgspec.json.Decoder(Progress)
_spec = msgspec.json.Decoder(TaskSpec)
_states = {state.value: state for state in State}

_Standing = tuple[float | None, float | None, float | None, int, float, bool, str | None]
_schedule = msgspec.json.Decoder(tuple[Schedule, _Standing, tuple[Firing, ...]])


def read_run(row: Mapping[str, Any]) -> Run:
    """One row of the view `runs`."""
    body = wire.decode_or_blank(row["body"])
    attempts, error, progress, reason = row["attempts"], row["error"], row["progress"], row["reason"]
    return Run(
        id=row["id"],
        state=_states[row["state"]],
        due_at=row["due_at"],
        expires_at=row["expires_at"],
        fence=row["fence"],
        failures=row["failures"],
        losses=row["losses"],
        worker=row["worker"],
        claimed_at=row["claimed_at"],
        until=row["until"],
        cancel_asked=row["cancel_asked"],
        pause_asked=row["pause_asked"],
        parked=row["parked"],
        reason=None if reason is None else Reason(reason),
        note=row["note"],
        error=None if error is None else _failure.decode(error),
        finished_at=row["finished_at"],
        attempts=() if attempts is None else _attempts.decode("[" + ",".join(attempts) + "]"),
        progress=None if progress is None else _progress.decode(progress),
        task=row["task"],
        key=row["key"],
        unique_key=row["unique_key"],
        marked=row["marked"],
        priority=row["priority"],
        created_at=row["created_at"],
        needs=tuple(row["needs"] or ()),
        awaited=row["awaited"],
        result=row["result"],
        saved=row["saved"],
        args=bytes(body.args),
        origin=body.origin or Origin(),
        policy=body.policy or Policy(),
        wire=row["body"],
    )


def read_schedule(text: str) -> Schedule:
    """What `as_json` made of a row: the declaration, where it stands, its last outcomes."""
    declared, standing, recent = _schedule.decode(text)
    anchor, next_at, fires_at, version, since, paused, note = standing
    return msgspec.structs.replace(
        declared,
        anchor=anchor,
        next_at=next_at,
        fires_at=fires_at,
        version=version,
        since=since,
        paused=paused,
        note=note,
        recent=recent,
    )


def read_spec(text: str, paused: bool) -> TaskSpec:
    spec = _spec.decode(text)
    return msgspec.structs.replace(spec, paused=True) if paused else spec


def read_tally(row: Mapping[str, Any]) -> Tally:
    succeeded, failed, retried, other = row["counts"]
    return Tally(row["task"], succeeded, failed, retried, other, _counts(row["waits"]), _counts(row["durations"]))


def _counts(dense: list[int]) -> dict[int, int]:
    return {bucket: count for bucket, count in enumerate(dense) if count}
