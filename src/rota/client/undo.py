"""Undo: take back a pause, a resume, a reschedule or a cancel, for a day.

An operation writes down each page of runs before it changes them. Such a record is a run of the task `rota.undo:`,
which never starts: every store can keep it, and it expires after a day. A single act is taken back by its audit entry.
"""

from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from rota.client.client import Client
from rota.client.fleet import UNDO_TASK
from rota.domain import codec
from rota.domain.decision import Reason
from rota.domain.ids import derived, fingerprint
from rota.domain.intake import retry_of
from rota.domain.policy import FAR, Policy
from rota.domain.run import NewRun, Origin, Run, State, after
from rota.domain.schedule import Schedule
from rota.domain.ticks import is_postponed, next_from
from rota.errors import NotUndoable
from rota.store import AuditEntry, Command, Edited, RowQuery, RunEdit, RunQuery, Scope

SECONDS = 24 * 3600.0
"""How long something can be undone."""
MOST = 10_000
"""An operation that changes more runs than this cannot be undone."""
RECORDS = 200
"""Records of one operation that an undo looks for; an operation makes a record for each page."""
UNDOABLE = ("pause", "resume", "reschedule", "cancel")
REVERSE = {"pause": Command.RESUME, "resume": Command.PAUSE}
INSTEAD = {
    "retry": "cancel the new runs",
    "delete": "what is deleted is gone",
    "undo": "act on the runs themselves",
}
"""What to do about actions that cannot be undone."""


class Record(Struct, frozen=True, kw_only=True):
    """The runs that a page of an operation is about to change, with their due times. `due_at`: the time that a
    reschedule gives them. `more`: the operation changes too many runs, and this is its last record."""

    action: str
    runs: tuple[tuple[str, float], ...] = ()
    due_at: float | None = None
    more: bool = False


class Records:
    """Writes the records of one operation."""

    def __init__(self, client: Client, operation: str, action: str, due_at: float | None) -> None:
        self._client = client
        self._operation = operation
        self._action = action
        self._due_at = due_at
        self._number = 0
        self._runs = 0

    async def keep(self, runs: Sequence[Run]) -> None:
        """Write down the runs that the operation is about to change."""
        if self._action not in UNDOABLE or self._runs > MOST:
            return
        changing = tuple((run.id, run.due_at) for run in runs if _changes(self._action, run))
        if not changing:
            return
        self._runs += len(changing)
        more = self._runs > MOST
        record = Record(action=self._action, runs=() if more else changing, due_at=self._due_at, more=more)
        args = msgspec.json.encode(record)
        # A record of an earlier call of this operation has the number already, if the call died: its runs stay written.
        while self._number < RECORDS and not await self._put(args):
            self._number += 1
        self._number += 1

    async def _put(self, args: bytes) -> bool:
        run = NewRun(
            id=_record_id(self._operation, self._number),
            fingerprint=fingerprint(UNDO_TASK, args),
            task=UNDO_TASK,
            body=codec.encode(args, Origin(), Policy()),
            delay=FAR,
            expires_at=await self._client.now() + SECONDS,
        )
        return (await (await self._client.store()).put([run])).items[0].reason is not Reason.ID_CONFLICT


def _changes(action: str, run: Run) -> bool:
    if action == "pause":
        return run.state is State.QUEUED or (run.state is State.RUNNING and not run.pause_requested)
    return run.state is (State.PAUSED if action == "resume" else State.QUEUED)


def _record_id(operation: str, number: int) -> str:
    return derived("undo", operation, str(number))


async def records_of(client: Client, operation: str) -> list[Record]:
    """Return what an operation wrote down; raise NotUndoable if it is too long ago, or if there were too many runs.

    A call that died in the middle of a page has written that page down, and so has the next call, with the runs that
    were left: each run is in its first record only, which knows its due time from before the operation.
    """
    page = await client.runs(RunQuery(ids=[_record_id(operation, number) for number in range(RECORDS)], limit=RECORDS))
    found = {run.id: run for run in page.runs if run.task == UNDO_TASK}
    if any(run.state.final or (run.expires_at or 0.0) <= page.now for run in found.values()):
        raise NotUndoable("it was done more than 24 hours ago")
    ordered = [found[id] for number in range(RECORDS) if (id := _record_id(operation, number)) in found]
    records = [msgspec.json.decode(run.args, type=Record) for run in ordered]
    if any(record.more for record in records):
        raise NotUndoable(f"it changed more than {MOST:,} runs")
    known = set[str]()
    for place, record in enumerate(records):
        records[place] = replace(record, runs=tuple(run for run in record.runs if run[0] not in known))
        known.update(id for id, _ in record.runs)
    return records


async def undo_page(client: Client, record: Record, note: str | None, by: str | None) -> int:
    """Change the runs of a record back, as far as nobody has changed them since. Return how many. Twice changes nothing
    more."""
    ids = [id for id, _ in record.runs]
    if record.action in REVERSE:
        return sum(map(bool, (await client.control(REVERSE[record.action], ids, note, by)).items))
    if record.action == "reschedule":
        return await _move_back(client, dict(record.runs), record.due_at, note, by)
    return await _put_again(client, ids)


async def _move_back(
    client: Client, before: dict[str, float], moved_to: float | None, note: str | None, by: str | None
) -> int:
    """Give runs their old due time, if they still wait for the time that they were moved to."""
    runs = (await client.runs(RunQuery(ids=list(before), limit=len(before)))).runs
    there = None if moved_to is None else after(moved_to, 0)
    same = [run for run in runs if run.state is State.QUEUED and run.due_at == there]
    edits = [RunEdit(run=run.id, due_at=before[run.id]) for run in same]
    if not edits:
        return 0
    return sum(answer is not Edited.STALE for answer in (await client.edit(edits, note, by)).items)


async def _put_again(client: Client, ids: Sequence[str]) -> int:
    """Put a new run for each run that was cancelled while it waited. Its id derives from the old one, so twice makes
    one; an equal run that came meanwhile keeps it out."""
    runs = (await client.runs(RunQuery(ids=list(ids), limit=len(ids)))).runs
    news = [replace(retry_of(run), at=run.due_at, expires_at=run.expires_at) for run in runs if was_waiting(run)]
    return sum(map(bool, (await client.put(news)).items)) if news else 0


def was_waiting(run: Run) -> bool:
    """Return whether the run was cancelled by a person while it waited: no handler was stopped."""
    stopped = bool(run.attempts) and run.attempts[-1].outcome == "cancelled"
    return run.state is State.CANCELLED and run.reason is Reason.CANCELLED and not stopped


# -- single acts ----------------------------------------------------------------------------------------------------


async def entry_of(client: Client, id: str) -> AuditEntry | None:
    """Return the audit entry with this id."""
    return next((entry for entry in (await client.rows(AuditEntry)).items if entry.id == id), None)


async def undo_entry(client: Client, entry: AuditEntry, note: str | None = None, by: str | None = None) -> int:
    """Take back what one act has changed, and return how much; raise NotUndoable with the reason if that cannot be."""
    scope, _, verb = entry.action.partition(".")
    reschedules = entry.action == "runs.edit" and len(entry.due_before) == len(entry.due_after) == len(entry.subjects)
    if verb not in UNDOABLE[:2] and entry.action != "runs.cancel" and not reschedules:
        what = "an edit of more than due times" if entry.action == "runs.edit" else entry.action
        raise NotUndoable(f"{what} cannot be undone{f': {INSTEAD[verb]}' if verb in INSTEAD else ''}")
    if scope not in tuple(Scope):
        raise NotUndoable(f"{entry.action} cannot be undone")
    if entry.result != "done" or not entry.changed:
        raise NotUndoable("it changed nothing")
    if entry.changed != entry.count or len(entry.subjects) != entry.count:
        raise NotUndoable(f"it changed {entry.changed} of {entry.count}, and which is not known")
    if await client.now() - entry.at > SECONDS:
        raise NotUndoable("it was done more than 24 hours ago")
    names = list(entry.subjects)
    if verb == "cancel":
        done = await _cancel_back(client, names)
    elif reschedules:
        moves = zip(names, entry.due_before, entry.due_after, strict=True)
        done = sum([await _move_back(client, {name: old}, new, note, by) for name, old, new in moves])
    else:
        done = sum(map(bool, (await client.control(REVERSE[verb], names, note, by, Scope(scope))).items))
        if not done and entry.action == "schedules.pause":
            done = await _move_forward(client, names)
    if not done:
        raise NotUndoable("what it changed has changed again since, or has started")
    return done


async def _move_forward(client: Client, ids: Sequence[str]) -> int:
    """End pauses that would have ended by themselves: such a schedule is not paused, its next tick is a later one."""
    reply = await client.rows(Schedule, RowQuery(names=ids, limit=len(ids)))
    ticks = [next_from(row, reply.now, "") for row in reply.items if not row.paused and is_postponed(row, reply.now)]
    fired = await client.fire([tick for tick in ticks if tick is not None], "schedules.resume")
    return sum(one.applied for one in fired.items)


async def _cancel_back(client: Client, ids: Sequence[str]) -> int:
    runs = (await client.runs(RunQuery(ids=list(ids), limit=len(ids)))).runs
    if runs and not any(map(was_waiting, runs)):
        raise NotUndoable("the run had started: retry it")
    return await _put_again(client, ids)
