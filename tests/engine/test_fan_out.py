"""Fan-out on every store: the gather gets all results, once, also from a thread."""

import pytest

from rota import Results, Rota, RunFailed, State
from rota.domain.fan import Fan
from rota.store import Backend, RunQuery


async def test_the_gather_reads_all_results_page_by_page(backend: Backend) -> None:
    app, calls = Rota(backend), list[int]()

    @app.task
    def find(count: int) -> list[int]:
        return list(range(count))

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    @app.task
    def gather(results: Results[int]) -> int:
        calls.append(len(results))
        return sum(results)

    @app.task
    async def greedy(results: Results[int]) -> int:
        return sum(results)  # the event loop cannot wait

    async with app:
        handle = await (find.bind(1_200) >> double.each() >> gather).submit()
        assert await handle.result(timeout=60) == 1_199 * 1_200
        assert calls == [1_200]
        fan = handle.steps["find"].id
        (counts,) = [row for row in (await app.client().rows(Fan)).items if row.id == fan]
        assert (counts.total, counts.ended, counts.failed) == (1_200, 1_200, 0)
        page = await app.client().runs(RunQuery(task="double", state=[State.SUCCEEDED], limit=2_000))
        assert len({run.id for run in page.runs}) == 1_200
        if backend.url != "memory://":
            with pytest.raises(RunFailed, match="write `async for result in results`"):
                await (await (double.map([1]) >> greedy).submit()).result(timeout=60)
