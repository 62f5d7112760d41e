"""`rota tasks set` and `app.override`: what an operator says of a task wins over its code."""

import asyncio
from typing import Any

import pytest

from rota import InvalidOptions, Limit, Retry, Rota, RunFailed, State
from tests.surfaces.called import Called, waiting


def test_a_value_is_set_shown_and_taken_away(rota: Called) -> None:
    rota.put(waiting("run-number-1"))
    (made,) = rota.json("tasks", "set", "greet", "limit=5", "timeout=90s", "--note", "flood")
    assert (made["overrides"]["limit"]["total"], made["overrides"]["timeout"]) == (5, 90.0)
    assert "overridden by" in rota("tasks")
    shown = rota("why", "greet")
    assert "wins over the code: limit, timeout" in shown
    assert "flood" in shown
    (made,) = rota.json("tasks", "set", "greet", "limit=")
    assert (made["overrides"]["limit"], made["overrides"]["timeout"]) == (None, 90.0)
    (made,) = rota.json("tasks", "set", "greet", "--clear")
    assert made["overrides"] is None
    assert "wins over the code" not in rota("why", "greet")
    for wrong in ("key=x", "limit=many", "limit", "limit=0"):
        rota("tasks", "set", "greet", wrong, code=2)


async def test_a_worker_calls_with_the_retry_and_the_timeout_of_an_override() -> None:
    app, tries = Rota("memory://"), list[str]()

    @app.task(retry=Retry(0, rules={KeyError: Retry(0)}))
    async def fail(how: str) -> None:
        tries.append(how)
        if how == "slow":
            await asyncio.Event().wait()
        raise KeyError(how) if how == "key" else ValueError(how)

    assert await app.override("fail", retry=Retry(1, delay=0), timeout=0.05)
    async with app:
        runs = [await fail.submit(how) for how in ("value", "key", "slow")]
        for run in runs:
            with pytest.raises(RunFailed):
                await run.result(timeout=30)
    assert [(await run.refresh()).state for run in runs] == [State.FAILED] * 3
    assert sorted(tries) == ["key", "slow", "slow", "value", "value"], "the rules of the code still hold"


async def test_the_code_says_what_no_operator_may() -> None:
    app = Rota("memory://")

    @app.task(enabled=False)
    async def off() -> None: ...

    mistakes: list[dict[str, Any]] = [{"enabled": True}, {"limit": Limit(per_key=1)}, {"timeout": -1.0}, {"queue": "x"}]
    for wrong in mistakes:
        with pytest.raises(InvalidOptions):
            await app.override("off", **wrong)


@pytest.mark.parametrize(
    "wrong", [{"limit": 3}, {"limit": [Limit(3)]}, {"rate": "100/m"}, {"retry": 3}, {"enabled": 0}, {"timeout": "90s"}]
)
async def test_a_value_of_the_wrong_kind_is_refused_before_every_process_has_to_read_it(wrong: dict[str, Any]) -> None:
    app = Rota("memory://")

    @app.task
    async def resize() -> None: ...

    with pytest.raises(InvalidOptions, match=next(iter(wrong))):
        await app.override("resize", **wrong)
    assert await app.override("resize", limit=Limit(3)), "nothing is in its way"
