"""Overrides of a task: an operator changes its limit, rate, retries, timeout or switch without a release."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from rota.app.core import core_of
from rota.client.overrides import OVERRIDABLE, Value, override_task, spec_of
from rota.domain.policy import Limit, Rate
from rota.errors import InvalidOptions
from rota.task import definition_of
from rota.views.shapes import shape_of
from rota.views.tasks import TaskView, task_rows, task_view
from rota.views.values import record
from rota.web.api.retries import Again, retry_from
from rota.web.api.task_specs import LimitBody, RateBody, spec_tag
from rota.web.conditions import IF_MATCH, changed, check_match
from rota.web.problems import Problem
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, NoQuery, Route, Text, write


class OverrideBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to override. A field that is left out stays as it is; null takes its override away."""

    enabled: bool | UnsetType | None = UNSET
    limit: Annotated[int, Meta(ge=1, le=1_000_000)] | LimitBody | UnsetType | None = UNSET
    rate: RateBody | UnsetType | None = UNSET
    retry: Again | UnsetType | None = UNSET
    timeout: Annotated[float, Meta(gt=0)] | UnsetType | None = UNSET
    note: Text | None = None

    def changes(self) -> dict[str, Value]:
        """Return the fields that are given, as values. Raise ValueError for what their types do not show."""
        given = {name: getattr(self, name) for name in OVERRIDABLE}
        return {name: _value(name, value) for name, value in given.items() if value is not UNSET}


def _value(name: str, given: Any) -> Value:
    if given is None or name in ("enabled", "timeout"):
        kept: Value = given
        return kept
    if name == "retry":
        return retry_from(given)
    if name == "rate":
        return Rate(**asdict(given))
    return Limit(**asdict(given)) if isinstance(given, LimitBody) else Limit(given)


async def patch(call: Call[NoQuery, OverrideBody]) -> Answer:
    name, registry = call.path["name"], core_of(call.app).registry
    known = registry.find(name)
    if not call.principal.may(Right.OPERATE, name) or (known is None and name not in await task_rows(call.client)):
        raise Problem(404, f"no task {name} is known here", reason="unknown_task")
    own = None if known is None else definition_of(known).spec
    spec = await spec_of(call.client, name if known is None else known.name, own)
    current = spec_tag(spec)
    if not check_match(call.request, current) and spec.overrides is not None and spec.overrides.values():
        words = f"the task has overrides: send {IF_MATCH} with its ETag to change them"
        raise Problem(428, words, headers={"ETag": current})
    try:
        changes = call.body.changes()
    except ValueError as error:
        raise Problem(422, str(error)) from None
    try:
        made = await override_task(call.client, spec, changes, call.body.note, call.principal.name)
    except InvalidOptions as error:
        raise Problem(409, str(error)) from None
    after = await spec_of(call.client, spec.name, own)
    if made is None:
        raise changed(spec_tag(after))  # somebody else has changed it meanwhile
    view = task_view(spec.name, known, (await task_rows(call.client)).get(spec.name), call.app.flows.get(spec.name))
    return Answer(record(view), headers={"ETag": spec_tag(after)})


ROUTES: list[Route[Any, Any]] = [
    write(
        "PATCH",
        f"{API}/tasks/{{name}}",
        "Override what the code says of a task, or take overrides away",
        Right.OPERATE,
        patch,
        OverrideBody,
        {200: shape_of(TaskView)},
        (404, 409, 412, 428),
        conditions=(IF_MATCH,),
    ),
]
