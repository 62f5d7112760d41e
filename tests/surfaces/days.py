"""A flow beside a command's store: load → left, right → join; any of them fails when it is told to."""

import asyncio
from typing import Any

from rota import Period, Rota, Trigger
from rota.domain.decision import Decision
from rota.domain.flow import OnFailure
from rota.flow import specs_of
from tests.surfaces.called import Called


class Day:
    def __init__(
        self,
        rota: Called,
        recheck: Trigger | str | None = "every 24h",
        on_failure: OnFailure = "block",
        **options: Any,
    ) -> None:
        self.app = Rota(rota.url, name="shop", tz="Europe/Paris")
        self.failing: set[str] = set()
        self.flow = self.app.flow("day", once=Period.day(), recheck=recheck, on_failure=on_failure)
        load, left, right, join = (self._task(name) for name in ("load", "left", "right", "join"))
        self.flow.step(load)
        self.flow.step(left, after=[load])
        self.flow.step(right, after=[load])
        self.flow.step(join, after=[left, right], **options)

    def _task(self, name: str) -> Any:
        @self.app.task(name=name)
        async def work() -> None:
            if name in self.failing:
                raise ValueError(f"no {name} today")

        return work

    def work(self, period: str | None = None) -> str:
        """Starts a period and works until nothing of it can go on; its name."""

        async def started() -> str:
            async with self.app:
                name = await self.flow.period(period)
                await self._settled(await self.flow.start(name))
                return name

        return asyncio.run(started())

    def go_on(self) -> None:
        """Works off what the store holds, until all of the day is done."""

        async def on() -> None:
            async with self.app:
                runs = [step.run for step in (await self.flow.status()).steps.values() if step.run is not None]
                for run in runs:
                    await self.app.client().ended(run.id, 30)

        asyncio.run(on())

    async def _settled(self, put: dict[str, Decision]) -> None:
        """Each step that can start has ended: those behind a failing one never do."""
        stuck: set[str] = set()
        for name, step in specs_of(self.flow).items():
            if stuck & set(step.after):
                stuck.add(name)
                continue
            await self.app.client().ended(put[name].run, 30)
            if name in self.failing:
                stuck.add(name)
