"""Edits of queued runs: from what a person wants to the edit that a store applies."""

from collections.abc import Mapping
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from rota.client.client import Client
from rota.client.fleet import unknown_run
from rota.domain import codec
from rota.domain.arguments import Signature, encode_arguments, gathered
from rota.domain.edits import RunEdit
from rota.domain.ended import ENDED
from rota.domain.intake import Span, check_priority, instant, seconds
from rota.domain.keys import KeyTemplate, digest, parameters_of
from rota.domain.run import Run, State, after
from rota.domain.schemas import check_value
from rota.domain.spec import TaskSpec
from rota.domain.text import did_you_mean
from rota.errors import InvalidArguments, InvalidOptions, RunNotFound
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

    def edit(self, run: Run, now: float) -> RunEdit:
        """Return the edit of `run`, without arguments. Its instants are by the store's clock: it can be sent twice."""
        due_at, expires_at = self._times(now, run.due_at)
        return RunEdit(run=run.id, due_at=due_at, expires_at=expires_at, priority=self.priority)

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


def with_arguments(run: Run, new: Mapping[str, Any]) -> bytes:
    """Return the body of `run` with other arguments."""
    args = msgspec.json.encode(new)
    if len(args) > codec.ARGS_LIMIT:
        raise InvalidOptions(
            f"the arguments take {len(args):,} bytes, more than the {codec.ARGS_LIMIT:,} a run may carry"
        )
    sorted_args = msgspec.json.encode(msgspec.json.decode(run.args), order="sorted")
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


async def edit_of(client: Client, run: Run, changes: Changes, now: float) -> RunEdit:
    """Return the edit that makes `changes` of `run`; raises InvalidArguments if its task cannot be called with them."""
    edit = changes.edit(run, now)
    if changes.args is None:
        return edit
    spec = await _published(client, run.task)
    args = _patched_arguments(client.signature_of(run.task), spec, run, changes.args)
    share = _share_after(run, spec, changes.args, args)
    return replace(edit, body=with_arguments(run, args), replaces=run.body, share=share)


async def patched_arguments(client: Client, run: Run, patch: Mapping[str, object]) -> dict[str, Any]:
    """Return the arguments of `run` after a JSON merge patch (RFC 7386), checked as a submit checks them: by the code
    of this process if it has the task, else by what a worker has published. Raises InvalidArguments."""
    return _patched_arguments(client.signature_of(run.task), await _published(client, run.task), run, patch)


async def _published(client: Client, task: str) -> TaskSpec:
    specs = (await client.rows(TaskSpec, RowQuery(names=[task]))).items
    return specs[0] if specs else TaskSpec(task)


def _patched_arguments(
    signature: Signature | None, spec: TaskSpec, run: Run, patch: Mapping[str, object]
) -> dict[str, Any]:
    parameters, is_open = tuple(spec.parameters), spec.open or not spec.executor
    if signature is not None:
        parameters, is_open = tuple(signature.parameters.parameters), signature.open
    if not is_open and (unknown := patch.keys() - set(parameters)):
        there = did_you_mean(min(unknown), parameters, f"; there are: {', '.join(parameters) or 'none'}")
        raise InvalidArguments(f"args: {run.task} has no parameter {min(unknown)!r}{there}")
    has_stars = is_open and spec.schema is None
    try:
        known, change = msgspec.json.decode(run.args), msgspec.json.decode(encode_arguments(patch))
        args = merged(gathered(known, parameters, has_stars), gathered(change, parameters, has_stars))
        if signature is not None:
            signature.check(args, some=run.member is not None or run.origin.kind == ENDED)
        elif spec.schema is not None:
            check_value(spec.schema, {**spec.defaults, **args})
    except (TypeError, ValueError) as error:
        raise InvalidArguments(f"args: {error}") from None
    return cast("dict[str, Any]", args)


def _share_after(run: Run, spec: TaskSpec, patch: Mapping[str, object], args: dict[str, Any]) -> str | None:
    """Return the share of `run` with its new arguments, by the template that a worker published. None: it stays."""
    if run.share is None or spec.share is None or not parameters_of(spec.share.template) & patch.keys():
        return None
    try:
        return KeyTemplate(spec.share.template, args, "share").fill(_with_attributes(args))
    except ValueError as error:
        raise InvalidArguments(f"args: {error}") from None


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
        edit = await edit_of(client, run, changes, page.now)
        (answer,) = (await client.edit([edit], note, due_before=changes.moved_from(run))).items
        if answer is not Edited.STALE:
            return True
    return False
