"""Operations: one action on all runs that a filter finds, page by page. See `app.runs` and `rota.operation`."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from rota.client.client import Client
from rota.client.edits import Changes
from rota.client.fleet import OPERATION_TASK
from rota.client.undo import INSTEAD, SECONDS, UNDOABLE, Records, entry_of, records_of, undo_entry, undo_page
from rota.domain.intake import retry_of
from rota.domain.run import Run, State
from rota.errors import InvalidOptions, NotUndoable, RunNotFound
from rota.store import Command, Count, Edited, Page, RunEdit, RunQuery
from rota.store.paging import count_runs

Action = Literal["retry", "cancel", "pause", "resume", "reschedule", "delete"]
ACTIONS: tuple[Action, ...] = get_args(Action)
OWN = "rota."
"""How the names of rota's own tasks begin. An operation leaves their runs alone, unless its filter names the task."""
OPERATION = OPERATION_TASK
"""The name of the built-in task that carries out operations."""
CHANGED = "changed"
"""Why a run is skipped that somebody or something else has changed meanwhile."""
PAGE = 500
"""Runs that an operation reads, changes and then notes as done."""

COMMANDS = {
    "cancel": Command.CANCEL,
    "pause": Command.PAUSE,
    "resume": Command.RESUME,
    "delete": Command.DELETE,
}
CONDITIONS = tuple(name for name in RunQuery.__struct_fields__ if name not in ("limit", "cursor", "brief"))
"""The fields of a filter: those of RunQuery that say which runs are found, and in which order."""


class Operation(Struct, frozen=True, kw_only=True):
    """What to do to the runs that `filter` finds. `due_at` is for reschedule: an instant by the store's clock. Runs
    that came after `asked_at` are left alone. `of` is for undo: the operation to undo."""

    action: Action | Literal["undo"]
    filter: dict[str, Any]
    due_at: float | None = None
    note: str | None = None
    by: str | None = None
    asked_at: float | None = None
    of: str | None = None

    @property
    def query(self) -> RunQuery:
        """The runs of the operation in the order of arrival: in this order, no run is met twice."""
        query = msgspec.convert(self.filter, RunQuery)
        return replace(query, state=query.states, order="created", limit=PAGE)


class Operated(Struct, frozen=True):
    """What an operation has done: `done` runs were changed; `skipped` runs could not be, because of their state.
    `skipped_by` counts these by the state in which they were met, or by the reason for which the store refused them;
    "changed" are those that changed meanwhile. A version of rota before this field counts without it."""

    done: int = 0
    skipped: int = 0
    skipped_by: dict[str, int] = {}

    def plus(self, met: int, skips: Counter[str]) -> "Operated":
        """Return the sum with `met` more runs, of which `skips` were skipped."""
        skipped = skips.total()
        return Operated(self.done + met - skipped, self.skipped + skipped, dict(Counter(self.skipped_by) + skips))


class Reached(Struct, frozen=True):
    """How far an operation has come: the cursor behind its last page."""

    cursor: str | None = None
    operated: Operated = Operated()
    ended: bool = False


def filter_of(query: RunQuery) -> dict[str, Any]:
    """Return the conditions of `query` as JSON values, without those that are not set."""
    blank, given = asdict(RunQuery()), asdict(query)
    found = {name: value for name, value in given.items() if value != blank[name] and name in CONDITIONS}
    return dict(msgspec.to_builtins(found))


def checked(query: RunQuery) -> RunQuery:
    """Return `query`, if it has a condition: nobody means to change all runs of a store."""
    if not filter_of(replace(query, order="created", by="created")):
        raise InvalidOptions(f"which runs? Name a condition, such as task=; there are: {', '.join(CONDITIONS)}")
    return query


async def perform(
    client: Client,
    operation: Operation,
    id: str,
    reached: Reached | None = None,
    note: Callable[[Reached], None] | None = None,
) -> Operated:
    """Carry out `operation` from where it was `reached`, and call `note` after each page. A page that is done again
    changes nothing more. `id` is the name by which the operation can be undone."""
    reached = reached or Reached()
    if operation.action == "undo":
        return await _undo(client, operation, reached, note)
    query = checked(operation.query)
    records = Records(client, id, operation.action, operation.due_at)
    if query.ids is not None:
        return await _perform_ids(client, operation, query, records, reached, note)
    while not reached.ended:
        page = await client.runs(replace(query, cursor=reached.cursor))
        operated = await _act(
            client, operation, page, records, reached.operated, any(task.startswith(OWN) for task in query.tasks)
        )
        reached = Reached(page.cursor, operated, page.cursor is None)
        if note is not None:
            note(reached)
    return reached.operated


async def _undo(
    client: Client, operation: Operation, reached: Reached, note: Callable[[Reached], None] | None
) -> Operated:
    """Undo another operation, record by record. The cursor is the number of records that are done."""
    records = await records_of(client, operation.of or "")
    for number in range(int(reached.cursor or 0), len(records)):
        done = await undo_page(client, records[number], operation.note, operation.by)
        met = len(records[number].runs)
        operated = reached.operated.plus(met, Counter({CHANGED: met - done}))
        reached = Reached(str(number + 1), operated, number + 1 == len(records))
        if note is not None:
            note(reached)
    return reached.operated


async def check_undoable(client: Client, id: str) -> None:
    """Raise NotUndoable with the reason, if the operation `id` cannot be undone; RunNotFound if nobody knows it."""
    page = await client.runs(RunQuery(ids=[id]))
    run = next((run for run in page.runs if run.task == OPERATION), None)
    if run is not None:
        action = msgspec.json.decode(run.args, type=Operation).action
        if action not in UNDOABLE:
            raise NotUndoable(f"{action} cannot be undone: {INSTEAD[action]}")
        if not run.state.final:
            raise NotUndoable("the operation has not ended: stop it first, or wait for its end")
    if await records_of(client, id):
        return
    if run is None:
        raise RunNotFound(f"nobody knows an operation or an audit entry {id[:100]}: `rota audit` lists the entries")
    old = page.now - run.created_at > SECONDS
    raise NotUndoable("it was done more than 24 hours ago" if old else "it changed nothing")


async def undo(client: Client, id: str, note: str | None = None, by: str | None = None) -> Operated:
    """Undo an operation, or what an audit entry tells of, here and now."""
    entry = await entry_of(client, id)
    if entry is not None:
        done = await undo_entry(client, entry, note, by)
        return Operated().plus(entry.count, Counter({CHANGED: entry.count - done}))
    await check_undoable(client, id)
    return await perform(client, Operation(action="undo", filter={}, note=note, by=by, of=id), id)


async def _perform_ids(
    client: Client,
    operation: Operation,
    query: RunQuery,
    records: Records,
    reached: Reached,
    note: Callable[[Reached], None] | None,
) -> Operated:
    """The same for given ids. The cursor is the number of ids that are done."""
    ids = list(query.ids or ())
    for first in range(int(reached.cursor or 0), len(ids), PAGE):
        page = await client.runs(replace(query, ids=ids[first : first + PAGE]))
        reached = Reached(str(first + PAGE), await _act(client, operation, page, records, reached.operated, True))
        if note is not None:
            note(reached)
    return reached.operated


async def _act(
    client: Client, operation: Operation, page: Page, records: Records, before: Operated, own: bool
) -> Operated:
    """Change the runs of one page. Runs of rota's own tasks are left alone, unless the filter names them (`own`)."""
    last = operation.asked_at
    runs = [
        run for run in page.runs if (own or not run.task.startswith(OWN)) and (last is None or run.created_at <= last)
    ]
    if not runs:
        return before
    await records.keep(runs)
    if operation.action == "retry":
        skips = await _retry(client, runs)
    elif operation.action == "reschedule":
        skips = await _reschedule(client, operation, runs)
    else:
        skips = await _control(client, operation, runs)
    return before.plus(len(runs), skips)


async def _control(client: Client, operation: Operation, runs: Sequence[Run]) -> Counter[str]:
    """Send the command of the operation. Return the states of the runs that it did not change; so do the next two."""
    ids = [run.id for run in runs]
    reply = await client.control(COMMANDS[str(operation.action)], ids, operation.note, operation.by)
    if operation.action == "cancel":
        await client.ended_here([id for id, changed in zip(ids, reply.items, strict=True) if changed])
    return Counter(str(run.state) for run, changed in zip(runs, reply.items, strict=True) if not changed)


async def _retry(client: Client, runs: Sequence[Run]) -> Counter[str]:
    """Put the runs that have ended again. The id of a retry follows from that of its run: twice makes one."""
    news = [retry_of(run) for run in runs if run.state.final]
    decisions = (await client.put(news)).items if news else ()
    skips = Counter(str(run.state) for run in runs if not run.state.final)
    return skips + Counter(str(decision.reason) for decision in decisions if not decision)


async def _reschedule(client: Client, operation: Operation, runs: Sequence[Run]) -> Counter[str]:
    edits = [RunEdit(run=run.id, due_at=operation.due_at) for run in runs if run.state is State.QUEUED]
    answers = (await client.edit(edits, operation.note, operation.by)).items if edits else ()
    skips = Counter(str(run.state) for run in runs if run.state is not State.QUEUED)
    return skips + Counter(CHANGED for answer in answers if answer is Edited.STALE)


async def due_at(client: Client, changes: Changes) -> float:
    """Return the instant of a reschedule: by the store's clock, and the same however late a page is reached."""
    changes.check()
    now = await client.now()
    found = changes.edit(Run(""), now).due_at
    return now if found is None else found


async def progress_words(client: Client, query: RunQuery) -> Callable[[Reached], tuple[float, str]]:
    """Return a function that says how much of an operation is done: a share and a sentence."""
    total = Count(0, False) if not filter_of(query) else await count_runs(client, query)

    def words(reached: Reached) -> tuple[float, str]:
        seen = reached.operated.done + reached.operated.skipped
        of = f"more than {total.count:,}" if total.more else f"{total.count:,}"
        share = 1.0 if reached.ended else min(0.99, seen / max(total.count, 1))
        return share, f"{reached.operated.done:,} done and {reached.operated.skipped:,} skipped of {of} runs"

    return words
