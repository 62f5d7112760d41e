"""Impossible names: names that nothing in a store can have. Queries drop them, so that no driver gets them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from rota.domain.edits import RunEdit
from rota.store import Reply, RowQuery, RunQuery

T = TypeVar("T")
Send = Callable[[Sequence[str]], Awaitable[Reply[T]]]


def is_possible(name: str) -> bool:
    """A text of PostgreSQL cannot have a NUL, and a lone surrogate has no UTF-8 form."""
    if "\x00" in name:
        return False
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)


def possible_runs(query: RunQuery) -> RunQuery:
    """Return `query` without impossible ids; if another name in it is impossible, a query that finds nothing."""
    if not all(map(is_possible, query.names)):
        return RunQuery(ids=())
    if query.ids is None or all(map(is_possible, query.ids)):
        return query
    return replace(query, ids=[id for id in query.ids if is_possible(id)])


def possible_rows(query: RowQuery) -> RowQuery:
    """Return `query` without impossible names; if its task or key is impossible, a query that finds nothing."""
    if not all(is_possible(name) for name in (query.task, query.key) if name is not None):
        return RowQuery(limit=0)
    if query.names is None or all(map(is_possible, query.names)):
        return query
    return replace(query, names=[name for name in query.names if is_possible(name)])


def possible_edit(edit: RunEdit) -> RunEdit:
    """Return `edit`; if no run can have its id, an edit of a run that does not exist."""
    return edit if is_possible(edit.run) else replace(edit, run="")


async def control_possible(names: Sequence[str], control: Send[int]) -> Reply[int]:
    """Call `control` with the possible names. The answer for an impossible name is 0: nothing was changed."""
    return await _possible(names, control, 0)


async def direct_possible(workers: Sequence[str], direct: Send[bool]) -> Reply[bool]:
    """Call `direct` with the possible names. The answer for an impossible name is False."""
    return await _possible(workers, direct, False)


async def _possible(names: Sequence[str], send: Send[T], nothing: T) -> Reply[T]:
    if all(map(is_possible, names)):
        return await send(names)
    reply = await send([name for name in names if is_possible(name)])
    answers = iter(reply.items)
    return Reply(reply.now, [next(answers) if is_possible(name) else nothing for name in names])


def storable(text: str | None) -> str | None:
    """Return `text` with each character that has no UTF-8 form replaced."""
    return text if text is None or text.isascii() else text.encode(errors="replace").decode()
