"""A day and a bit in a moment: the API and the app as they are, in virtual time, with a model that falls asleep."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from examples.context_app.api import api
from examples.context_app.app import app, log
from examples.context_app.memories import Memories, Model, open_memories, the_model
from examples.journal import listening
from rota.testing import Simulation, simulate

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
Playing = Callable[["Story"], Awaitable[object]]


class Story:
    """The app from noon on. `http` asks its API, `model` is what it asks, `journal` is what was said."""

    def __init__(self, hours: float = 30) -> None:
        self.journal: list[str] = []
        self.model = Model(seconds=40)
        self.executions: list[dict[str, Any]] = []
        self.http: httpx.AsyncClient
        self.simulation: Simulation
        self._end = NOON + timedelta(hours=hours)

    def play(self, playing: Playing, workers: int = 2) -> "Story":
        async def scenario(simulation: Simulation) -> None:
            self.simulation = simulation
            transport = httpx.ASGITransport(api)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as self.http:
                await playing(self)

        with closing(Memories(":memory:")) as memories, listening(log, self.tell):

            async def opened() -> AsyncGenerator[Memories]:
                yield memories

            async def model() -> Model:
                return self.model

            before = dict(api.dependency_overrides)
            api.dependency_overrides |= {open_memories: opened, the_model: model}
            try:
                self.simulation = simulate(app, NOON, self._end, scenario=scenario, workers=workers)
            finally:
                api.dependency_overrides = before
        return self

    def tell(self, what: str) -> None:
        self.journal.append(f"{self.simulation.now:%H:%M}  {what}")

    async def until(self, clock: str, days: int = 0, seconds: float = 0) -> None:
        """Wait until `13:05`, today or some days later."""
        hour, minute = map(int, clock.split(":"))
        then = NOON.replace(hour=hour, minute=minute) + timedelta(days=days, seconds=seconds)
        await asyncio.sleep((then - self.simulation.now).total_seconds())

    async def push(self, user: str, text: str = "hello", **more: str) -> dict[str, Any]:
        """Push a text; return what became of the summary."""
        answer = await self.http.post("/api/push/chat", json={"user_id": user, "text": text, **more})
        found: dict[str, Any] = answer.raise_for_status().json()["hierarchy_summary"]
        self.tell(f"-- {user} pushes {text!r}: {found['reason']}")
        return found

    async def get(self, path: str, **query: Any) -> Any:
        return (await self.http.get(path, params=query)).raise_for_status().json()


async def a_day(story: Story) -> None:
    """Three users. Only ada is lucky."""
    await story.push("ada", "I like tea")
    await story.until("12:10")
    await story.push("ada", "green tea")
    await story.push("bob", "on the road", device_id="phone")
    await story.until("12:40")
    await story.push("ada", "too soon after the last summary")

    await story.until("12:45")
    await story.push("eve", "one")
    await story.until("13:15", seconds=10)
    story.tell("-- the worker that summarises eve dies")
    story.simulation.crash()
    await story.until("13:16")
    await story.push("eve", "two, while the summary of one is made")

    await story.until("13:50")
    story.tell("-- the model falls asleep")
    story.model.asleep = True
    for clock in ("14:00", "15:01", "16:02"):
        await story.until(clock)
        await story.push("bob", "hello?", device_id="phone")
    await story.until("17:03")
    await story.push("bob", "is anybody there?", device_id="phone")
    story.tell("-- the model wakes up")
    story.model.asleep = False
    await story.until("17:10")
    await story.push("ada", "coffee, after all")

    await story.until("16:40", days=1)
    await story.push("bob", "a day later", device_id="phone")
    await story.until("17:30", days=1)
    story.executions = await story.get("/api/monitoring/scheduler/executions", limit=50)
