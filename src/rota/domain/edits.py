"""Edits: how a person changes a run that is queued."""

from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rota.domain.joins import moved_expiry
from rota.domain.run import RunHead, after

S = TypeVar("S", bound=RunHead)


class RunEdit(Struct, frozen=True, kw_only=True):
    """What to change in the run with the id `run`; None leaves a field as it is. Instants are by the store's clock, so
    that an edit that is sent twice says the same twice.

    `body` replaces the body `replaces`: if the run has a third body by now, the edit is stale. `share` is that of the
    new arguments.
    """

    run: str
    due_at: float | None = None
    expires_at: float | None = None
    priority: int | None = None
    body: bytes | None = None
    replaces: bytes | None = None
    share: str | None = None


def edited(run: S, edit: RunEdit) -> S:
    """Return `run` with the due time, expiry, priority and share of `edit`. An expiry that `edit` does not name moves
    with the due time."""
    due_at = run.due_at if edit.due_at is None else after(edit.due_at, 0)
    expires_at = moved_expiry(run, due_at) if edit.expires_at is None else after(edit.expires_at, 0)
    priority = run.priority if edit.priority is None else edit.priority
    share = run.share if edit.share is None else edit.share
    return replace(run, due_at=due_at, expires_at=expires_at, priority=priority, share=share)
