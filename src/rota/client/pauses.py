"""Pause and resume tasks, or one key of a task; freeze them all."""

from collections.abc import Sequence
from datetime import datetime

from rota.client.client import Client
from rota.domain.intake import Span, instant, seconds
from rota.domain.keys import check_key
from rota.domain.spec import TaskSpec
from rota.domain.timing import shown
from rota.errors import InvalidOptions
from rota.store import PAUSED_KEYS, Command, RowQuery, Scope


async def pause_task(
    client: Client,
    command: Command,
    names: Sequence[str],
    key: str | None = None,
    note: str | None = None,
    by: str | None = None,
    until: float | None = None,
) -> bool:
    """Pause or resume the task with these names, or only its runs with `key`. Return whether that changed anything."""
    if key is not None and until is not None:
        raise InvalidOptions("until= is for the pause of a whole task: leave key= out")
    if until is not None and until <= await client.now():
        raise InvalidOptions(f"until={shown(until)} is past: nothing is paused")
    if key is None:
        return any((await client.control(command, names, note, by, Scope.TASKS, until)).items)
    try:
        subjects = [f"{name} {check_key(key)}" for name in names]
    except ValueError as error:
        raise InvalidOptions(str(error)) from None
    if any((await client.control(command, subjects, note, by, Scope.KEYS)).items):
        return True
    specs = (await client.rows(TaskSpec, RowQuery(names=names))).items
    full = command is Command.PAUSE and any(len(spec.paused_keys) >= PAUSED_KEYS for spec in specs)
    if full and not any(key in spec.paused_keys for spec in specs):
        raise InvalidOptions(f"{names[0]} has {PAUSED_KEYS:,} paused keys: resume some, or pause the task")
    return False


async def freeze(client: Client, until: datetime | Span | None = None, note: str | None = None) -> bool:
    """Start nothing until `until`: an instant, or seconds from now. Return whether that changed anything."""
    end = await end_of(client, until)
    if end is not None and end <= await client.now():
        raise InvalidOptions(f"until={until!r} is past: nothing is frozen")
    return (await client.freeze(True, end, note)).items[0]


async def end_of(client: Client, until: datetime | Span | None) -> float | None:
    """Return `until`, an instant or seconds from now by the store's clock, as an instant of the store."""
    if until is None:
        return None
    try:
        return instant(until, "until") if isinstance(until, datetime) else await client.now() + seconds(until, "until")
    except (TypeError, ValueError) as error:
        raise InvalidOptions(str(error)) from None
