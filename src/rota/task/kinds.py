"""Which values each option of `@app.task(...)` and `task.using(...)` takes, and hints for options that do not exist."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import cast

from rota.domain.activity import Activity, Breaker
from rota.domain.guards import Sliding
from rota.domain.kinds import FLAG, Kind, check_options, instance_of, is_number, is_text, is_whole, members, optional
from rota.domain.policy import Limit, Rate, Retry, Share
from rota.domain.run import Callback
from rota.domain.text import did_you_mean
from rota.domain.triggers import Trigger
from rota.domain.tuning import Retention
from rota.domain.user_key import UserKey
from rota.errors import InvalidOptions
from rota.task.options import TaskOptions


def _is_span(value: object) -> bool:
    return is_number(value) or isinstance(value, timedelta)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _are_names(value: object) -> bool:
    return _is_list(value) and all(map(is_text, members(value)))


def _are_limits(value: object) -> bool:
    return _is_list(value) and all(isinstance(each, Limit) for each in members(value))


def _are_triggers(value: object) -> bool:
    """Return whether `value` is a list of triggers, or triggers by name."""
    if isinstance(value, Mapping):
        named = cast("Mapping[object, object]", value)
        return all(map(is_text, named)) and _are_triggers(list(named.values()))
    return _is_list(value) and all(isinstance(each, Trigger | str) for each in members(value))


def _is_schedule(value: object) -> bool:
    return value is None or isinstance(value, Trigger | str) or _are_triggers(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and is_whole(value) and value >= 1


SPAN = "a number of seconds or a timedelta"
TRIGGER = Kind(
    optional(instance_of(Trigger, str)),
    "a trigger such as Cron('0 9 * * *'), DailyAt(9) or Every(minutes=5)",
)
INSTANT = Kind(optional(instance_of(datetime)), "an aware datetime, or None")

WITHIN = Kind(
    optional(lambda value: _is_span(value) or isinstance(value, Sliding)),
    f"{SPAN}, a Sliding(600), or None for no end",
)
TASK: dict[str, Kind] = {
    "name": Kind(optional(is_text), "a text, or None for the name of the function"),
    "description": Kind(optional(is_text), "a text, or None for the docstring of the function"),
    "retry": Kind(instance_of(Retry), "write retry=Retry(5)"),
    "timeout": Kind(
        optional(lambda value: _is_span(value) or is_text(value)),
        'a number of seconds, a timedelta, or a text such as "30s"; None for no timeout',
    ),
    "logs": FLAG,
    "max_losses": Kind(is_whole, "a whole number, at least 1"),
    "key": Kind(
        optional(instance_of(str, UserKey)),
        'a template such as key="{path}", a UserKey(), or None for no key',
    ),
    "within": WITHIN,
    "unique_in": Kind(optional(is_text), "a name that tasks share, or None"),
    "max_pending": Kind(optional(_is_count), "a whole number from 1, or None for no bound"),
    "limit": Kind(
        optional(lambda value: isinstance(value, Limit) or _are_limits(value)),
        'write limit=Limit(3) for 3 at once, a list such as [Limit(5), Limit(2, name="gpu")], or None for no limit',
    ),
    "rate": Kind(optional(instance_of(Rate)), "write rate=Rate(100, per=60), or None for no rate"),
    "share": Kind(
        optional(instance_of(str, Share)),
        'a template such as share="{tenant}", a Share("{tenant}", weights={"gold": 3}), or None',
    ),
    "keep": Kind(
        optional(lambda value: _is_span(value) or is_text(value) or isinstance(value, Retention)),
        'a number of seconds, a timedelta, a text such as "7d", or a Retention; None for the settings',
    ),
    "enabled": Kind(
        FLAG.fits, 'True or False; an environment variable is a text: write os.environ.get("NAME") != "off"'
    ),
    "aliases": Kind(_are_names, 'the former names of the task, e.g. aliases=["old_name"]'),
    "schedule": Kind(
        _is_schedule,
        f"{TRIGGER.words}; or a list of triggers, or triggers by name",
    ),
    "grace": Kind(optional(_is_span), f"{SPAN}; None for no bound"),
    "start": INSTANT,
    "end": INSTANT,
    "buffer": Kind(optional(_is_count), "a whole number from 1"),
    "times": Kind(optional(_is_count), "a whole number from 1, or None"),
    "breaker": Kind(optional(instance_of(Breaker)), "write breaker=Breaker(3), or None"),
    "activity": Kind(optional(instance_of(Activity)), "write activity=Activity(after=60), or None"),
    "expect": Kind(TRIGGER.fits, "a time of day such as '07:00', or a trigger such as DailyAt(7)"),
}
"""The options that a kind checks."""
ELSEWHERE = (
    "lost",
    "trace",
    "priority",
    "executor",
    "unique",
    "join",
    "middleware",
    "on_success",
    "on_failure",
    "on_cancel",
    "fail_on",
    "overlap",
    "catch_up",
    "once",
    "queue",
)
"""The options whose values the domain checks, against a list of choices or a range."""

USING: dict[str, Kind] = {
    "within": WITHIN,
    "delay": Kind(optional(_is_span), SPAN),
    "at": INSTANT,
    "expires": Kind(optional(lambda value: _is_span(value) or isinstance(value, datetime)), f"{SPAN}, or an instant"),
    "priority": Kind(optional(is_whole), "a whole number from -100 to 100, higher goes first"),
    "key": Kind(optional(is_text), "a text"),
    "queue": Kind(optional(is_text), "the name of a queue"),
    "timeout": Kind(
        optional(lambda value: _is_span(value) or is_text(value)),
        'a number of seconds, a timedelta, or a text such as "30s"',
    ),
    "retry": Kind(optional(instance_of(Retry)), "write retry=Retry(5)"),
    "headers": Kind(optional(instance_of(Mapping)), 'names with texts, e.g. headers={"tenant": "acme"}'),
    "id": Kind(optional(is_text), "a text of 1 to 63 printable characters without spaces"),
    "on_success": Kind(optional(instance_of(Callback)), "a task, or the name of a task"),
    "on_failure": Kind(optional(instance_of(Callback)), "a task, or the name of a task"),
    "on_cancel": Kind(optional(instance_of(Callback)), "a task, or the name of a task"),
    "wait": Kind(optional(instance_of(int, float)), "a number of seconds, or False"),
}

MEANT = {
    "autoretry_for": "write retry=Retry(5, rules={...})",
    "acks_late": 'a run whose worker dies is tried again by default; lost="fail" turns that off',
    "bind": "write `ctx: Context` as the first parameter of the function",
    "concurrency": "write limit=Limit(3)",
    "countdown": "say it when you submit: task.using(delay=60).submit(...)",
    "cron": 'write schedule="0 9 * * *"',
    "delay": "say it when you submit: task.using(delay=60).submit(...)",
    "eta": "say it when you submit: task.using(at=...).submit(...)",
    "expires": "say it when you submit: task.using(expires=60).submit(...)",
    "interval": "write schedule=Every(minutes=5)",
    "max_instances": "write limit=Limit(1)",
    "max_retries": "write retry=Retry(3)",
    "rate_limit": "write rate=Rate(100, per=60)",
    "retries": "write retry=Retry(3)",
    "retry_backoff": 'write retry=Retry(5, backoff="exponential")',
    "soft_time_limit": "write timeout=30",
    "throttle": "write rate=Rate(1, per=60)",
    "time_limit": "write timeout=30",
    "trigger": "write schedule=...",
    "ttl": "write timeout=30, or task.using(expires=60).submit(...)",
}
"""Options of other libraries, with what to write instead."""


def check_options_of(name: str, given: Mapping[str, object]) -> None:
    """Raise InvalidOptions for an option of `@app.task(...)` that is unknown, or of the wrong kind."""
    options = sorted(TaskOptions.__annotations__)
    for option in given:
        if option not in options:
            hint = f"; {MEANT[option]}" if option in MEANT else did_you_mean(option, options)
            words = f"task {name}: there is no option {option!r}{hint}"
            raise InvalidOptions(f"{words} (options: {', '.join(options)})")
    try:
        check_options(given, TASK)
    except TypeError as error:
        raise InvalidOptions(f"task {name}: {error}") from None


def check_using(name: str, given: Mapping[str, object]) -> None:
    """Raise InvalidOptions for an option of `task.using(...)` that is of the wrong kind."""
    try:
        check_options(given, USING)
    except TypeError as error:
        raise InvalidOptions(f"{name}.using: {error}") from None
