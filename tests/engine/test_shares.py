"""Shares in an app: where the share of a run comes from, and what is refused."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota import Every, InvalidOptions, Rota, Share
from rota.app.core import core_of
from rota.errors import InvalidArguments
from rota.store import ClaimRequest, RunQuery
from rota.task.remote import call_by_spec
from rota.testing import drain, simulate

START = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def app() -> Rota:
    return Rota("memory://", concurrency=1)


async def test_the_share_of_a_run_comes_from_its_arguments(app: Rota) -> None:
    @app.task(share="{plan}/{tenant}")
    async def export(tenant: str, plan: str = "free") -> None: ...

    async with app.client():
        runs = [await export.submit("a"), await export.using(delay=5).submit("b", plan="gold")]
        await app.schedules.put("nightly", Every(hours=24), export.bind("d"))
        runs.append(await app.schedules.run_now("nightly"))
        found = (await app.client().runs(RunQuery(ids=[run.id for run in runs]))).runs
    assert [run.share for run in found] == ["free/a", "gold/b", "free/d"]
    (spec,) = core_of(app).registry.specs()
    assert call_by_spec(spec, ["c"], {}).to_run().share == "free/c", "a process without the code fills it too"


async def test_a_retry_of_an_ended_run_keeps_its_share(app: Rota) -> None:
    @app.task(share="{tenant}")
    async def fail(tenant: str) -> None:
        raise ValueError("no")

    async with app.client():
        run = await fail.submit("a")
        await drain(app)
        assert (await (await run.retry()).refresh()).share == "a"


async def test_weights_hold_over_ten_thousand_runs_and_whoever_is_alone_gets_everything(app: Rota) -> None:
    @app.task(share=Share("{tenant}", weights={"gold": 3}))
    async def export(tenant: str) -> None: ...

    async with app.client() as client:
        await client.declare(core_of(app).registry.published())  # as a worker does when it starts
        for _ in range(10):
            await app.submit_many([export.bind(tenant) for tenant in ("iron", "gold") for _ in range(1000)])
        store = await client.store()
        taken: list[str | None] = []
        for n in range(1, 21):  # a claim for each of 20 workers, which keep what they get
            taken += [run.share for run in (await store.claim(ClaimRequest(f"w{n}", 1, ["export"], 1000, 60))).runs]
    assert abs(taken[:10_000].count("gold") - 7_500) <= 375, "5 % of 7,500"
    assert taken.count("gold") == taken.count("iron") == 10_000
    assert set(taken[-5_000:]) == {"iron"}


def test_a_simulation_takes_turns(app: Rota) -> None:
    called: list[str] = []

    @app.task(share=Share("{tenant}", weights={"gold": 3}))
    async def export(tenant: str) -> None:
        called.append(tenant)

    async def scenario(_: object) -> None:
        await app.submit_many([export.bind(tenant) for tenant in ("iron", "gold") for _ in range(8)])

    simulate(app, START, START + timedelta(hours=1), scenario=scenario)
    assert sorted(called[:8]) == ["gold"] * 6 + ["iron"] * 2
    assert len(called) == 16


@pytest.mark.parametrize(
    ("share", "words"),
    [
        ("{nobody}", "there is no parameter 'nobody'; there are: tenant"),
        ("{", "share='{'"),
        (5, "a template such as share="),
    ],
)
def test_a_wrong_template_is_refused_at_the_definition(app: Rota, share: Any, words: str) -> None:
    with pytest.raises(InvalidOptions) as refused:

        @app.task(share=share)
        async def export(tenant: str) -> None: ...

    assert words in str(refused.value)


@pytest.mark.parametrize("weights", [{"a": 0}, {"a": 1.5}, {"a": 101}, {1: 1}, [], {str(n): 1 for n in range(1001)}])
def test_a_weight_is_a_whole_number(weights: Any) -> None:
    with pytest.raises(ValueError, match="weights"):
        Share("{tenant}", weights)


async def test_a_share_that_is_empty_is_refused(app: Rota) -> None:
    @app.task(share="{tenant}")
    async def export(tenant: str) -> None: ...

    with pytest.raises(InvalidArguments, match="1 to 512 characters"):
        await export.submit("")
