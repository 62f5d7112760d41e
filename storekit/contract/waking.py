"""wake: how long a claim lets an idle worker sleep."""

import pytest

from rota.domain.lifecycle import Failed
from rota.store import IDLE_MEMORY
from storekit.contract.stage import BOOM, GREET, Stage, Staged, ids, new_run


class WakeContract(Staged):
    async def test_an_idle_worker_wakes_when_the_next_run_is_due(self, stage: Stage) -> None:
        later, soon = new_run(delay=900), new_run(delay=600)
        await stage.put(later, soon)
        claim = await stage.claim()
        assert claim.wake == pytest.approx((await stage.see(soon)).due_at - claim.now, abs=1e-3)
        stage.wait(claim.wake or 0.0)
        assert (await stage.take()).id == soon.id

    async def test_there_is_no_wake_when_nothing_is_coming(self, stage: Stage) -> None:
        assert (await stage.claim()).wake is None
        await stage.running()
        assert (await stage.claim()).wake is None
        await stage.ended()
        assert (await stage.claim()).wake is None

    async def test_a_worker_does_not_wake_for_tasks_it_does_not_know(self, stage: Stage) -> None:
        await stage.put(new_run("elsewhere", delay=60))
        assert (await stage.claim()).wake is None

    async def test_a_worker_without_a_free_seat_is_not_woken(self, stage: Stage) -> None:
        await stage.put(new_run(), new_run(delay=60))
        claim = await stage.claim(free=1)
        assert (len(claim.runs), claim.wake) == (1, None)

    async def test_a_worker_with_seats_left_wakes_for_the_next_run(self, stage: Stage) -> None:
        await stage.put(new_run(), new_run(delay=600, priority=5))
        claim = await stage.claim(free=2)
        assert len(claim.runs) == 1
        assert claim.wake == pytest.approx(600, abs=30)

    async def test_a_retry_wakes_as_well(self, stage: Stage) -> None:
        run = await stage.running()
        await stage.end(run, Failed(BOOM))
        claim = await stage.claim()
        assert claim.wake == pytest.approx((await stage.see(run)).due_at - claim.now, abs=1e-3)

    async def test_a_cancelled_run_wakes_nobody(self, stage: Stage) -> None:
        soon = new_run(delay=60)
        await stage.put(soon)
        await stage.cancel(soon)
        assert (await stage.claim()).wake is None

    async def test_the_kth_idle_worker_wakes_for_the_kth_run(self, stage: Stage) -> None:
        await stage.put(*(new_run(delay=delay, priority=-delay // 600) for delay in (600, 1200, 1800)))
        wakes = [(await stage.claim(worker)).wake for worker in ("ada", "bob", "cyd", "dan")]
        assert wakes == [pytest.approx(due, abs=30) for due in (600, 1200, 1800)] + [None]

    async def test_who_leaves_calls_another_who_wakes_for_what_it_would_have(self, stage: Stage) -> None:
        """Otherwise a tick or a delayed run would wait until another worker polls, which takes seconds."""
        await stage.put(new_run(delay=600))
        assert (await stage.claim("ada")).wake == pytest.approx(600, abs=30)
        assert (await stage.claim("bob")).wake is None
        async with stage.listening() as ear:
            await stage.claim("ada", 0, tasks=())
            assert await ear.workers() == {"bob"}
        assert (await stage.claim("bob")).wake == pytest.approx(600, abs=30)
        async with stage.listening() as ear:
            await stage.claim("bob", 0, tasks=())
            assert not await ear.workers()

    async def test_idle_workers_that_look_again_keep_their_places(self, stage: Stage) -> None:
        """Otherwise workers that poll would all wake for the last run, and none for the first."""
        await stage.put(*(new_run(delay=delay) for delay in (600, 1200, 1800)))
        workers = ("ada", "bob", "cyd")
        for _ in range(3):
            wakes = [(await stage.claim(worker)).wake for worker in workers]
            assert wakes == [pytest.approx(due, abs=30) for due in (600, 1200, 1800)]

    async def test_cancelled_and_claimed_runs_are_not_counted(self, stage: Stage) -> None:
        due, first, second, third = (new_run(delay=delay) for delay in (0, 600, 1200, 1800))
        await stage.put(due, first, second, third)
        await stage.take("eve")
        await stage.cancel(second)
        wakes = [(await stage.claim(worker)).wake for worker in ("ada", "bob", "cyd")]
        assert wakes == [pytest.approx(600, abs=30), pytest.approx(1800, abs=30), None]

    async def test_workers_of_other_tasks_have_a_place_of_their_own(self, stage: Stage) -> None:
        await stage.put(new_run(delay=600), new_run("other", delay=600))
        assert (await stage.claim("ada")).wake == pytest.approx(600, abs=30)
        assert (await stage.claim("bob", tasks=["other"])).wake == pytest.approx(600, abs=30)

    async def test_the_place_of_a_silent_worker_is_free_again(self, stage: Stage) -> None:
        await stage.put(new_run(delay=600))
        await stage.claim("ada")
        assert (await stage.claim("bob")).wake is None
        stage.wait(IDLE_MEMORY + 1)
        assert (await stage.claim("bob")).wake == pytest.approx(600 - IDLE_MEMORY, abs=30)

    async def test_a_repeated_claim_says_that_work_is_waiting(self, stage: Stage) -> None:
        await stage.claim()
        await stage.put(new_run())
        assert (await stage.claim(again=True)).wake == 0.0

    async def test_lapsed_leases_come_with_any_claim(self, stage: Stage) -> None:
        run = await stage.lapsed()
        await stage.put(new_run())
        claim = await stage.claim("bob", tasks=[GREET])
        assert (len(claim.runs), ids(claim.lapsed)) == (1, [run.id])
