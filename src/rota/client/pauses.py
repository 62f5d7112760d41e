"""Pause and resume tasks, or one key of a task."""

from collections.abc import Sequence

from rota.client.client import Client
from rota.domain.keys import check_key
from rota.domain.spec import TaskSpec
from rota.errors import InvalidOptions
from rota.store import PAUSED_KEYS, Command, RowQuery, Scope


async def pause_task(
    client: Client,
    command: Command,
    names: Sequence[str],
    key: str | None = None,
    note: str | None = None,
    by: str | None = None,
) -> bool:
    """Pause or resume the task with these names, or only its runs with `key`. Return whether that changed anything."""
    if key is None:
        return any((await client.control(command, names, note, by, Scope.TASKS)).items)
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
