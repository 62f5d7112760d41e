"""app.events in a simulation: days of events in a moment."""

import asyncio
from datetime import UTC, datetime, timedelta

from rota import Event, Rota
from rota.testing import Simulation, simulate

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_stream_hears_of_three_days_of_runs() -> None:
    app = Rota("memory://")
    heard: list[Event] = []

    @app.task(schedule="daily 04:00 UTC")
    async def nightly() -> None: ...

    async def scenario(_: Simulation) -> None:
        stream = await app.events().start()

        async def listen() -> None:
            while True:
                heard.append(await anext(stream))

        listening = asyncio.create_task(listen())
        await asyncio.sleep(3 * 86_400)
        listening.cancel()

    simulate(app, START, START + timedelta(days=3), scenario=scenario)
    names = [event.name for event in heard if event.of == "runs"]
    assert names == ["queued", "started", "succeeded"] * 3
    assert [event.reason for event in heard if event.name == "fired"] == ["accepted"] * 3
    hours = [datetime.fromtimestamp(event.at or 0, UTC).hour for event in heard if event.name == "succeeded"]
    assert hours == [4, 4, 4]
