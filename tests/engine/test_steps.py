"""A step on a worker that has its task, but not the code of its flow."""

import pytest

from rota import Inputs, Period, Rota, RunFailed
from rota.domain.lifecycle import UNBINDABLE_RELEASES
from rota.stores.memory import MemoryBackend


def define(app: Rota, calls: list[str]) -> None:
    @app.task
    async def load(day: str) -> None:
        calls.append(day)


async def test_it_is_left_to_workers_that_have_it_and_fails_where_nobody_does() -> None:
    backend, calls = MemoryBackend(), list[str]()
    whole, part = Rota(backend), Rota(backend)
    define(whole, calls)
    define(part, calls)

    def arguments(inputs: Inputs) -> dict[str, str]:
        return {"day": inputs.period}

    flow = whole.flow("day", once=Period.day())
    flow.step(whole.tasks["load"], args=arguments)
    run = (await flow.start("2026-11-15"))["load"].run
    async with part:
        for times in range(1, UNBINDABLE_RELEASES + 1):
            heard = await part.client().news(0.0)
            while len((await part.handle(run).refresh()).attempts) < times:
                heard = await part.client().news(1.0, heard)
            backend.skew += 60
        with pytest.raises(RunFailed, match="no code of flow day that says how step load is called"):
            await part.handle(run).result(timeout=30)
    assert calls == []
    async with whole:
        await flow.start("2026-11-15")
        assert (await flow.wait("2026-11-15", timeout=30)).done
    assert calls == ["2026-11-15"]
