"""Fan-out: a run for each item of a list, and one that gets all results."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest

from rota import Chain, InvalidArguments, InvalidOptions, Limit, Results, Rota, RunCancelled, RunFailed, State
from rota.cli.runs.view import outcome
from rota.domain.run import Progress
from rota.store import Command, RunQuery
from rota.store.paging import with_fans
from rota.testing import simulate
from rota.testing.simulation import Simulation

START = datetime(2026, 11, 15, 3, 0, tzinfo=ZoneInfo("Europe/Paris"))
app = Rota("memory://")


@app.task
async def square(n: int, by: int = 1) -> int:
    if n < 0:
        raise ValueError(f"{n} is negative")
    return n * n * by


@app.task
async def add(results: Results[int]) -> int:
    return sum([result async for result in results])


@app.task
def collect(results: Results[int]) -> dict[str, Any]:
    failed = [(child.index, child.state, str(child.error)) for child in results.failed]
    return {"results": list(results), "failed": failed, "len": len(results), "total": results.total}


@app.task
async def numbers(count: int) -> list[int]:
    return list(range(count))


@app.task
def counted(count: int) -> Iterator[int]:
    yield from range(count)


@app.task
async def streamed(count: int) -> AsyncIterator[int]:
    for n in range(count):
        yield n


def played(scenario: Callable[[Simulation], Awaitable[object]], of: Rota = app) -> Simulation:
    return simulate(of, START, START + timedelta(hours=1), scenario=scenario)


def result_of(chain: Chain[Any], of: Rota = app) -> Any:
    got = list[Any]()

    async def scenario(sim: Simulation) -> None:
        got.append(await (await chain.submit()).result())

    played(scenario, of)
    return got[0]


def test_a_list_makes_a_run_for_each_item_and_one_that_gets_the_results() -> None:
    assert result_of(square.map([3, 1, 2]) >> add) == 14
    assert result_of(square.map([3, 1, 2]) >> collect) == {"results": [9, 1, 4], "failed": [], "len": 3, "total": 3}
    assert result_of(square.map(range(2), args={"by": 5}) >> add) == 5
    assert result_of(square.map([]) >> add) == 0


@pytest.mark.parametrize("mapper", [numbers, counted, streamed])
def test_the_items_are_what_a_task_returns_or_yields(mapper: Any) -> None:
    assert result_of(mapper.bind(4) >> square.each() >> add) == 14
    assert result_of(mapper.bind(0) >> square.each() >> add) == 0


def test_the_children_are_put_in_chunks_and_read_page_by_page() -> None:
    assert result_of(counted.bind(1_200) >> square.each(args={"by": 0}) >> add) == 0
    assert result_of(square.map([1] * 1_200) >> collect)["results"] == [1] * 1_200


def test_the_ids_are_made_of_the_mapper_and_the_index() -> None:
    async def scenario(sim: Simulation) -> None:
        handle = await (numbers.bind(2) >> square.each() >> add).submit()
        await handle.result()
        mapper = handle.steps["numbers"].id
        assert [run.id for run in sim.of(square)] == [f"{mapper}.0", f"{mapper}.1"]
        assert {run.origin.of for run in sim.of(square)} == {mapper}
        assert await handle.steps["numbers"].result() == 2  # the list itself is stored nowhere

    played(scenario)


def test_a_gather_may_be_followed_and_spread_again() -> None:
    @app.task(name="list_all")
    def list_all(results: Results[int]) -> list[int]:
        return list(results)

    assert result_of(numbers.bind(3) >> square.each() >> list_all >> square.each() >> add >> square) == 17 * 17


def test_by_default_one_failure_stops_the_others_and_fails_the_gather() -> None:
    own = Rota("memory://")

    @own.task(limit=Limit(1))
    async def fragile(n: int) -> int:
        if n == 1:
            raise ValueError("broken")
        return n

    @own.task
    async def gather(results: Results[int]) -> int:
        raise AssertionError("it is never called")

    async def scenario(sim: Simulation) -> None:
        handle = await (fragile.map(range(20)) >> gather).submit()
        with pytest.raises(RunFailed, match=r"1 of 20 runs ended without success, 0 may: .*broken"):
            await handle.result()
        states = [run.state for run in sim.of(fragile)]
        assert states[:2] == [State.SUCCEEDED, State.FAILED]
        assert set(states[3:]) == {State.CANCELLED}

    played(scenario, own)


def test_failures_can_be_collected_or_counted() -> None:
    got = result_of(square.map([2, -1, 3], failures="collect") >> collect)
    assert got["results"] == [4, 9]
    assert got["failed"] == [[1, "failed", "ValueError: -1 is negative"]]
    assert (got["len"], got["total"]) == (2, 3)
    assert result_of(square.map([2, -1, 3], failures=1) >> add) == 13
    with pytest.raises(RunFailed, match="2 of 3 runs"):
        result_of(square.map([2, -1, -3], failures=1) >> add)


def test_a_cancelled_chain_cancels_its_children() -> None:
    async def scenario(sim: Simulation) -> None:
        handle = await (square.using(delay=600).map(range(5)) >> add).submit()
        assert await handle.cancel() == 6
        with pytest.raises(RunCancelled):
            await handle.result()

    played(scenario)


def test_a_retried_gather_gets_the_results_again() -> None:
    own, calls = Rota("memory://"), list[int]()

    @own.task
    async def double(n: int) -> int:
        return 2 * n

    @own.task
    async def gather(results: Results[int]) -> int:
        calls.append(len(results))
        if len(calls) == 1:
            raise ValueError("once")
        return sum([result async for result in results])

    async def scenario(sim: Simulation) -> None:
        handle = await (double.map([1, 2]) >> gather).submit()
        with pytest.raises(RunFailed):
            await handle.result()
        assert await (await handle.steps["gather"].retry()).result() == 6

    played(scenario, own)


def test_the_same_task_may_be_in_a_chain_several_times_and_takes_results_by_position() -> None:
    @app.task(name="subtract")
    async def subtract(a: int, b: int = 1) -> int:
        return a - b

    @app.task(name="differ")
    async def differ(left: int, right: int) -> int:
        return left - right

    assert result_of(subtract.bind(10) >> subtract >> subtract) == 7
    assert result_of(subtract.bind(10) >> [subtract, subtract.bind(3)] >> differ) == 6


def test_why_and_lists_say_how_many_have_ended() -> None:
    async def scenario(sim: Simulation) -> None:
        await (square.map([1, 2], failures="collect") >> add).submit()
        handle = await (square.using(delay=600).map([1, 2, 3], failures="collect") >> add).submit()
        gather = handle.steps["add"]
        first = (await app.client().runs(RunQuery(task="square", limit=1))).runs[0]
        await app.client().control(Command.CANCEL, [first.id])
        why = str(await gather.why())
        assert f"run {gather.id} waits for 2 of 3 runs to end; 1 have ended without success" in why
        page = await with_fans(app.client(), await app.client().runs(RunQuery(ids=[gather.id])))
        assert page.runs[0].progress == Progress(1 / 3, "1/3, 1 without success")
        assert outcome(page.runs[0], page.now) == "waits for the runs of its list, 33% 1/3, 1 without success"
        await handle.result()

    played(scenario)


def test_what_is_no_fan_out_is_refused_with_a_sentence() -> None:
    @app.task(name="untyped")
    async def untyped(results: list[int]) -> int:
        return 0

    with pytest.raises(InvalidOptions, match=r"annotate it, as in `def untyped\(results: Results\[int\]\)`"):
        square.map([1]) >> untyped  # type: ignore[operator]
    with pytest.raises(InvalidOptions, match="failures='some': 'stop', 'collect', or how many may fail"):
        square.map([1], failures="some")  # type: ignore[arg-type]
    with pytest.raises(InvalidArguments, match=r"item 1: square"):
        square.map(cast("list[int]", [1, "two"]))
    with pytest.raises(InvalidOptions, match=r"map\(\) begins a chain"):
        numbers.bind(3) >> square.map([1])  # type: ignore[operator]
    with pytest.raises(InvalidOptions, match=r"one task before each\(\) gives the items"):
        _ = Chain(((numbers.bind(1), numbers.bind(2)),)) >> square.each()
    with pytest.raises(InvalidArguments, match="more than 100,000 items"):
        square.map(range(100_001))
    with pytest.raises(RunFailed, match=r"square returned int; the task before each\(\) returns a list, or yields"):
        result_of(square.bind(2) >> square.each() >> add)  # type: ignore[operator]
