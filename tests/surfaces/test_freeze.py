"""`rota freeze` and `rota thaw`: nothing starts in the namespace, `why` says so, and workers go on afterwards."""

from datetime import UTC, datetime, timedelta

import pytest

from rota import InvalidOptions, Rota, State
from rota.testing import StoreClock
from tests.surfaces.called import Called, waiting


def test_a_frozen_namespace_starts_nothing_and_why_says_so(rota: Called) -> None:
    rota.put(waiting("run-number-1"))

    assert rota.json("freeze", "--until", "2h", "--note", "upgrade of the disks")["frozen"] is True
    shown = rota("why", "greet")
    assert "nothing starts here" in shown
    assert "upgrade of the disks" in shown
    assert rota("thaw").strip() == "runs start again"
    assert rota("thaw").strip() == "nothing was frozen"
    assert "nothing starts here" not in rota("why", "greet")
    rota("freeze", "--until", "2020-01-01T00:00Z", code=2)
    assert "is past" in rota.err


async def test_an_app_freezes_and_thaws() -> None:
    app = Rota("memory://")

    @app.task
    async def greet() -> str:
        return "hello"

    async with app:
        assert await app.freeze(note="deploy")
        run = await greet.submit()
        assert "deploy" in str(await run.why())
        assert (await run.refresh()).state is State.QUEUED
        assert await app.thaw()
        assert await run.result(timeout=10) == "hello"
        assert not await app.thaw()


@pytest.mark.parametrize("given", ["seconds", "a span", "an instant"])
async def test_a_freeze_ends_after_seconds_or_at_an_instant(given: str) -> None:
    span = timedelta(minutes=10)
    spans: dict[str, float | timedelta | datetime] = {
        "seconds": 600,
        "a span": span,
        "an instant": datetime.now(UTC) + span,
    }
    app = Rota("memory://")
    run = await app.task(name="greet")(lambda: None).submit()
    assert await app.freeze(spans[given])
    assert "nothing starts here" in str(await run.why())
    StoreClock(app.backend).move(seconds=601)
    assert not await app.thaw(), "it is over"
    await app.stop()


async def test_a_freeze_that_is_over_before_it_begins_is_refused() -> None:
    app = Rota("memory://")
    with pytest.raises(InvalidOptions, match="is past: nothing is frozen"):
        await app.freeze(datetime(2020, 1, 1, tzinfo=UTC))
    with pytest.raises(InvalidOptions, match="is past"):
        await app.freeze(0)
    with pytest.raises(InvalidOptions, match="a number of seconds"):
        await app.freeze("2h")  # type: ignore[arg-type]
    assert not await app.thaw()
