"""Options of the wrong kind are refused when the task is defined, with the task, the option and what to write."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota import Activity, Breaker, Context, InvalidOptions, Limit, Rate, Retry, Rota
from rota.domain.spec import TaskSpec
from rota.domain.user_key import UserKey
from rota.task import TaskOptions, definition_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal as Money

SLIPS: list[tuple[str, Any, str]] = [
    ("enabled", None, "True or False"),
    ("enabled", "x", "True or False"),
    ("enabled", 0, "True or False"),
    ("logs", "yes", "True or False"),
    ("trace", "child", "choose link or parent"),
    ("within", "1h", "a number of seconds"),
    ("unique_in", 7, "a name that tasks share"),
    ("max_pending", 1e3, "a whole number from 1"),
    ("max_pending", True, "a whole number from 1"),
    ("limit", 0, r"write limit=Limit\("),
    ("limit", 3, r"write limit=Limit\("),
    ("rate", False, r"write rate=Rate\("),
    ("rate", "100/m", r"write rate=Rate\("),
    ("rate", 5, r"write rate=Rate\("),
    ("activity", "x", r"write activity=Activity\("),
    ("aliases", None, r"aliases=\["),
    ("aliases", "abc", r"aliases=\["),
    ("aliases", [1], r"aliases=\["),
    ("description", 5, "a text"),
    ("keep", [1], "a number of seconds"),
    ("keep", "soon", "keep='soon'"),
    ("on_success", 5, "a task, or the name of a task"),
    ("on_failure", 5, "a task, or the name of a task"),
    ("on_cancel", len, "a task, or the name of a task"),
    ("middleware", 5, "a list of async functions"),
    ("middleware", [len], "is no async function"),
    ("name", 5, "a text"),
    ("retry", 3, r"write retry=Retry\("),
    ("retry", None, r"write retry=Retry\("),
    ("timeout", [1], "a number of seconds"),
    ("timeout", "soon", "30s"),
    ("timeout", True, "a number of seconds"),
    ("max_losses", "5", "a whole number"),
    ("key", 5, "a template"),
    ("schedule", 5, "a trigger such as"),
    ("expect", 5, "a trigger such as"),
    ("grace", [], "a number of seconds"),
    ("start", "2030-01-01", "an aware datetime"),
    ("end", 5, "an aware datetime"),
    ("fail_on", "x", "a function of the result"),
    ("once", 5, "a period such as"),
    ("executor", 1, "choose loop"),
    ("unique", 1, "choose 'queued'"),
    ("join", None, "choose keep"),
    ("lost", True, "choose 'retry'"),
    ("priority", "high", "a whole number from"),
    ("queue", "two words", "a name without spaces"),
    ("share", 5, "a template such as share="),
    ("overlap", 1, "choose skip"),
    ("buffer", 0, "a whole number from 1"),
    ("times", "3", "a whole number from 1"),
    ("breaker", 3, r"write breaker=Breaker\("),
    ("catch_up", None, "choose latest"),
]


@pytest.mark.parametrize(("option", "value", "cure"), SLIPS)
def test_an_option_of_the_wrong_kind_is_refused_with_a_cure(option: str, value: Any, cure: str) -> None:
    app = Rota("memory://")
    options: Any = {"name": "job", option: value}
    with pytest.raises(InvalidOptions, match=cure) as refused:
        app.task(**options)(lambda: None)
    told = str(refused.value)
    assert option in told
    assert told.startswith(f"task {value if option == 'name' else 'job'}: ")
    if option != "timeout":
        assert repr(value) in told
    assert app.tasks == {}


@pytest.mark.parametrize(
    ("option", "cure"),
    [
        ("max_retries", r"write retry=Retry\(3\)"),
        ("bind", "ctx: Context"),
        ("retyr", "did you mean retry"),
        ("zzz", "options: activity, aliases"),
    ],
)
def test_an_unknown_option_names_the_task_and_the_likely_one(option: str, cure: str) -> None:
    app = Rota("memory://")
    options: Any = {"name": "job", option: 1}
    with pytest.raises(InvalidOptions, match=cure) as refused:
        app.task(**options)(lambda: None)
    assert f"task job: there is no option '{option}'" in str(refused.value)


@pytest.mark.parametrize(
    ("make", "cure"),
    [
        (lambda: Activity(after=1, breaker=3), r"Activity\(breaker=3\): write breaker=Breaker\("),  # type: ignore[arg-type]
        (lambda: Activity(after="60"), "a number of seconds"),  # type: ignore[arg-type]
        (lambda: Activity(after=1, key=5), "a template"),  # type: ignore[arg-type]
        (lambda: Breaker("3"), "a whole number of failed runs"),  # type: ignore[arg-type]
        (lambda: Breaker(1.5), "a whole number of failed runs"),  # type: ignore[arg-type]
        (lambda: Rate(1, per_key=1), "True or False"),  # type: ignore[arg-type]
        (lambda: Rate(1, per="60"), "a number of seconds"),  # type: ignore[arg-type]
        (lambda: Retry(rules=1), r"rules=\{ValueError: Retry\(0\)\}"),  # type: ignore[arg-type]
        (lambda: Retry(rules={"ValueError": Retry(0)}), r"rules=\{ValueError: Retry\(0\)\}"),  # type: ignore[dict-item]
        (lambda: UserKey(device="x"), "True or False"),  # type: ignore[arg-type]
    ],
)
def test_a_policy_with_a_part_of_the_wrong_kind_is_refused(make: Any, cure: str) -> None:
    with pytest.raises(ValueError, match=cure):
        make()


@pytest.mark.parametrize(
    "said", [{"delay": [1]}, {"priority": "high"}, {"key": 5}, {"wait": "x"}, {"at": 5}, {"expires": []}]
)
def test_using_refuses_the_wrong_kind_at_once(said: dict[str, Any]) -> None:
    app = Rota("memory://")
    task = app.task(name="job")(lambda: None)
    with pytest.raises(InvalidOptions, match=rf"job\.using: {next(iter(said))}="):
        task.using(**said)


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 5), st.floats(), st.text(max_size=3), st.lists(st.integers(), max_size=2)
)


@given(option=st.sampled_from(sorted(TaskOptions.__annotations__)), value=VALUES)
def test_what_is_accepted_can_be_published_and_read_again(option: str, value: Any) -> None:
    app = Rota("memory://")
    options: Any = {"name": "job", option: value}
    try:
        task = app.task(**options)(lambda: None)
    except InvalidOptions as refused:
        assert "job" in str(refused) or option == "name"  # noqa: PT017
    else:
        spec = definition_of(task).spec
        assert msgspec.json.decode(msgspec.json.encode(spec), type=TaskSpec) == spec


def test_a_builtin_without_a_signature_gets_a_sentence() -> None:
    with pytest.raises(InvalidOptions, match="wrap it in a function of your own"):
        Rota("memory://").task(name="job")(max)


def test_the_context_is_refused_where_it_would_be_taken_for_an_argument() -> None:
    app = Rota("memory://")

    def second(x: int, ctx: Context) -> None: ...
    def bare(ctx, x): ...  # type: ignore[no-untyped-def]
    def bare_second(x: int, ctx) -> None: ...  # type: ignore[no-untyped-def]
    def maybe(ctx: Context | None = None) -> None: ...
    def named(*, ctx: Context) -> None: ...

    misplaced: list[Callable[..., None]] = [second, maybe, named]
    for fn in misplaced:
        with pytest.raises(InvalidOptions, match="the Context comes first: write `ctx: Context`"):
            app.task(fn)
    unsaid: list[Callable[..., None]] = [bare, bare_second]
    for fn in unsaid:
        with pytest.raises(InvalidOptions, match="ctx has no annotation; write `ctx: Context`"):
            app.task(fn)
    assert app.tasks == {}

    @app.task
    def own(ctx: dict[str, int], x: int) -> None: ...

    @app.task
    def right(run: Context, x: int) -> None: ...

    assert (definition_of(own).takes_context, definition_of(right).takes_context) == (False, True)


def test_a_type_that_is_only_there_for_the_type_checker_gets_advice() -> None:
    def pay(amount: Money) -> None: ...

    with pytest.raises(InvalidOptions, match=r"task pay: .*'Money' is not defined.*not under `if TYPE_CHECKING:`"):
        Rota("memory://").task(pay)


@pytest.mark.parametrize("timeout", [90, 90.0, timedelta(seconds=90), "90s", "1m30s"])
def test_a_timeout_is_seconds_a_timedelta_or_a_text(timeout: Any) -> None:
    task = Rota("memory://").task(name="job", timeout=timeout)(lambda: None)
    assert definition_of(task).spec.policy.timeout == 90.0


def test_limits_and_rates_that_are_right_are_taken() -> None:
    task = Rota("memory://").task(name="job", limit=Limit(3), rate=Rate(100, 60), max_pending=5)(lambda: None)
    assert definition_of(task).spec.limit == Limit(3)
