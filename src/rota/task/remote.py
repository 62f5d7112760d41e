"""Calls of tasks whose code is elsewhere, by what was published of them; their workers judge the arguments."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from rota.domain.activity import Activity
from rota.domain.arguments import encode_result
from rota.domain.intake import Options, Timed, new_run, new_schedule
from rota.domain.keys import KeyTemplate
from rota.domain.once import once_in
from rota.domain.policy import Policy
from rota.domain.run import NewRun
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.domain.triggers import Trigger
from rota.domain.user_key import UserKey
from rota.errors import InvalidArguments, InvalidOptions, UnknownTask
from rota.task import new_id


def unchecked_run(task: str, arguments: Mapping[str, Any], options: Options = Options()) -> NewRun:  # noqa: B008
    """A run of a task that is not defined here: its arguments are stored as they are, by name."""
    encoded = _encoded(task, arguments)
    try:
        return new_run(new_id(), task, encoded, Policy(), options)
    except ValueError as error:
        raise InvalidOptions(str(error)) from None


def run_by_spec(
    task: str,
    spec: TaskSpec | None,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    options: Options = Options(),  # noqa: B008
    now: float = 0.0,
) -> NewRun:
    """A run of a task whose code is elsewhere, by what was published of it; its worker judges the arguments. `now` is
    the store's time, for a task that is done once per period."""
    if spec is None or not spec.executor:
        if args:
            raise UnknownTask(f"nothing is known of a task {task}, so its arguments need names")
        return unchecked_run(task, kwargs, options)
    try:
        encoded, options = _call_by_spec(spec, args, kwargs, options)
        run = new_run(new_id(), task, encoded, spec.policy, options, spec.priority, spec.guards)
        if spec.once == "code":
            raise ValueError("which period a run is for, only its code can say: submit it from a process that has it")
        return run if spec.once is None else once_in(run, spec.once, now, spec.defaults)
    except TypeError as error:
        raise InvalidArguments(f"{task}: {error}") from None
    except ValueError as error:
        raise InvalidOptions(f"{task}: {error}") from None


def schedule_by_spec(
    id: str,
    trigger: Trigger,
    timed: Timed,
    spec: TaskSpec,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] = MappingProxyType({}),
    options: Options = Options(),  # noqa: B008
) -> Schedule:
    """A schedule of a task whose code is elsewhere. Of a task that nobody has published, only its name is known: its
    arguments are kept as they are."""
    if args and not spec.executor:
        raise UnknownTask(f"nothing is known of a task {spec.name}, so its arguments need names")
    try:
        encoded, options = _call_by_spec(spec, args, kwargs, options)
        if spec.once == "code":
            raise ValueError("which period a run is for, only its code can say, and schedules fire without it")
        timed = replace(timed, once=spec.once)
        return new_schedule(id, trigger, timed, spec.name, encoded, spec.policy, options, spec.priority, spec.guards)
    except (TypeError, ValueError) as error:
        raise InvalidOptions(f"schedule {id}: {error}") from None


def _call_by_spec(
    spec: TaskSpec, args: Sequence[Any], kwargs: Mapping[str, Any], options: Options
) -> tuple[bytes, Options]:
    """The arguments by name, and the key that they make."""
    if len(args) > len(spec.parameters):
        raise TypeError(f"it takes {len(spec.parameters)} arguments, {len(args)} were given")
    named = {**dict(zip(spec.parameters, args, strict=False)), **kwargs}
    if spec.executor and not spec.open and (unknown := named.keys() - set(spec.parameters)):
        raise TypeError(f"it has no parameter {min(unknown)!r}; there are: {', '.join(spec.parameters) or 'none'}")
    if spec.key is not None and options.key is None:
        key = spec.key if isinstance(spec.key, UserKey) else KeyTemplate(spec.key, spec.parameters)
        options = replace(options, key=key.fill({**spec.defaults, **named}))
    return _encoded(spec.name, named), options


def _encoded(task: str, arguments: Mapping[str, Any]) -> bytes:
    try:
        return encode_result(arguments)
    except (TypeError, ValueError) as error:
        raise InvalidArguments(f"{task}: {error}") from None


def touch_by_spec(spec: TaskSpec, activity: Activity, args: Sequence[Any], kwargs: Mapping[str, Any]) -> NewRun:
    """A touch of a task whose code is elsewhere."""
    key = spec.key if activity.key is None else activity.key
    spec = replace(spec, key=key, guards=activity.guards(spec.guards))
    return run_by_spec(
        spec.name, spec, args, kwargs, Options(delay=activity.after, expires=activity.expires, origin="touch")
    )
