"""Submissions: what a hook before a submit sees of a run, and the headers that the hook adds."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from rota.domain import codec
from rota.domain.headers import check_headers
from rota.domain.run import NewRun, Origin
from rota.errors import InvalidOptions


class Submission(Struct, frozen=True):
    """A run that is about to be put. `origin` is `submit`, `touch`, `retry`, `run_now`, `flow` or `plan`."""

    task: str
    id: str
    key: str | None
    queue: str
    priority: int
    origin: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def args(self) -> Any:
        """The arguments by name, as plain JSON values."""
        return msgspec.json.decode(codec.decode(self.body).args)


SubmitHook: TypeAlias = Callable[[Submission], Mapping[str, str] | None]
"""Returns headers to add, or None; an exception refuses the submit."""


def prepared(run: NewRun, hooks: Sequence[SubmitHook]) -> NewRun:
    """Return `run` with the headers that `hooks` add. They replace headers of the same name."""
    for hook in hooks:
        body = codec.decode(run.body)
        headers = body.headers or {}
        origin = (body.origin or Origin()).kind
        added = hook(Submission(run.task, run.id, run.key, run.queue, run.priority, origin, headers, run.body))
        if added:
            try:
                run = replace(run, body=codec.with_headers(run.body, check_headers({**headers, **added})))
            except (TypeError, ValueError) as error:
                raise InvalidOptions(f"{run.task}: before_submit: {error}") from None
    return run
