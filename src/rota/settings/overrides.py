"""Overrides: the options of a task that an operator changes without touching the code."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar, cast

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from rota.domain.activity import Activity, Breaker, Mode, check_span
from rota.domain.intake import check_priority, retention_of
from rota.domain.keys import check_queue
from rota.domain.policy import Backoff, Limit, Lost, Policy, Rate, Retry, TraceMode
from rota.domain.schedule import CatchUp, Overlap
from rota.domain.triggers import Trigger
from rota.errors import InvalidOptions
from rota.settings.readers import Seconds, says

S = TypeVar("S", bound=Mapping[str, object])


def fields_set(part: Struct) -> dict[str, Any]:
    """Return the fields of `part` that are set."""
    fields = ((name, getattr(part, name)) for name in part.__struct_fields__)
    return {name: value for name, value in fields if value is not UNSET}


class RetryOverride(Struct, frozen=True, kw_only=True):
    limit: Annotated[int | UnsetType, says("Retries after the first try.")] = UNSET
    backoff: Annotated[Backoff | UnsetType, says("How the wait grows: `exponential`, `linear` or `fixed`.")] = UNSET
    delay: Annotated[Seconds | UnsetType, says("Seconds before the first retry.")] = UNSET
    max_delay: Annotated[Seconds | UnsetType, says("Seconds that the wait never exceeds.")] = UNSET
    jitter: Annotated[float | UnsetType, says("The share of the wait, from 0 to 1, by which it may be shortened.")] = (
        UNSET
    )

    factor: Annotated[float | UnsetType, says("By how much an exponential wait grows each time.")] = UNSET

    def __post_init__(self) -> None:
        Retry(**fields_set(self))


class LimitOverride(Struct, frozen=True, kw_only=True):
    total: Annotated[int | UnsetType, says("Runs of the task at the same time, everywhere.")] = UNSET
    per_key: Annotated[int | UnsetType, says("Runs of one key at the same time, everywhere.")] = UNSET

    def __post_init__(self) -> None:
        Limit(**fields_set(self))


class RateOverride(Struct, frozen=True, kw_only=True):
    n: Annotated[int | UnsetType, says("Starts per interval.")] = UNSET
    per: Annotated[Seconds | UnsetType, says("Seconds of the interval.")] = UNSET
    burst: Annotated[int | UnsetType, says("Starts that may come at once.")] = UNSET
    per_key: Annotated[bool | UnsetType, says("Each key has a rate of its own.")] = UNSET

    def __post_init__(self) -> None:
        given: dict[str, Any] = {"n": 1} | fields_set(self)
        Rate(**given)


class ActivityOverride(Struct, frozen=True, kw_only=True):
    """`[tasks.NAME.activity]`. `breaker` is its number of failures, `cool_down` its seconds."""

    after: Annotated[Seconds | UnsetType, says("Seconds from the first touch to the run.")] = UNSET
    mode: Annotated[
        Mode | UnsetType, says("What a touch does while a run waits: `coalesce` keeps its time, `debounce` pushes it.")
    ] = UNSET
    max_wait: Annotated[
        Seconds | UnsetType, says("Seconds from the first touch beyond which `debounce` pushes no run.")
    ] = UNSET
    spacing: Annotated[Seconds | UnsetType, says("Seconds between two runs of one key, at least.")] = UNSET
    expires: Annotated[Seconds | UnsetType, says("Seconds after which a run that has not started never does.")] = UNSET
    breaker: Annotated[int | UnsetType, says("Failed runs in a row after which new ones are refused.")] = UNSET
    cool_down: Annotated[Seconds | UnsetType, says("Seconds for which they are refused.")] = UNSET

    def __post_init__(self) -> None:
        given = fields_set(self)
        Breaker(given.get("breaker", 1), given.get("cool_down"))
        for name in ("after", "max_wait", "spacing", "expires"):
            check_span(given.get(name, 0), name)


PARTS: dict[str, tuple[type[Struct], type[Struct]]] = {
    "retry": (RetryOverride, Retry),
    "limit": (LimitOverride, Limit),
    "rate": (RateOverride, Rate),
    "activity": (ActivityOverride, Activity),
}
"""The fields that are tables. A bare number is their first field, as in `Retry(5)`, `Limit(10)`, `Rate(100)`,
`Activity(60)`."""


CODE_ONLY = frozenset(
    {
        "name",
        "aliases",
        "executor",
        "key",
        "unique",
        "within",
        "unique_in",
        "join",
        "fail_on",
        "middleware",
        "start",
        "end",
        "once",
        "expect",
    }
    | {"on_success", "on_failure", "on_cancel", "buffer", "times", "breaker", "share"}
)
"""The options of `@app.task(...)` that an operator cannot change: they belong to what the function does, or name other
code."""


class TaskOverride(Struct, frozen=True, kw_only=True):
    """`[tasks.NAME]`: an option that is UNSET stays as in the code."""

    enabled: Annotated[
        bool | UnsetType,
        says("If false, no run of the task is made or started; what waits goes on once it is true again."),
    ] = UNSET
    timeout: Annotated[Seconds | UnsetType, says("Seconds after which a call is stopped.")] = UNSET
    priority: Annotated[int | UnsetType, says("From -100 to 100; higher goes first.")] = UNSET
    queue: Annotated[str | UnsetType, says("The queue of its runs.")] = UNSET
    description: Annotated[str | UnsetType, says("One line for people.")] = UNSET
    max_pending: Annotated[int | UnsetType, says("Unfinished runs at most; a submit beyond waits, or is refused.")] = (
        UNSET
    )
    retry: Annotated[RetryOverride | UnsetType, says("Retries.")] = UNSET
    limit: Annotated[LimitOverride | UnsetType, says("The limit.")] = UNSET
    rate: Annotated[RateOverride | UnsetType, says("The rate.")] = UNSET
    activity: Annotated[ActivityOverride | UnsetType, says("The activity policy.")] = UNSET
    max_losses: Annotated[int | UnsetType, says("Lost workers after which a run has failed.")] = UNSET
    lost: Annotated[Lost | UnsetType, says("What becomes of a run whose worker is lost: `retry` or `fail`.")] = UNSET
    keep: Annotated[Seconds | UnsetType, says("Seconds for which ended runs are kept, instead of `retention`.")] = UNSET
    logs: Annotated[bool | UnsetType, says("Keep the end of what each call logs (`rota runs logs`).")] = UNSET
    trace: Annotated[TraceMode | UnsetType, says("Spans of calls: `link` to the submit, or its `parent`.")] = UNSET
    schedule: Annotated[str | UnsetType, says("The trigger, such as `daily 03:00`.")] = UNSET
    overlap: Annotated[
        Overlap | UnsetType,
        says("What a tick does while an earlier run is unfinished: `skip`, `queue`, `allow`, `replace` or `buffer`."),
    ] = UNSET
    catch_up: Annotated[CatchUp | UnsetType, says("Which missed ticks are made up: `latest`, `all` or `skip`.")] = UNSET
    grace: Annotated[Seconds | UnsetType, says("Seconds after which a tick is too late to start.")] = UNSET

    def __post_init__(self) -> None:
        given = fields_set(self)
        Policy(**{name: given[name] for name in ("timeout", "max_losses", "lost") if name in given})
        check_priority(given.get("priority", 0))
        check_queue(given.get("queue", "default"))
        retention_of(given.get("keep"))
        if "schedule" in given:
            Trigger.parse(given["schedule"])
        if given.get("max_pending", 1) < 1:
            raise ValueError(f"max_pending={self.max_pending!r}: at least 1")

    def over(self, options: S) -> S:
        """Return the options of a task, changed by what this override sets."""
        changes = fields_set(self)
        try:
            for name in PARTS.keys() & changes.keys():
                changes[name] = _combined(name, options.get(name), changes[name])
        except ValueError as error:
            raise InvalidOptions(str(error)) from None
        return cast("S", {**options, **changes})


def _combined(name: str, base: object, part: Struct) -> object:
    given, kind = fields_set(part), PARTS[name][1]
    if kind is Activity:
        given = _activity(base, given)
    if kind is Limit and _has_named(base):
        return _limits(base, given)
    if isinstance(base, Struct):
        return replace(base, **given)
    if base is not None:
        return base  # a value of the wrong type in the code: the check of the definition has the better message
    if kind is Rate and "n" not in given:
        raise ValueError("the settings change a rate and the code has none; say its n as well")
    return kind(**given)


def _has_named(base: object) -> bool:
    return isinstance(base, Sequence) or (isinstance(base, Limit) and base.name is not None)


def _limits(base: object, given: dict[str, Any]) -> list[object]:
    """Return the limits of a task that has named ones: the settings of the task change the one without a name."""
    limits: list[object] = [base] if isinstance(base, Limit) else list(cast("Sequence[object]", base))
    own = [each for each in limits if isinstance(each, Limit) and each.name is None]
    others = [each for each in limits if each not in own]
    return [*others, replace(own[0], **given) if own else Limit(**given)]


def _activity(base: object, given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an Activity: `breaker` and `cool_down` become one Breaker."""
    known = base.breaker if isinstance(base, Activity) else None
    failures = given.pop("breaker", known and known.failures)
    cool_down = given.pop("cool_down", known and known.cool_down)
    if failures is None and cool_down is not None:
        raise ValueError("the settings change the cool_down of a breaker and the code has none; say breaker as well")
    if base is None and "after" not in given:
        raise ValueError("the settings change an activity and the code has none; say its after as well")
    return given if failures is None else given | {"breaker": Breaker(failures, cool_down)}
