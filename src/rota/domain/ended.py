"""Ended: what a callback is told of the run that ended, and the runs of callbacks."""

from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from rota.domain import codec
from rota.domain.decision import Reason
from rota.domain.failure import Failure
from rota.domain.ids import derived
from rota.domain.run import Callback, CallbackRun, NewRun, Origin, Run, State

ENDED = "ended"
"""The kind of origin of a callback's run, and the name of its stored argument."""


class Ended(Struct, frozen=True):
    """The end of a run, for `on_success=`, `on_failure=` and `on_cancel=`. `result` is its result as plain JSON values.

    If the run was deleted before its callback is called, `reason`, `error` and `result` are None.
    """

    id: str
    task: str
    key: str | None
    state: State
    reason: Reason | None = None
    error: Failure | None = None
    result: Any = None


def with_callbacks(run: NewRun, on_end: tuple[Callback, ...]) -> NewRun:
    """Return `run` with the callbacks `on_end`, whose runs get its headers."""
    headers = codec.decode(run.body).headers
    made: list[CallbackRun] = []
    for each in on_end:
        args = msgspec.json.encode({ENDED: Ended(run.id, run.task, run.key, each.state)})
        body = codec.encode(args, Origin(ENDED, run.id), each.policy, headers=headers)
        id = derived(ENDED, each.state, run.id)
        made.append(CallbackRun(each.state, id, each.task, body.decode(), each.priority, each.queue))
    return replace(run, body=codec.with_on_end(run.body, on_end), callbacks=tuple(made))


def ending_of(args: bytes, run: Run | None) -> Ended:
    """Return what a callback with the stored arguments `args` is called with. `run` is the run that ended; None if the
    store has deleted it."""
    known = msgspec.json.decode(args, type=dict[str, Ended])[ENDED]
    if run is None or run.state is not known.state:
        return known
    result = None if run.result is None else msgspec.json.decode(run.result)
    return Ended(run.id, run.task, run.key, run.state, run.reason, run.error, result)
