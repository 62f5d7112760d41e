"""`rota tasks set`: what an operator says of a task wins over its code."""

from typing import Annotated

import msgspec
from cyclopts import Parameter

from rota.app.core import core_of
from rota.cli.options.names import check_known_somewhere
from rota.cli.options.parameters import Flag, Shared, TaskName
from rota.cli.options.target import Target
from rota.cli.options.times import seconds_of
from rota.cli.options.user import who
from rota.cli.render.show import Column, Show
from rota.client.overrides import OVERRIDABLE, Value, override_task, spec_of
from rota.domain.policy import Limit, Rate, Retry
from rota.domain.spec import TaskSpec
from rota.errors import InvalidOptions
from rota.task import definition_of
from rota.views.tasks import overrides_view
from rota.views.values import record

KINDS: dict[str, type[Limit] | type[Rate] | type[Retry]] = {"limit": Limit, "rate": Rate, "retry": Retry}


def set_(
    name: TaskName,
    /,
    *values: str,
    clear: Annotated[bool, Flag, Parameter(help="Take all overrides away first.")] = False,
    note: Annotated[str | None, Parameter(help="Why; `rota why` shows it.")] = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Override what the code says of a task, in all its processes, until it is taken away.

    Parameters
    ----------
    name
        The task's name.
    values
        enabled=false, limit=5, limit={"per_key": 1}, rate=10, retry=3, timeout=90s; limit= takes the override away.
    """
    changes: dict[str, Value] = dict.fromkeys(OVERRIDABLE) if clear else {}
    changes |= dict(map(_value, values))

    async def send() -> dict[str, object]:
        async with target.client() as client:
            await check_known_somewhere([name], client, target)
            spec = await spec_of(client, name, _own(target, name))
            made = await override_task(client, spec, changes, note, who())
            if made is None:
                raise InvalidOptions(f"somebody else has just changed the overrides of {name}: look, and try again")
            view = overrides_view(made)
            return {"task": name, "overrides": None if view is None else record(view)}

    found = target.run(send(), code=True)
    column = Column("overrides", lambda r: _text(r["overrides"]), elastic=True)
    show.records([found], [Column("task", whole=True), column])


def _own(target: Target, name: str) -> TaskSpec | None:
    known = core_of(target.app()).registry.find(name) if target.reference is not None else None
    return None if known is None else definition_of(known).spec


def _value(text: str) -> tuple[str, Value]:
    name, sign, given = text.partition("=")
    if not sign or name not in OVERRIDABLE:
        raise InvalidOptions(f"{text}: write NAME=VALUE; an operator sets {', '.join(OVERRIDABLE)}")
    if given == "":
        return name, None
    if name == "timeout":
        return name, seconds_of(given, "timeout")
    try:
        if name == "enabled":
            return name, msgspec.json.decode(given.lower(), type=bool)
        read = msgspec.json.decode(given)
        if isinstance(read, int) and not isinstance(read, bool):
            return name, KINDS[name](read)
        return name, msgspec.convert(read, KINDS[name])
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise InvalidOptions(f"{text}: {error}") from None


def _text(given: object) -> str:
    if not isinstance(given, dict):
        return "none"
    values = [f"{name}={given[name]}" for name in OVERRIDABLE if given[name] is not None]
    return ", ".join(values)
