"""Operations: what one would do to the runs that a filter finds, and how far one has come."""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from rota.client.operations import OWN, Operated, Operation, Reached
from rota.client.undo import SECONDS, UNDOABLE
from rota.domain.run import Run
from rota.store import Reads, RunQuery
from rota.store.paging import COUNT_PAGE, COUNT_SECONDS, pages
from rota.views.values import Record, from_json, iso, plain_value

SAMPLE = 20


class Matched(Struct, frozen=True):
    """The runs that an operation would meet. `more`: there are more than `count`, or there may be."""

    count: int
    more: bool
    sample: Sequence[Run]
    by_task: dict[str, int]
    by_state: dict[str, int]


class OperationView(Struct, frozen=True, kw_only=True):
    """An operation. `done` runs were changed; `skipped` runs could not be, because of their state, and `skipped_by`
    counts them by it, or by the reason of a refusal. `undo_until`: how long it can be undone. `of`: of an undo, what it
    undoes."""

    id: str
    action: str
    filter: object
    due_at: str | None
    note: str | None
    by: str | None
    state: str
    created_at: str
    finished_at: str | None
    progress: object
    done: int
    skipped: int
    skipped_by: dict[str, int]
    error: str | None
    of: str | None
    undo_until: str | None


async def matched(store: Reads, query: RunQuery, at_most: int) -> Matched:
    """Count the runs of `query` up to `at_most`. Runs of rota's own tasks count only if the query names the task."""
    own = query.ids is not None or any(task.startswith(OWN) for task in query.tasks)
    tasks, states = Counter[str](), Counter[str]()
    sample: list[Run] = []
    more, begun = False, time.monotonic()
    async with aclosing(pages(store, replace(query, limit=COUNT_PAGE, cursor=None))) as read:
        async for page in read:
            runs = [run for run in page.runs if own or not run.task.startswith(OWN)]
            left = at_most - tasks.total()
            sample += runs[: SAMPLE - len(sample)]
            tasks.update(run.task for run in runs[:left])
            states.update(str(run.state) for run in runs[:left])
            late = page.searched_back_to is not None and time.monotonic() - begun > COUNT_SECONDS
            more = len(runs) > left or (page.cursor is not None and (tasks.total() >= at_most or late))
            if more:
                break
    return Matched(tasks.total(), more, sample, dict(tasks.most_common()), dict(states.most_common()))


def operation_of(run: Run) -> Operation | None:
    """Return what a run of `rota.operation` does; None if its arguments cannot be read."""
    try:
        return msgspec.json.decode(run.args, type=Operation)
    except (msgspec.DecodeError, ValueError):
        return None


def operation_view(run: Run) -> Record:
    asked, reached = operation_of(run), _operated(run)
    return msgspec.structs.asdict(
        OperationView(
            id=run.id,
            action="unknown" if asked is None else asked.action,
            filter=from_json(run.args) if asked is None else asked.filter,
            due_at=None if asked is None else iso(asked.due_at),
            note=None if asked is None else asked.note,
            by=None if asked is None else asked.by,
            state=str(run.state),
            created_at=iso(run.created_at),
            finished_at=iso(run.finished_at),
            progress=plain_value("progress", run.progress),
            done=reached.done,
            skipped=reached.skipped,
            skipped_by=reached.skipped_by,
            error=None if run.error is None else str(run.error),
            of=None if asked is None else asked.of,
            undo_until=iso(run.created_at + SECONDS) if asked is not None and asked.action in UNDOABLE else None,
        )
    )


def _operated(run: Run) -> Operated:
    """Return what is done so far: the result, else what the last checkpoint says."""
    try:
        if run.result is not None:
            return msgspec.json.decode(run.result, type=Operated)
        if run.saved is not None:
            return msgspec.json.decode(run.saved, type=Reached).operated
    except (msgspec.DecodeError, ValueError):
        pass
    return Operated()
