"""`rota tasks pause --until` and `app.pause(until=)`: the pause of a task ends by itself."""

from datetime import UTC, datetime, timedelta

import pytest

from rota import InvalidOptions, Rota
from tests.surfaces.called import Called, waiting


def test_a_pause_says_its_end_and_one_that_is_past_is_refused(rota: Called) -> None:
    rota.put(waiting("run-number-1"))
    assert rota.json("tasks", "pause", "greet", "--until", "2h", "--note", "disk")[0]["changed"]
    (task,) = [each for each in rota.json("tasks") if each["task"] == "greet"]
    end = datetime.fromisoformat(task["paused_until"])
    assert timedelta(hours=1, minutes=59) < end - datetime.now(UTC) <= timedelta(hours=2)
    shown = rota("why", "greet")
    assert "disk" in shown
    assert "until" in shown
    assert "or `rota tasks resume greet`" in shown
    rota("tasks", "pause", "greet", "--until", "2020-01-01T00:00Z", code=2)
    assert "is past: nothing is paused" in rota.err
    rota("tasks", "pause", "greet", "--until", "2h", "--key", "k", code=2)
    assert "leave key= out" in rota.err
    assert rota.json("tasks", "pause", "greet")[0]["changed"], "now without an end"
    (task,) = [each for each in rota.json("tasks") if each["task"] == "greet"]
    assert (task["paused"], task["paused_until"]) == (True, None)


async def test_an_app_pauses_until_an_instant() -> None:
    app = Rota("memory://")

    @app.task
    async def greet() -> str:
        return "hello"

    end = datetime.now(UTC) + timedelta(hours=1)
    assert await app.pause("greet", until=end)
    assert not await app.pause("greet", until=end)
    with pytest.raises(InvalidOptions, match="past"):
        await app.pause("greet", until=datetime.now(UTC) - timedelta(hours=1))
    assert await app.resume("greet")
