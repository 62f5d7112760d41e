"""Names that nothing in a store can have: asked for, they find nothing, and no driver ever sees them."""

from collections.abc import Awaitable, Callable, Sequence

from msgspec.structs import replace

from rota.store import Reply, RowQuery, RunQuery

Control = Callable[[Sequence[str]], Awaitable[Reply[int]]]


def is_possible(name: str) -> bool:
    """PostgreSQL's text holds no NUL, and a lone surrogate has no UTF-8 form."""
    if "\x00" in name:
        return False
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)


def possible_runs(query: RunQuery) -> RunQuery:
    """The same question without impossible names. A condition that nothing can meet makes it a question for no ids."""
    if not all(is_possible(name) for name in (query.task, query.key, query.group) if name is not None):
        return RunQuery(ids=())
    if query.ids is None or all(map(is_possible, query.ids)):
        return query
    return replace(query, ids=[id for id in query.ids if is_possible(id)])


def possible_rows(query: RowQuery) -> RowQuery:
    """The same question without impossible names; for no rows at all where nothing can meet a condition."""
    if not all(is_possible(name) for name in (query.task, query.key) if name is not None):
        return RowQuery(limit=0)
    if query.names is None or all(map(is_possible, query.names)):
        return query
    return replace(query, names=[name for name in query.names if is_possible(name)])


async def control_possible(names: Sequence[str], control: Control) -> Reply[int]:
    """Ask about the subjects that can be; the others answer 0, because nothing of that name was changed."""
    if all(map(is_possible, names)):
        return await control(names)
    reply = await control([subject for subject in names if is_possible(subject)])
    answers = iter(reply.items)
    return Reply(reply.now, [next(answers) if is_possible(subject) else 0 for subject in names])


def storable(words: str | None) -> str | None:
    """What a person said, as text that every store can carry."""
    return words if words is None or words.isascii() else words.encode(errors="replace").decode()
