"""Edits of queued runs: from what a person wants to the edit that a store applies."""

from collections.abc import Mapping
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

import msgspec
from msgspec import Struct

from rota.client.client import Client
from rota.client.fleet import unknown_run
from rota.domain import codec
from rota.domain.edits import RunEdit
from rota.domain.intake import Span, check_priority, instant, seconds
from rota.domain.keys import KeyTemplate, digest, parameters_of
from rota.domain.run import Run, State, after
from rota.domain.spec import TaskSpec
from rota.domain.text import did_you_mean
from rota.errors import InvalidOptions, RunNotFound
from rota.store import Edited, RowQuery, RunQuery

TRIES = 5
"""Reads of a run whose arguments somebody else changes at the same time."""


class Changes(Struct, frozen=True, kw_only=True):
    """What to change in queued runs; None leaves it as it is."""

    at: datetime | None = None
    delay: Span | None = None
    priority: int | None = None
    expires: Span | datetime | None = None
    args: Mapping[str, object] | None = None

    def check(self) -> None:
        """Raise InvalidOptions if the changes are not possible for any run."""
        if self.at is not None and self.delay is not None:
            raise InvalidOptions("delay= and at= both say when the run is due; give one")
        if all(value is None for value in msgspec.structs.astuple(self)):
            raise InvalidOptions("nothing to change: give at= or delay=; priority=, expires= or args=")
        self._times(0.0, 0.0)

    def edit(self, run: Run, now: float, share: str | None = None) -> RunEdit:
        """Return the edit of `run`. Its instants are by the store's clock: the edit can be sent twice. `share` is that
        of the new arguments (`share_after`)."""
        due_at, expires_at = self._times(now, run.due_at)
        body = None if self.args is None else _patched(run, self.args)
        replaces = None if body is None else run.body
        return RunEdit(
            run=run.id,
            due_at=due_at,
            expires_at=expires_at,
            priority=self.priority,
            body=body,
            replaces=replaces,
            share=share,
        )

    def moved_from(self, run: Run) -> tuple[float, ...]:
        """Return when `run` was due, if nothing but its due time changes: such a change can be undone."""
        moves = self.priority is None and self.expires is None and self.args is None
        return (run.due_at,) if moves else ()

    def _times(self, now: float, due_at: float) -> tuple[float | None, float | None]:
        """Return when the run is due, if that changes, and when it expires, if that changes."""
        try:
            if self.priority is not None:
                check_priority(self.priority)
            moved = None if self.at is None else instant(self.at, "at")
            moved = after(now, seconds(self.delay, "delay")) if self.delay is not None else moved
            if self.expires is None or isinstance(self.expires, datetime):
                return moved, None if self.expires is None else instant(self.expires, "expires")
            due = due_at if moved is None else moved
            return moved, after(max(now, due), seconds(self.expires, "expires"))
        except (TypeError, ValueError) as error:
            raise InvalidOptions(str(error)) from None


def _patched(run: Run, patch: Mapping[str, object]) -> bytes:
    """Return the body of `run` with arguments as `patch` says: a JSON merge patch (RFC 7386)."""
    known = msgspec.json.decode(run.args)
    try:
        args = msgspec.json.encode(merged(known, msgspec.to_builtins(dict(patch))))
    except (TypeError, ValueError) as error:
        raise InvalidOptions(f"args: {error}") from None
    if len(args) > codec.ARGS_LIMIT:
        raise InvalidOptions(
            f"the arguments take {len(args):,} bytes, more than the {codec.ARGS_LIMIT:,} a run may carry"
        )
    sorted_args = msgspec.json.encode(known, order="sorted")
    if run.unique_key is not None and run.unique_key in (digest(run.args), digest(sorted_args)) and args != run.args:
        raise InvalidOptions(
            f"{run.task} {run.id} is unique by its arguments, which therefore stay; cancel the run and submit another"
        )
    return codec.with_args(run.body, args)


def merged(known: Any, patch: Any) -> Any:
    """Return `known` after a JSON merge patch: objects are merged, None removes, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    changes = cast("dict[str, Any]", patch)
    found = dict(cast("dict[str, Any]", known)) if isinstance(known, dict) else dict[str, Any]()
    for name, value in changes.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), value)
    return found


async def share_after(client: Client, run: Run, changes: Changes) -> str | None:
    """Return the share of `run` with the new arguments, by the template that a worker published. None: it stays.

    Raises InvalidOptions if the published task has no such parameter.
    """
    if not changes.args:
        return None
    specs = (await client.rows(TaskSpec, RowQuery(names=[run.task]))).items
    if not specs:
        return None
    spec = specs[0]
    if spec.executor and not spec.open and (unknown := changes.args.keys() - set(spec.parameters)):
        there = did_you_mean(min(unknown), spec.parameters, f"; there are: {', '.join(spec.parameters) or 'none'}")
        raise InvalidOptions(f"args: {run.task} has no parameter {min(unknown)!r}{there}")
    if run.share is None or spec.share is None or not parameters_of(spec.share.template) & changes.args.keys():
        return None
    args = merged(msgspec.json.decode(run.args), msgspec.to_builtins(dict(changes.args)))
    try:
        return KeyTemplate(spec.share.template, args, "share").fill(_with_attributes(args))
    except ValueError as error:
        raise InvalidOptions(f"args: {error}") from None


class _Fields(SimpleNamespace):
    """A JSON object whose members a template reads as `{user.id}` or as `{user[id]}`."""

    def __getitem__(self, name: str) -> Any:
        return vars(self)[name]


def _with_attributes(args: dict[str, Any]) -> dict[str, Any]:
    return {name: _Fields(**value) if isinstance(value, dict) else value for name, value in args.items()}


async def edit_run(client: Client, id: str, changes: Changes, note: str | None) -> bool:
    """Change a run. Return False if it is not queued. If its arguments change meanwhile, they are read again."""
    changes.check()
    for _ in range(TRIES):
        page = await client.runs(RunQuery(ids=[id]))
        if not page.runs:
            raise RunNotFound(unknown_run(id))
        run = page.runs[0]
        if run.state is not State.QUEUED:
            return False
        edit = changes.edit(run, page.now, await share_after(client, run, changes))
        (answer,) = (await client.edit([edit], note, due_before=changes.moved_from(run))).items
        if answer is not Edited.STALE:
            return True
    return False
