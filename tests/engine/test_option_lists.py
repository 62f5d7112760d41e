"""An option of a task stands in one list; every place that has to know the option knows it."""

import inspect
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from rota import Activity, Breaker, Context, DailyAt, Limit, Period, Rate, Retry, Rota, Task
from rota.domain.intake import Options
from rota.engine.middleware import CallNext
from rota.settings import TaskOverride
from rota.settings.overrides import CODE_ONLY
from rota.task import Definition, TaskOptions, definition_of
from rota.task.kinds import ELSEWHERE, TASK, USING
from tests.engine.test_options import SLIPS

OPTIONS = sorted(TaskOptions.__annotations__)
DAY = datetime(2030, 1, 1, tzinfo=UTC)


def spec(field: str) -> Callable[[Definition], object]:
    return lambda task: getattr(task.spec, field)


def schedule(field: str) -> Callable[[Definition], object]:
    def read(task: Definition) -> object:
        made = task.schedules("UTC", "shop")
        return getattr(made[0], field) if made else None

    return read


async def passing(ctx: Context, call: CallNext) -> object:
    return await call()


READ: dict[str, tuple[object, Callable[[Definition], object], dict[str, object]]] = {
    "name": ("other", spec("name"), {}),
    "description": ("Does little.", spec("description"), {}),
    "retry": (Retry(3), spec("policy"), {}),
    "timeout": (5, spec("policy"), {}),
    "lost": ("fail", spec("policy"), {}),
    "max_losses": (2, spec("policy"), {}),
    "priority": (7, spec("priority"), {}),
    "queue": ("images", spec("queue"), {}),
    "share": ("{path}", spec("share"), {}),
    "trace": ("parent", lambda task: task.handler().trace, {}),
    "logs": (True, lambda task: task.handler().logs, {}),
    "executor": ("process", lambda task: task.handler().executor, {}),
    "key": ("{path}", spec("key"), {}),
    "unique": ("queued", spec("guards"), {}),
    "join": ("push", spec("guards"), {}),
    "within": (9, spec("guards"), {"unique": "done"}),
    "unique_in": ("shop", spec("guards"), {"unique": "active", "key": "{path}"}),
    "max_pending": (9, spec("guards"), {}),
    "limit": (Limit(3), spec("limit"), {}),
    "rate": (Rate(3), spec("rate"), {}),
    "keep": (60, spec("keep"), {}),
    "on_success": ("other", spec("on_end"), {}),
    "on_failure": ("other", spec("on_end"), {}),
    "on_cancel": ("other", spec("on_end"), {}),
    "middleware": ([passing], lambda task: task.handler().middleware, {}),
    "enabled": (False, spec("enabled"), {}),
    "fail_on": (bool, lambda task: task.handler().fail_on, {}),
    "aliases": (["old"], lambda task: task.aliases, {}),
    "schedule": (DailyAt(9), schedule("trigger"), {}),
    "overlap": ("queue", schedule("overlap"), {"schedule": DailyAt(9)}),
    "catch_up": ("all", schedule("catch_up"), {"schedule": DailyAt(9)}),
    "grace": (60, schedule("grace"), {"schedule": DailyAt(9)}),
    "start": (DAY, schedule("start"), {"schedule": DailyAt(9)}),
    "end": (DAY, schedule("end"), {"schedule": DailyAt(9)}),
    "buffer": (5, schedule("buffer"), {"schedule": DailyAt(9), "overlap": "buffer"}),
    "times": (5, schedule("times"), {"schedule": DailyAt(9)}),
    "breaker": (Breaker(3), schedule("guards"), {"schedule": DailyAt(9)}),
    "activity": (Activity(60), spec("activity"), {}),
    "once": (Period.day(), spec("once"), {}),
    "expect": (DailyAt(9), lambda task: (task.expect, task.spec.guards), {}),
}
"""Each option: a value that is not its default, where a definition shows the value, and which options it needs."""


def job(path: str = "") -> None: ...


def defined(options: Any) -> Definition:
    return definition_of(Rota("memory://").task(**options)(job))


@pytest.mark.parametrize("option", OPTIONS)
def test_a_definition_reads_every_option(option: str) -> None:
    assert option in READ, f"say in READ of this test which part of a Definition the option {option} changes"
    value, read, beside = READ[option]
    assert read(defined({**beside, option: value})) != read(defined(beside)), f"Definition does not read {option}"


@pytest.mark.parametrize("option", OPTIONS)
def test_rota_toml_changes_an_option_or_leaves_it_to_the_code(option: str) -> None:
    assert (option in TaskOverride.__struct_fields__) is not (option in CODE_ONLY), (
        f"put {option} into TaskOverride or into CODE_ONLY, both in rota/settings/overrides.py"
    )


@pytest.mark.parametrize("option", OPTIONS)
def test_the_kind_of_every_option_is_checked(option: str) -> None:
    assert (option in TASK) is not (option in ELSEWHERE), (
        f"put {option} into TASK or into ELSEWHERE, both in rota/task/kinds.py"
    )
    assert option in {slip[0] for slip in SLIPS}, f"add a wrong value of {option} to SLIPS in test_options.py"


def test_no_list_names_an_option_that_is_gone() -> None:
    assert {*READ, *TaskOverride.__struct_fields__, *CODE_ONLY, *TASK, *ELSEWHERE} <= set(OPTIONS)


def test_using_takes_the_options_of_a_submit() -> None:
    taken = [name for name in inspect.signature(Task.using).parameters if name not in ("self", "wait", "connection")]
    assert taken == [name for name in Options.__struct_fields__ if name != "origin"], (
        "give Task.using (rota/task/task.py) and Options (rota/domain/intake.py) the same options, in the same order"
    )
    assert set(USING) - {"wait"} == set(taken) - {"unique", "join", "lost"}, (
        "say in USING (rota/task/kinds.py) which values it takes"
    )
