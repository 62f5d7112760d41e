"""Rates: how many runs start in a time. The store's clock counts, and a claim says when to claim again."""

import pytest

from rota.domain.gates import RateState
from rota.domain.lifecycle import Released, Succeeded
from rota.domain.policy import Limit, Rate
from rota.domain.run import Run
from rota.domain.spec import TaskSpec
from rota.store import Claim, RateRow, RowQuery
from storekit.contract.parking import REMOVALS, Removal
from storekit.contract.stage import GREET, Stage, Staged, ids, new_run

EVEN = Rate(6, per=600)
"""One start every hundred seconds."""
EACH = Rate(6, per=600, per_key=True)


class RateContract(Staged):
    async def start_all(self, stage: Stage, worker: str = "ada") -> tuple[list[Run], Claim]:
        """Claim all runs that may start now: a claim may say that there are more."""
        started: list[Run] = []
        for _ in range(30):
            claim = await stage.claim(worker, free=20)
            started += claim.runs
            if claim.wake != 0:
                return started, claim
        raise AssertionError("a worker spins")

    async def test_runs_start_at_an_even_pace(self, stage: Stage) -> None:
        await stage.declare(rate=EVEN)
        news = [new_run() for _ in range(4)]
        await stage.put(*news)
        for new in news[:3]:
            started, claim = await self.start_all(stage)
            assert ids(started) == [new.id]
            assert claim.wake == pytest.approx(100, abs=9)
            stage.wait(90)
            early = await stage.claim()
            assert early.runs == []
            assert early.wake == pytest.approx(10, abs=9)
            stage.wait(early.wake or 0.0)

    async def test_an_ended_run_gives_no_token_back(self, stage: Stage) -> None:
        await stage.declare(rate=EVEN)
        await stage.put(new_run(), new_run())
        run = await stage.take()
        await stage.end(run, Succeeded())
        assert (await stage.claim()).runs == []

    async def test_every_start_costs_a_token(self, stage: Stage) -> None:
        await stage.declare(rate=EVEN)
        run = await stage.running()
        await stage.end(run, Released())
        assert (await stage.claim()).runs == []
        stage.wait(101)
        assert (await stage.take()).fence == 2

    async def test_a_burst_comes_at_once_and_fills_up_again_in_a_lull(self, stage: Stage) -> None:
        await stage.declare(rate=Rate(6, per=600, burst=3))
        await stage.put(*(new_run() for _ in range(12)))
        counts: list[int] = []
        for lull in (0, 105, 205, 1000):
            stage.wait(lull)
            counts.append(len((await self.start_all(stage))[0]))
        assert counts == [3, 1, 2, 3]

    async def test_what_is_left_of_a_rate_can_be_read(self, stage: Stage) -> None:
        async def full_at(task: str, key: str | None = None) -> float | None:
            rows = (await stage.store.rows(RateRow, RowQuery(task=task, key=key))).items
            assert [(row.task, row.key) for row in rows] in ([], [(task, key or "")])
            return rows[0].full_at if rows else None

        await stage.declare(rate=Rate(6, per=600, burst=3))
        assert await full_at(GREET) is None
        await stage.put(*(new_run() for _ in range(12)))
        started = (await self.start_all(stage))[0]
        full = await full_at(GREET)
        assert full == pytest.approx((started[0].claimed_at or 0.0) + 300)
        assert RateState(full or 0.0).tokens(Rate(6, per=600, burst=3), await stage.now()) == 0
        assert [await full_at(GREET, "k"), await full_at("other:x")] == [None, None]
        await stage.store.declare([TaskSpec("keyed", rate=EACH)])
        await stage.put(new_run("keyed", key="k"))
        (run,) = (await stage.claim(tasks=["keyed"])).runs
        assert await full_at("keyed", "k") == pytest.approx((run.claimed_at or 0.0) + 100)
        assert [await full_at("keyed"), await full_at("keyed", "l"), await full_at("\0")] == [None, None, None]

    async def test_each_key_has_a_rate_of_its_own(self, stage: Stage) -> None:
        await stage.declare(rate=EACH)
        news = {key: [new_run(key=key) for _ in range(3)] for key in "kl"}
        await stage.put(*news["k"], *news["l"])
        for turn in range(3):
            started, claim = await self.start_all(stage)
            assert sorted(ids(started)) == sorted([news["k"][turn].id, news["l"][turn].id])
            assert claim.wake == (pytest.approx(100, abs=9) if turn < 2 else None)
            stage.wait(101)

    async def test_a_burst_for_each_key(self, stage: Stage) -> None:
        await stage.declare(rate=Rate(6, per=600, burst=3, per_key=True))
        await stage.put(*(new_run(key="k") for _ in range(12)), new_run(key="l"))
        counts: list[int] = []
        for lull in (0, 105, 205, 1000):
            stage.wait(lull)
            counts.append(len((await self.start_all(stage))[0]))
        assert counts == [4, 1, 2, 3]

    async def test_the_best_of_a_key_goes_first_when_its_time_has_come(self, stage: Stage) -> None:
        await stage.declare(rate=EACH)
        await stage.running(new_run(key="k"))
        low, high = new_run(key="k", priority=-1), new_run(key="k", priority=1)
        await stage.put(low, high)
        assert (await stage.claim()).runs == []
        stage.wait(101)
        assert (await stage.take()).id == high.id

    async def test_runs_without_a_key_have_no_rate_per_key(self, stage: Stage) -> None:
        await stage.declare(rate=EACH)
        await stage.put(*(new_run() for _ in range(3)))
        claim = await stage.claim(free=9)
        assert (len(claim.runs), claim.wake) == (3, None)

    @pytest.mark.parametrize("rate", [EVEN, EACH])
    async def test_nobody_wakes_for_a_token_that_nobody_waits_for(self, stage: Stage, rate: Rate) -> None:
        await stage.declare(rate=rate)
        await stage.put(new_run(key="k"))
        claim = await stage.claim(free=2)
        assert (len(claim.runs), claim.wake) == (1, None)
        assert (await stage.claim("bob")).wake is None

    @pytest.mark.parametrize("rate", [EVEN, EACH])
    async def test_a_worker_of_other_tasks_does_not_wake_for_it(self, stage: Stage, rate: Rate) -> None:
        await stage.declare(rate=rate)
        await stage.put(new_run(key="k"), new_run(key="k"))
        assert (await stage.claim(free=2)).wake == pytest.approx(100, abs=9)
        assert (await stage.claim("bob", tasks=["other"])).wake is None

    async def test_other_keys_and_tasks_start_meanwhile(self, stage: Stage) -> None:
        await stage.declare(rate=EACH)
        await stage.put(new_run(key="k"), new_run(key="k", priority=9))
        assert len((await stage.claim(free=9)).runs) == 1
        await stage.put(new_run(key="l"), new_run("other"))
        assert len((await stage.claim(free=9, tasks=[GREET, "other"])).runs) == 2

    @pytest.mark.parametrize("remove", REMOVALS)
    async def test_whatever_takes_a_run_away_whose_time_has_come_the_next_one_starts(
        self, stage: Stage, remove: Removal
    ) -> None:
        """The rate has released the run, a claim of another worker has unparked it, and then it is removed."""
        await stage.declare(rate=EACH)
        await stage.running(new_run(key="k"))
        ready, following = new_run(key="k", unique="queued", expires_after=300), new_run(key="k")
        await stage.put(ready, following)
        assert (await stage.claim(free=9)).runs == []
        stage.wait(101)
        await stage.claim("bob", free=0)
        await remove(stage, ready)
        assert ids((await self.start_all(stage))[0]) == [following.id]

    async def test_a_limit_and_a_rate_hold_together(self, stage: Stage) -> None:
        await stage.declare(Limit(per_key=1), EACH)
        first, *waiting = (new_run(key="k") for _ in range(3))
        await stage.put(first, *waiting)
        (run,) = (await stage.claim(free=9)).runs
        assert run.id == first.id
        stage.wait(101)
        started, claim = await self.start_all(stage, "bob")
        assert (started, claim.wake) == ([], None)
        await stage.end(run, Succeeded())
        run = await stage.take("bob")
        assert run.id == waiting[0].id
        await stage.end(run, Succeeded())
        claim = await stage.claim("bob", free=9)
        assert claim.runs == []
        assert claim.wake == pytest.approx(100, abs=9)
        stage.wait(101)
        assert (await stage.take("bob")).id == waiting[1].id

    @pytest.mark.parametrize("per_key", [False, True])
    async def test_a_raised_or_removed_rate_holds_at_once(self, stage: Stage, per_key: bool) -> None:
        await stage.declare(rate=Rate(1, per=86_400, per_key=per_key))
        await stage.put(*(new_run(key="k") for _ in range(5)))
        assert len((await self.start_all(stage))[0]) == 1
        await stage.declare(rate=Rate(1, per=10, per_key=per_key))
        stage.wait(11)
        assert len((await self.start_all(stage))[0]) == 1
        await stage.declare(rate=None)
        assert len((await self.start_all(stage))[0]) == 3
