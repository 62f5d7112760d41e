"""Set and take away the overrides of a task: what an operator says of it in the store, beside its code."""

from collections.abc import Mapping

from msgspec.structs import replace

from rota.client.client import Client
from rota.domain.kinds import FLAG, Kind, check_options, instance_of, optional
from rota.domain.overrides import Overrides
from rota.domain.policy import Limit, Policy, Rate, Retry
from rota.domain.spec import TaskSpec
from rota.errors import InvalidOptions
from rota.store import Declared, RowQuery

OVERRIDABLE = ("enabled", "limit", "rate", "retry", "timeout")
Value = bool | Limit | Rate | Retry | float | None
"""None takes an override away."""
KINDS = {
    "enabled": Kind(optional(FLAG.fits), FLAG.words),
    "limit": Kind(optional(instance_of(Limit)), "write limit=Limit(3); limits with names belong to the code"),
    "rate": Kind(optional(instance_of(Rate)), "write rate=Rate(100, per=60)"),
    "retry": Kind(optional(instance_of(Retry)), "write retry=Retry(5)"),
}
"""Every process reads what is stored here, so that a value of another kind would be in the way of all of them."""


async def override_task(
    client: Client, spec: TaskSpec, changes: Mapping[str, Value], note: str | None = None, by: str | None = None
) -> Overrides | None:
    """Change the overrides of a task; `spec` is as the store answered it. Return what is stored now; None if somebody
    else has changed it meanwhile. Raise InvalidOptions for what the code forbids."""
    known = spec.overrides or Overrides()
    check_overrides(spec, changes)
    values = {name: value for name, value in changes.items() if getattr(known, name) != value}
    if not values:
        return known
    named = {"version": known.version + 1, "note": note, "by": by, "at": await client.now()}
    new = replace(known, **values, **named)
    answer = (await client.override(spec.name, new)).items[0]
    return None if answer is Declared.CONFLICT else new


def check_overrides(spec: TaskSpec, changes: Mapping[str, Value]) -> None:
    """Raise InvalidOptions for values of the wrong kind, and for what the code of the task forbids."""
    unknown = sorted(set(changes) - set(OVERRIDABLE))
    if unknown:
        raise InvalidOptions(f"{unknown[0]} belongs to the code; an operator sets {', '.join(OVERRIDABLE)}")
    try:
        check_options(changes, KINDS)
    except TypeError as error:
        raise InvalidOptions(str(error)) from None
    limit, rate, retry, timeout = (changes.get(name) for name in OVERRIDABLE[1:])
    if changes.get("enabled") and not spec.enabled:
        raise InvalidOptions(f"the code or the settings of {spec.name} disable it: change them")
    if isinstance(limit, Limit) and limit.name is not None:
        raise InvalidOptions("limit: a named limit belongs to the code")
    keyed = (isinstance(limit, Limit) and limit.per_key is not None) or (isinstance(rate, Rate) and rate.per_key)
    if keyed and spec.key is None and spec.activity is None:
        raise InvalidOptions(f"per_key: the code of {spec.name} gives its runs no key")
    if isinstance(retry, Retry) and (retry.rules or retry.after):
        raise InvalidOptions("retry: rules= and after= are code; the code's own still hold")
    try:
        Policy(timeout=timeout)  # type: ignore[arg-type]
    except ValueError as error:
        raise InvalidOptions(str(error)) from None


async def spec_of(client: Client, name: str, own: TaskSpec | None = None) -> TaskSpec:
    """Return the spec of a task as the store has it; else `own`, which the code here has."""
    rows = (await client.rows(TaskSpec, RowQuery(names=[name]))).items
    if rows and (rows[0].executor or own is None):
        return rows[0]
    return replace(own or TaskSpec(name), overrides=rows[0].overrides if rows else None)
