"""Fan-out on every store: the gather gets all results, once, also from a thread."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from rota import Ended, InvalidArguments, InvalidOptions, Results, Retry, Rota, RunFailed, State
from rota.domain.fan import MOST, Fan
from rota.errors import StoreError
from rota.store import Backend, RunQuery
from rota.stores.memory import MemoryBackend
from storekit.faults import FaultyBackend


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

    @app.task
    async def hasty(results: Results[int]) -> list[str]:
        return [child.id for child in results.failed]  # nor here, even if none has failed

    async with app:
        handle = await (find.bind(1_200) >> double.each() >> gather).submit()
        assert await handle.result(timeout=60) == 1_199 * 1_200
        assert calls == [1_200]
        fan = handle.steps["find"].id
        (counts,) = [row for row in (await app.client().rows(Fan)).items if row.id == fan]
        assert (counts.total, counts.ended, counts.failed) == (1_200, 1_200, 0)
        page = await app.client().runs(RunQuery(task="double", state=[State.SUCCEEDED], limit=2_000))
        assert len({run.id for run in page.runs}) == 1_200
        for wrong in (greedy, hasty):
            with pytest.raises(RunFailed, match="write `async for result in results`"):
                await (await (double.map([1]) >> wrong).submit()).result(timeout=60)


@pytest.mark.parametrize("known", [True, False], ids=["map", "each"])
async def test_a_child_has_all_that_using_says(backend: Backend, known: bool) -> None:
    app, told = Rota(backend), list[str]()

    @app.task
    def find() -> list[int]:
        return [1, 2]

    @app.task
    async def note(ended: Ended) -> None:
        told.append(ended.id)

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    @app.task
    async def gather(results: Results[int]) -> int:
        return sum([n async for n in results])

    until = datetime.now(UTC) + timedelta(days=1)
    using = double.using(
        key="k", headers={"tenant": "acme"}, on_success=note, timeout=30, priority=4, expires=until, delay=0.001
    )
    async with app:
        chain = using.map([1, 2]) >> gather if known else find.bind() >> using.each() >> gather
        assert await (await chain.submit()).result(timeout=60) == 6
        for callback in [found async for found in app.runs(task="note")]:
            await callback.result(timeout=60)
        children = [found.seen async for found in app.runs(task="double")]
        assert sorted(told) == sorted(child.id for child in children)
        assert {(child.key, child.headers["tenant"], child.priority, child.policy.timeout) for child in children} == {
            ("k", "acme", 4, 30)
        }
        assert [child.expires_at for child in children] == pytest.approx([until.timestamp()] * 2)
        assert [round(child.due_at - child.created_at, 6) for child in children] == [0.001] * 2
        with pytest.raises(InvalidOptions, match="each item of a fan-out makes a run"):
            _ = double.using(unique="queued").map([1])


async def test_a_text_is_no_list_of_items() -> None:
    app = Rota("memory://")

    @app.task
    async def resize(path: str) -> None: ...

    with pytest.raises(InvalidArguments, match=r"write \[item\]"):
        resize.map("a.png")


async def test_children_start_while_the_mapper_still_yields(backend: Backend) -> None:
    """1,001 items: the first thousand are put, and the first of them succeeds, before the mapper goes on."""
    app, first = Rota(backend), threading.Event()

    @app.task
    def find() -> Iterator[int]:
        yield from range(1_000)
        assert first.wait(30), "no child has started"
        yield 1_000

    @app.task
    async def touch(n: int) -> int:
        first.set()
        return n

    @app.task
    async def gather(results: Results[int]) -> int:
        return sum([n async for n in results])

    async with app:
        handle = await (find.bind() >> touch.each() >> gather).submit()
        assert await handle.result(timeout=60) == 1_000 * 1_001 // 2
        assert await handle.steps["find"].result() == 1_001


async def test_a_mapper_that_fails_after_a_part_is_called_again_and_makes_no_child_twice(backend: Backend) -> None:
    app, calls, touched = Rota(backend), list[int](), list[int]()

    @app.task(retry=Retry(1, backoff="fixed", delay=0))
    async def find() -> AsyncIterator[int]:
        calls.append(1)
        for n in range(1_005):
            yield n
        if len(calls) == 1:
            raise ValueError("once")

    @app.task
    async def touch(n: int) -> int:
        touched.append(n)
        return n

    @app.task
    async def gather(results: Results[int]) -> int:
        return len(results)

    async with app:
        handle = await (find.bind() >> touch.each() >> gather).submit()
        assert await handle.result(timeout=60) == 1_005
    assert len(calls) == 2
    assert sorted(touched) == list(range(1_005))


async def test_a_mapper_whose_store_fails_is_given_back_and_not_charged() -> None:
    backend = FaultyBackend(MemoryBackend())
    app, calls = Rota(backend), list[int]()

    @app.task
    async def find() -> AsyncIterator[int]:
        calls.append(1)
        if len(calls) == 1:
            backend.fail("put", StoreError("no disk"))
        for n in range(3):
            yield n

    @app.task
    async def touch(n: int) -> int:
        return n

    @app.task
    async def gather(results: Results[int]) -> int:
        return len(results)

    async with app:
        handle = await (find.bind() >> touch.each() >> gather).submit()
        assert await handle.result(timeout=60) == 3
        (run,) = (await app.client().runs(RunQuery(task="find"))).runs
    assert (len(calls), run.failures) == (2, 0)


async def test_a_map_whose_submitter_dies_between_two_parts_leaves_a_gather_that_waits_and_says_so() -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)

    @app.task
    async def touch(n: int) -> int:
        return n

    @app.task
    async def gather(results: Results[int]) -> int:
        return len(results)

    class Killed(BaseException):
        pass

    async with app:
        backend.fail("put", Killed(), after=1)
        with pytest.raises(Killed):
            await (touch.map(range(1_500)) >> gather).submit()
        (waiting,) = [run async for run in app.runs(task="gather")]
        while (await app.runs(task="touch", state="succeeded").count()).count < 1_000:
            await app.client().news(0.05)
        assert "waits for 500 of 1,500 runs to end" in str(await app.handle(waiting.id).why())
        assert await app.handle(waiting.id).cancel()


async def test_a_thread_that_yields_on_after_its_timeout_makes_no_more_children() -> None:
    app, closed, given = Rota("memory://"), threading.Event(), list[int]()

    @app.task(timeout=0.1)
    def find() -> Iterator[int]:
        try:
            for n in range(MOST):
                given.append(n)
                yield n
        finally:
            closed.set()

    @app.task
    async def touch(n: int) -> int:
        return n

    @app.task
    async def gather(results: Results[int]) -> int:
        return len(results)

    async with app:
        handle = await (find.bind() >> touch.each() >> gather).submit()
        with pytest.raises(RunFailed, match="took longer than"):
            await handle.steps["find"].result(timeout=60)
        assert (await handle.steps["gather"].refresh()).state is State.QUEUED, "a retry of find may go on"
        assert await asyncio.to_thread(closed.wait, 60)
    assert len(given) < MOST


async def test_a_list_that_is_too_long_makes_no_child() -> None:
    app = Rota("memory://")

    @app.task
    async def find() -> list[int]:
        return list(range(MOST + 1))

    @app.task
    async def touch(n: int) -> int:
        return n

    @app.task
    async def gather(results: Results[int]) -> int:
        return len(results)

    async with app:
        handle = await (find.bind() >> touch.each() >> gather).submit()
        with pytest.raises(RunFailed, match="find returned 100,001 items"):
            await handle.steps["find"].result(timeout=60)
        assert [run async for run in app.runs(task="touch")] == []
