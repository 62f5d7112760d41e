"""claim: which worker gets which runs, and in what order."""

import asyncio

import pytest

from rota.domain.lifecycle import Failed, Lost, Outcome, Released, Succeeded
from rota.domain.run import Run, State, after
from rota.store import Backend, ClaimRequest
from storekit.contract.stage import BOOM, GREET, LEASE, Stage, Staged, ids, new_run


class ClaimContract(Staged):
    async def test_a_claim_leases_a_run_to_its_worker(self, stage: Stage) -> None:
        new = new_run()
        await stage.put(new)
        queued = await stage.see(new)
        claim = await stage.claim("ada", lease=45)
        (run,) = claim.runs
        assert (run.state, run.fence, run.worker) == (State.RUNNING, 1, "ada")
        assert (run.claimed_at, run.until) == (claim.now, after(claim.now, 45))
        assert (run.due_at, run.created_at) == (queued.due_at, queued.created_at)
        assert await stage.see(new) == run

    async def test_nothing_is_claimed_before_it_is_due(self, stage: Stage) -> None:
        later, due = new_run(delay=3600), new_run()
        await stage.put(later, due)
        stage.wait(3000)
        assert ids((await stage.claim(free=5)).runs) == [due.id]
        assert (await stage.claim(free=5)).runs == []
        stage.wait(601)
        assert (await stage.take()).id == later.id

    async def test_an_instant_in_the_past_is_due_at_once(self, stage: Stage) -> None:
        old = new_run(at=86_400.0)
        assert (await stage.running(old)).due_at == 86_400.0

    async def test_priority_goes_first_then_the_longest_due_then_the_first_to_come(self, stage: Stage) -> None:
        low = new_run(priority=-100, at=1000)
        late, early = new_run(at=3000), new_run(at=2000)
        first, second = new_run("other", at=4000), new_run(at=4000)
        high = new_run("other", priority=100, delay=5)
        await stage.put(low, late, early, first, second, high)
        stage.wait(10)
        claim = await stage.claim(free=10, tasks=[GREET, "other"])
        assert ids(claim.runs) == ids([high, early, late, first, second, low])

    async def test_a_claim_takes_the_first_ones_across_tasks(self, stage: Stage) -> None:
        runs = [new_run(task, at=at) for at, task in enumerate("abcabcabc", start=1000)]
        await stage.put(*runs)
        assert ids((await stage.claim(free=4, tasks=["c", "b", "a"])).runs) == ids(runs[:4])
        assert ids((await stage.claim(free=2, tasks=["c", "b"])).runs) == ids([runs[4], runs[5]])
        assert ids((await stage.claim(free=9, tasks=["a", "b", "c"])).runs) == ids(runs[6:])

    async def test_a_future_run_of_high_priority_does_not_hold_up_a_due_one(self, stage: Stage) -> None:
        soon, due = new_run(priority=100, delay=600), new_run(priority=-100)
        await stage.put(soon, due)
        assert (await stage.take()).id == due.id

    async def test_runs_of_unknown_tasks_wait(self, stage: Stage) -> None:
        unknown = new_run("elsewhere", priority=100)
        await stage.put(unknown)
        assert (await stage.claim(tasks=[GREET, "else", "elsewhere2"])).runs == []
        assert (await stage.claim(tasks=[])).runs == []
        assert ids((await stage.claim(tasks=["elsewhere"])).runs) == [unknown.id]

    @pytest.mark.parametrize("free", [0, 1, 3])
    async def test_never_more_are_claimed_than_seats_are_free(self, stage: Stage, free: int) -> None:
        await stage.put(*(new_run(task) for task in "aabb"))
        assert len((await stage.claim(free=free, tasks=["a", "b"])).runs) == free

    async def test_a_repeated_claim_answers_the_same_batch(self, stage: Stage) -> None:
        await stage.put(*(new_run(priority=p) for p in (1, 3, 2)), new_run())
        claim = await stage.claim(free=3)
        assert len(claim.runs) == 3
        assert (await stage.claim(free=3, again=True)).runs == claim.runs
        assert (await stage.claim(free=10, again=True)).runs == claim.runs

    async def test_a_repeated_empty_claim_stays_empty(self, stage: Stage) -> None:
        assert (await stage.claim()).runs == []
        new = new_run()
        await stage.put(new)
        assert (await stage.claim(again=True)).runs == []
        assert (await stage.see(new)).state is State.QUEUED
        assert (await stage.take()).id == new.id

    async def test_a_repeated_claim_answers_only_what_is_still_held(self, stage: Stage) -> None:
        await stage.put(*(new_run() for _ in range(4)))
        done, rescued, taken_over, leased = (await stage.claim(free=4, lease=LEASE)).runs
        stage.wait(LEASE + 1)
        await stage.renew(leased)
        await stage.end(done, Succeeded())
        await stage.end(taken_over, Lost())
        assert (await stage.take("bob")).id == taken_over.id
        await stage.end(rescued, Lost())
        assert ids((await stage.claim(free=4, again=True)).runs) == [leased.id]

    async def test_a_repeated_claim_does_not_answer_what_the_worker_claimed_later(self, stage: Stage) -> None:
        run = await stage.running()
        await stage.end(run, Released())
        await stage.claim("ada")
        old = await stage.store.claim(ClaimRequest("ada", 1, [GREET], 1, LEASE))
        assert all(seen.fence == 2 for seen in old.runs)
        assert (await stage.see(run)).fence == 2

    async def test_an_earlier_number_takes_nothing(self, stage: Stage) -> None:
        stage.claims["ada"] = 4
        first = await stage.running()
        waiting = new_run()
        await stage.put(waiting)
        for n in (1, 4):
            assert waiting.id not in ids((await stage.store.claim(ClaimRequest("ada", n, [GREET], 5, LEASE))).runs)
        assert (await stage.see(waiting)).state is State.QUEUED
        assert await stage.see(first) == first

    async def test_numbers_of_one_worker_mean_nothing_to_another(self, stage: Stage) -> None:
        stage.claims["ada"] = 10
        await stage.running()
        assert (await stage.running(worker="bob")).worker == "bob"

    async def test_the_fence_grows_with_every_claim(self, stage: Stage) -> None:
        run = await stage.running()
        endings: list[Outcome] = [Released(), Failed(BOOM), Lost()]
        for fence, outcome in enumerate(endings, start=2):
            stage.wait(LEASE + 1)
            await stage.end(run, outcome)
            stage.wait(601)
            run = await stage.take()
            assert run.fence == fence

    async def test_a_running_run_is_not_claimed_by_another(self, stage: Stage) -> None:
        await stage.running()
        assert (await stage.claim("bob")).runs == []

    async def test_many_claimers_never_share_a_run(self, stage: Stage, backend: Backend) -> None:
        news = [new_run(priority=i % 3) for i in range(120)]
        await stage.put(*news)
        taken: list[Run] = []
        async with backend.open() as other:
            for n in (1, 2):
                claims = await asyncio.gather(
                    *(
                        (other if worker % 2 else stage.store).claim(ClaimRequest(f"w{worker}", n, [GREET], 3, LEASE))
                        for worker in range(20)
                    )
                )
                taken += [run for claim in claims for run in claim.runs]
        # A worker that competes with others may get fewer runs than are due, and claims again.
        taken += (await stage.claim(worker="last", free=120)).runs
        assert sorted(ids(taken)) == sorted(ids(news))
        assert {run.fence for run in taken} == {1}
        assert all(len(claim.runs) <= 3 for claim in claims)
