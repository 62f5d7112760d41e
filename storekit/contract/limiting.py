"""Limits: how many runs run at once, in total and per key, counted from leases."""

import asyncio

import pytest

from rota.domain.lifecycle import Failed, Lost, Succeeded
from rota.domain.policy import Limit
from rota.domain.run import Run, State
from rota.domain.settlement import Verdict
from rota.store import Backend, ClaimRequest
from storekit.contract.stage import BOOM, GREET, LEASE, Stage, Staged, ids, new_run

BOTH = (GREET, "other")


class LimitContract(Staged):
    async def test_no_more_run_in_all_than_the_limit(self, stage: Stage) -> None:
        await stage.declare(Limit(3))
        news = [new_run() for _ in range(5)]
        await stage.put(*news)
        first = (await stage.claim(free=2)).runs + (await stage.claim("bob", free=9)).runs
        assert ids(first) == ids(news[:3])
        assert (await stage.claim("cyd")).runs == []
        await stage.end(first[1], Succeeded())
        assert (await stage.take("cyd")).id == news[3].id
        assert (await stage.claim("cyd")).runs == []

    async def test_no_more_run_for_a_key_than_the_limit(self, stage: Stage) -> None:
        await stage.declare(Limit(per_key=2))
        news = {key: [new_run(key=key) for _ in range(4)] for key in "kl"}
        await stage.put(*news["k"], *news["l"])
        claim = await stage.claim(free=9)
        assert ids(claim.runs) == ids(news["k"][:2] + news["l"][:2])
        assert (await stage.claim("bob", free=9)).runs == []
        await stage.end(claim.runs[0], Succeeded())
        assert ids((await stage.claim("bob", free=9)).runs) == [news["k"][2].id]

    async def test_both_limits_hold_together(self, stage: Stage) -> None:
        await stage.declare(Limit(3, per_key=2))
        await stage.put(*(new_run(key=key) for key in "kkkkll"))
        assert [run.key for run in (await stage.claim(free=9)).runs] == ["k", "k", "l"]

    async def test_runs_without_a_key_have_no_limit_per_key(self, stage: Stage) -> None:
        await stage.declare(Limit(per_key=1))
        await stage.put(*(new_run() for _ in range(4)))
        assert len((await stage.claim(free=9)).runs) == 4

    async def test_other_tasks_and_keys_are_not_held_up(self, stage: Stage) -> None:
        await stage.declare(Limit(1))
        await stage.declare(Limit(per_key=1), task="other")
        await stage.put(new_run(), new_run("other", key="k"))
        assert len((await stage.claim(free=9, tasks=BOTH)).runs) == 2
        await stage.put(new_run(priority=100), new_run("other", key="k", priority=100))
        free = [new_run("free", key="k"), new_run("other", key="l")]
        await stage.put(*free)
        assert sorted(ids((await stage.claim(free=9, tasks=[*BOTH, "free"])).runs)) == sorted(ids(free))

    async def test_a_lapsed_lease_counts_until_it_is_rescued(self, stage: Stage) -> None:
        await stage.declare(Limit(1))
        await stage.declare(Limit(per_key=1), task="other")
        runs = [new_run(), new_run("other", key="k")]
        await stage.put(*runs, new_run(), new_run("other", key="k"))
        claimed = (await stage.claim(free=9, tasks=BOTH)).runs
        assert sorted(ids(claimed)) == sorted(ids(runs))
        stage.wait(LEASE + 1)
        assert (await stage.claim("bob", free=9, tasks=BOTH)).runs == []
        for run in claimed:
            assert await stage.end(run, Lost()) is Verdict.APPLIED
        started = [(await stage.claim(worker, free=9, tasks=BOTH)).runs for worker in ("bob", "cyd", "dan")]
        assert sorted(run.task for batch in started for run in batch) == sorted(BOTH)

    async def test_a_repeated_claim_counts_once(self, stage: Stage) -> None:
        await stage.declare(Limit(2, per_key=2))
        await stage.put(*(new_run(key="k") for _ in range(4)))
        first = await stage.claim()
        assert (await stage.claim(again=True, free=9)).runs == first.runs
        assert len((await stage.claim(free=9)).runs) == 1

    async def test_a_limit_holds_against_claimers_that_come_at_once(self, stage: Stage, backend: Backend) -> None:
        await stage.declare(Limit(5, per_key=2))
        await stage.put(*(new_run(key="klm"[i % 3]) for i in range(30)))
        async with backend.open() as other:
            claims = await asyncio.gather(
                *((stage.store, other)[i % 2].claim(ClaimRequest(f"w{i}", 1, [GREET], 2, LEASE)) for i in range(20))
            )
        keys = [run.key for claim in claims for run in claim.runs]
        assert len(keys) == 5
        assert max(keys.count(key) for key in "klm") == 2

    async def test_the_task_limit_frees_the_best_that_waits(self, stage: Stage) -> None:
        await stage.declare(Limit(1))
        run = await stage.running()
        low, high = new_run(priority=-1), new_run(priority=1)
        await stage.put(low, high)
        assert (await stage.claim("bob")).runs == []
        await stage.end(run, Succeeded())
        assert (await stage.take("bob")).id == high.id

    async def test_a_freed_limit_hints_an_idle_worker(self, stage: Stage) -> None:
        for limit in (Limit(1), Limit(per_key=1)):
            await stage.declare(limit)
            run = await stage.running(new_run(key="k"))
            waiting = new_run(key="k")
            await stage.put(waiting)
            assert (await stage.claim("bob")).runs == []
            async with stage.listening() as ear:
                await stage.end(run, Succeeded())
                assert "bob" in await ear.workers()
            await stage.end(await stage.take("bob"), Succeeded())


class LimitChangeContract(Staged):
    async def four_of_a_key(self, stage: Stage, limit: Limit) -> list[Run]:
        """Return four runs of one key, one of them running, after a claim has tried the others."""
        await stage.declare(limit)
        news = [new_run(key="k") for _ in range(4)]
        await stage.put(*news)
        assert ids((await stage.claim(free=9)).runs) == [news[0].id]
        return await stage.find(*news)

    @pytest.mark.parametrize("limit", [Limit(1), Limit(per_key=1)])
    async def test_a_raised_limit_lets_more_start(self, stage: Stage, limit: Limit) -> None:
        runs = await self.four_of_a_key(stage, limit)
        assert (await stage.claim("bob", free=9)).runs == []
        async with stage.listening() as ear:
            assert await stage.declare(Limit(3, per_key=3))
            assert await ear.workers()
        assert ids((await stage.claim("bob", free=9)).runs) == ids(runs[1:3])

    @pytest.mark.parametrize("limit", [Limit(1), Limit(per_key=1)])
    async def test_a_removed_limit_lets_all_start(self, stage: Stage, limit: Limit) -> None:
        runs = await self.four_of_a_key(stage, limit)
        await stage.declare(None)
        assert ids((await stage.claim("bob", free=9)).runs) == ids(runs[1:])

    async def test_a_lowered_limit_stops_nobody_and_lets_nobody_start_until_enough_have_ended(
        self, stage: Stage
    ) -> None:
        await stage.declare(Limit(per_key=3))
        await stage.put(*(new_run(key="k") for _ in range(5)))
        running = (await stage.claim(free=9)).runs
        assert len(running) == 3
        await stage.declare(Limit(per_key=1))
        for run in running:
            assert (await stage.claim(free=9)).runs == []
            await stage.end(run, Succeeded())
        for _ in range(2):
            await stage.end(await stage.take(), Succeeded())
        assert (await stage.claim(free=9)).runs == []

    async def test_a_first_limit_counts_what_runs_already(self, stage: Stage) -> None:
        run = await stage.running(new_run(key="k"))
        await stage.declare(Limit(per_key=1))
        waiting = new_run(key="k")
        await stage.put(waiting)
        assert (await stage.claim("bob")).runs == []
        await stage.end(run, Failed(BOOM))
        assert (await stage.take("bob")).id == waiting.id

    async def test_a_claim_that_meets_too_many_of_a_saturated_key_says_ask_again_at_once(self, stage: Stage) -> None:
        await stage.declare(Limit(per_key=1))
        crowd = [new_run(key="k", at=1000 + i) for i in range(2500)]
        other = new_run(key="l")
        await stage.put(*crowd, other)
        started, before = list[str](), 0
        for _ in range(20):
            claim = await stage.claim(free=2)
            parked = sum(run.parked for run in await stage.find(*crowd))
            assert parked - before <= 1000
            before = parked
            started += ids(claim.runs)
            if len(started) == 2:
                break
            assert claim.wake == 0
        assert started == [crowd[0].id, other.id]
        settled = await stage.claim("bob", free=2)
        assert (settled.runs, settled.wake) == ([], None)
        seen = await stage.find(*crowd[1:])
        assert all(run.parked and run.state is State.QUEUED for run in seen)
