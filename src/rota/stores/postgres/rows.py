"""What comes out of the store: records as runs, schedules and counts."""

from collections.abc import Iterable
from typing import Any

import msgspec

from rota.domain import codec
from rota.domain.decision import Reason
from rota.domain.guards import Cooldown
from rota.domain.policy import Policy
from rota.domain.run import Attempt, Failure, Origin, Progress, Run, State
from rota.domain.schedule import Firing, Schedule
from rota.domain.spec import TaskSpec
from rota.store import Tally
from rota.stores.postgres.driver import Record

_attempts = msgspec.json.Decoder(tuple[Attempt, ...])
_failure = msgspec.json.Decoder(Failure)
_progress = msgspec.json.Decoder(Progress)
_cooldowns = msgspec.json.Decoder(tuple[Cooldown, ...])
_spec = msgspec.json.Decoder(TaskSpec)
_states = {state.value: state for state in State}
_ORIGIN, _POLICY = Origin(), Policy()

_ScheduleState = tuple[float | None, float | None, float | None, int, float, bool, str | None]
_schedule = msgspec.json.Decoder(tuple[Schedule, _ScheduleState, tuple[Firing, ...]])

RUN_COLUMNS = (
    "id, state, due_at, expires_at, fence, failures, losses, worker, claimed_at, until, cancel_requested, "
    "pause_requested, parked, reason, note, error, finished_at, attempts, progress, task, key, unique_key, "
    "writes_mark, priority, created_at, needs, awaited, cooldowns, result, saved, body, touches, touched_at"
)
"""Of the views of runs, in the order in which `read_run` takes them."""


def read_run(row: Iterable[Any]) -> Run:
    """A row of RUN_COLUMNS, by place: names would take 7.5 µs a run instead of 4.4."""
    (
        id,
        state,
        due_at,
        expires_at,
        fence,
        failures,
        losses,
        worker,
        claimed_at,
        until,
        cancel_requested,
        pause_requested,
        parked,
        reason,
        note,
        error,
        finished_at,
        attempts,
        progress,
        task,
        key,
        unique_key,
        writes_mark,
        priority,
        created_at,
        needs,
        awaited,
        cooldowns,
        result,
        saved,
        body,
        touches,
        touched_at,
    ) = row
    known = codec.decode_or_blank(body)
    return Run(
        id,
        _states[state],
        due_at,
        expires_at,
        fence,
        failures,
        losses,
        worker,
        claimed_at,
        until,
        cancel_requested,
        pause_requested,
        parked,
        None if reason is None else Reason(reason),
        note,
        None if error is None else _failure.decode(error),
        finished_at,
        () if attempts is None else _attempts.decode("[" + ",".join(attempts) + "]"),
        None if progress is None else _progress.decode(progress),
        task,
        key,
        unique_key,
        writes_mark,
        priority,
        created_at,
        () if needs is None else tuple(needs),
        awaited,
        () if cooldowns is None else _cooldowns.decode(cooldowns),
        touches,
        touched_at,
        result,
        saved,
        bytes(known.args),
        known.origin or _ORIGIN,
        known.policy or _POLICY,
        known.member,
        body,
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


def read_tally(row: Record) -> Tally:
    succeeded, failed, retried, other = row["counts"]
    return Tally(row["task"], succeeded, failed, retried, other, _counts(row["waits"]), _counts(row["durations"]))


def _counts(dense: list[int]) -> dict[int, int]:
    return {bucket: count for bucket, count in enumerate(dense) if count}
