"""RemoteTask: a task whose code is in another process. Its published spec says how to call it."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rota.client.handle import RunHandle
from rota.domain.arguments import encode_result, gathered
from rota.domain.decision import Decision, Reason
from rota.domain.intake import Options
from rota.domain.keys import KeyTemplate
from rota.domain.schemas import check_value
from rota.domain.spec import TaskSpec
from rota.domain.user_key import UserKey
from rota.errors import InvalidArguments, UnknownTask
from rota.task.call import Call, touch_terms
from rota.task.submitter import Submitter


class RemoteTask(Struct, frozen=True):
    """A spec without an `executor` is that of a task that no worker has published: only its name is known."""

    spec: TaskSpec
    submitter: Submitter

    async def submit(self, *args: Any, **kwargs: Any) -> RunHandle[Any]:
        decision = await self.submitter.put(call_by_spec(self.spec, args, kwargs))
        return RunHandle(self.submitter.client(), decision.run, decision=decision)

    async def touch(self, *args: Any, **kwargs: Any) -> Decision:
        if not self.spec.executor:
            return Decision("", Reason.UNKNOWN_TASK)
        if self.spec.activity is None:
            return Decision("", Reason.NO_ACTIVITY)
        spec, options = touch_terms(self.spec, self.spec.activity)
        return await self.submitter.touch(call_by_spec(spec, args, kwargs, options).to_touch())


def call_by_spec(
    spec: TaskSpec,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    options: Options = Options(),  # noqa: B008
) -> Call:
    """Return a call of a task whose code is not here. The arguments are encoded as they are; the worker checks their
    types."""
    if args and not spec.executor:
        raise UnknownTask(f"nothing is known of a task {spec.name}, so its arguments need names")
    try:
        named = _named(spec, args, kwargs)
        if spec.schema is not None:
            check_value(spec.schema, {**spec.defaults, **named})
        if spec.key is not None and options.key is None:
            key = spec.key if isinstance(spec.key, UserKey) else KeyTemplate(spec.key, spec.parameters)
            options = replace(options, key=key.fill({**spec.defaults, **named}))
        given = {**spec.defaults, **named}
        template = spec.share and KeyTemplate(spec.share.template, spec.parameters, "share")
        share = template.fill(given) if template else None
        stored = named if spec.schema is not None else gathered(named, spec.parameters, spec.open)
        return Call(spec, encode_result(stored), options, spec.once, share)
    except (TypeError, ValueError) as error:
        raise InvalidArguments(f"{spec.name}: {error}") from None


def _named(spec: TaskSpec, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments by the names of the task's parameters."""
    if len(args) > len(spec.parameters):
        raise TypeError(f"it takes {len(spec.parameters)} arguments, {len(args)} were given")
    named = {**dict(zip(spec.parameters, args, strict=False)), **kwargs}
    if spec.executor and not spec.open and (unknown := named.keys() - set(spec.parameters)):
        raise TypeError(f"it has no parameter {min(unknown)!r}; there are: {', '.join(spec.parameters) or 'none'}")
    return named
