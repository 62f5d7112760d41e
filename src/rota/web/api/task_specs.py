"""Tasks without Python: a program in any language declares a task, and pull workers do its work."""

import hashlib
import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from rota.app.core import core_of
from rota.domain.guards import Guards, Unique
from rota.domain.intake import check_name, retention_of
from rota.domain.keys import KeyTemplate, check_queue
from rota.domain.policy import Limit, Lost, Policy, Rate
from rota.domain.run import DEFAULT_QUEUE
from rota.domain.schemas import check_schema, defaults_of, is_open, parameters_of
from rota.domain.spec import TaskSpec
from rota.domain.tuning import Retention
from rota.store import RowQuery
from rota.views.shapes import shape_of
from rota.views.tasks import TaskView, task_rows, task_view
from rota.views.values import record
from rota.web.api.retries import Again, retry_from
from rota.web.conditions import IF_MATCH, IF_NONE_MATCH, changed, check_match, tag, wants_new
from rota.web.problems import Problem
from rota.web.rights import Right, is_own
from rota.web.routes import API, Answer, Call, NoQuery, Route, Text, write
from rota.web.submitting import forbidden

PULL = "pull"
"""The executor of a task whose runs pull workers call."""
SCHEMA_LIMIT = 64 * 1024
"""Bytes of a schema."""
_FIELD = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*(\[[A-Za-z0-9_]+\])*\}")
_MORE = 1_000_000


class LimitBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    total: Annotated[int, Meta(ge=1, le=_MORE)] | None = None
    per_key: Annotated[int, Meta(ge=1, le=_MORE)] | None = None


class RateBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    n: Annotated[int, Meta(ge=1, le=_MORE)]
    per: Annotated[float, Meta(gt=0)] = 1.0
    burst: Annotated[int, Meta(ge=1, le=_MORE)] = 1
    per_key: bool = False


class KeepBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Seconds for which ended runs are kept, and how many of them at most and at least."""

    succeeded: Annotated[float, Meta(ge=0)] = Retention().succeeded
    failed: Annotated[float, Meta(ge=0)] = Retention().failed
    most: Annotated[int, Meta(ge=0)] = Retention().most
    least: Annotated[int, Meta(ge=0)] = Retention().least


class TaskBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a task is. `schema` is a JSON Schema of its arguments; without one, any arguments are allowed. `key` is a
    template such as `{user}`."""

    description: Annotated[str, Meta(max_length=200)] = ""
    schema: dict[str, Any] | None = None
    retry: Again | None = None
    timeout: Annotated[float, Meta(gt=0)] | None = None
    lost: Lost = "retry"
    limit: Annotated[int, Meta(ge=1, le=_MORE)] | LimitBody | None = None
    rate: RateBody | None = None
    unique: Unique | None = None
    key: Annotated[str, Meta(min_length=1, max_length=500)] | None = None
    queue: Annotated[str, Meta(min_length=1, max_length=100)] = DEFAULT_QUEUE
    max_pending: Annotated[int, Meta(ge=1)] | None = None
    keep: Annotated[float, Meta(ge=0)] | KeepBody | None = None
    note: Text | None = None

    def spec(self, name: str) -> TaskSpec:
        """Return the spec of the task. Raise ValueError for what the types of the fields do not show."""
        schema = self.schema or {}
        if len(msgspec.json.encode(schema)) > SCHEMA_LIMIT:
            raise ValueError(f"schema: more than {SCHEMA_LIMIT:,} bytes")
        check_schema(schema)
        spec = TaskSpec(
            check_name(name),
            description=self.description,
            executor=PULL,
            parameters=parameters_of(schema),
            defaults=defaults_of(schema),
            open=is_open(schema),
            schema=self.schema,
            key=self.key,
            queue=check_queue(self.queue),
            limit=self._limit(),
            rate=None if self.rate is None else Rate(**msgspec.structs.asdict(self.rate)),
            policy=Policy(retry_from(self.retry or 0), self.timeout, self.lost),
            guards=Guards(unique=self.unique, max_pending=self.max_pending),
            keep=self._keep(),
        )
        if self.key is not None:
            _check_key(self.key, spec)
        return spec

    def _limit(self) -> Limit | None:
        given = self.limit
        if given is None:
            return None
        return Limit(**msgspec.structs.asdict(given)) if isinstance(given, LimitBody) else Limit(given)

    def _keep(self) -> Retention | None:
        given = self.keep
        return retention_of(Retention(**msgspec.structs.asdict(given)) if isinstance(given, KeepBody) else given)


def _check_key(key: str, spec: TaskSpec) -> None:
    """Allow names and items of arguments, and nothing else of Python's templates: no attributes and no widths."""
    if "{" in _FIELD.sub("", key) or "}" in _FIELD.sub("", key):
        raise ValueError(f"key={key!r}: write arguments as {{name}} or {{name[item]}}")
    KeyTemplate(key, spec.parameters)


def spec_tag(spec: TaskSpec) -> str:
    """Return the ETag of a task: of its declaration and its overrides. A pause does not change it."""
    text = msgspec.json.encode(spec.declaration(), order="sorted")
    digest = hashlib.sha256(text).hexdigest()[:16]
    return tag(digest if spec.overrides is None else f"{digest}.{spec.overrides.version}")


async def put(call: Call[NoQuery, TaskBody]) -> Answer:
    name = call.path["name"]
    if is_own(name) or not call.principal.may(Right.WORK, name):
        raise forbidden(call.principal, Right.WORK, name)
    try:
        spec = call.body.spec(name)
    except ValueError as error:
        raise Problem(422, str(error)) from None
    known = await _known(call, name)
    spec = spec if known is None else replace(spec, overrides=known.overrides)
    same = known is not None and spec_tag(known) == spec_tag(spec)
    current = None if known is None else spec_tag(known)
    named = check_match(call.request, current)
    if wants_new(call.request) and known is not None:
        raise changed(current)
    if known is not None and not same and not named:
        words = f"the task is declared otherwise: send {IF_MATCH} with its ETag to replace that"
        raise Problem(428, words, headers={"ETag": current or ""})
    await call.client.declare([spec], by_hand=True)
    view = task_view(name, None, (await task_rows(call.client)).get(name), None)
    return Answer(record(view), 201 if known is None else 200, {"ETag": spec_tag(spec)})


async def _known(call: Call[Any, Any], name: str) -> TaskSpec | None:
    """Return the task as it is declared; 409 if code owns it. A task that was only paused is not declared."""
    if name in core_of(call.app).registry.names() or name in call.app.flows:
        raise Problem(409, f"the code of this app defines the task {name}: change the code")
    rows = (await call.client.rows(TaskSpec, RowQuery(names=[name]))).items
    if not rows or not rows[0].executor:
        return None
    if rows[0].executor != PULL:
        raise Problem(409, f"the code of a worker declares the task {name}: change the code")
    return rows[0]


ROUTES: list[Route[Any, Any]] = [
    write(
        "PUT",
        f"{API}/tasks/{{name}}",
        "Declare a task for pull workers, or replace the declaration that was read",
        Right.WORK,
        put,
        TaskBody,
        {201: shape_of(TaskView), 200: shape_of(TaskView)},
        (409, 412, 428),
        conditions=(IF_MATCH, IF_NONE_MATCH),
    ),
]
