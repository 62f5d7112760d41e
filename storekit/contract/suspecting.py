"""Suspects: a run with losses is claimed alone, so that it takes no other run down with it."""

from rota.domain.lifecycle import Released, Succeeded
from rota.domain.policy import Limit
from storekit.contract.stage import GREET, LEASE, Stage, Staged, ids, new_run


class SuspectContract(Staged):
    async def test_a_suspect_comes_alone(self, stage: Stage) -> None:
        (suspect,) = await stage.suspects(new_run(priority=5))
        await stage.put(new_run(), new_run())
        claim = await stage.claim(free=9)
        assert ids(claim.runs) == [suspect.id]
        assert claim.passed_over

    async def test_suspects_come_to_different_workers_or_one_after_the_other(self, stage: Stage) -> None:
        suspects = await stage.suspects(*(new_run() for _ in range(3)))
        first = (await stage.claim(free=9)).runs
        second = (await stage.claim("bob", free=9)).runs
        assert ids(first + second) == ids(suspects[:2])
        assert (await stage.claim(free=9)).runs == []
        await stage.end(first[0], Succeeded())
        assert ids((await stage.claim(free=9)).runs) == [suspects[2].id]

    async def test_a_worker_that_holds_a_suspect_is_given_others(self, stage: Stage) -> None:
        await stage.suspects(new_run(priority=5), new_run(priority=5))
        others = [new_run(), new_run()]
        await stage.put(*others)
        await stage.take()
        claim = await stage.claim(free=9)
        assert ids(claim.runs) == ids(others)
        assert claim.passed_over

    async def test_those_behind_suspects_are_not_held_up(self, stage: Stage) -> None:
        for task in (GREET, "limited"):
            await stage.declare(Limit(50), task="limited")
            suspects = [new_run(task) for _ in range(4)]
            first = new_run(task, priority=1)
            behind = [new_run(task, priority=-1) for _ in range(3)]
            await stage.suspects(*suspects)
            await stage.put(first, *behind)
            claim = await stage.claim(free=4, tasks=[task])
            assert ids(claim.runs) == ids([first, *behind])
            assert claim.passed_over
            assert all(not run.losses for run in claim.runs)

    async def test_a_worker_that_holds_a_suspect_does_not_spin_for_others(self, stage: Stage) -> None:
        await stage.suspects(new_run(), new_run())
        await stage.take()
        claim = await stage.claim(free=9)
        assert (claim.runs, claim.wake) == ([], None)
        assert claim.passed_over
        await stage.put(new_run(delay=600))
        later = await stage.claim(free=9)
        assert later.wake
        assert 500 < later.wake <= 600

    async def test_nothing_is_left_when_nothing_is_passed_over(self, stage: Stage) -> None:
        assert not (await stage.claim()).passed_over
        await stage.put(new_run(), new_run(delay=60))
        assert not (await stage.claim(free=9)).passed_over

    async def test_a_suspect_that_is_released_is_still_one(self, stage: Stage) -> None:
        await stage.suspects(new_run(priority=1))
        run = await stage.take()
        await stage.end(run, Released())
        await stage.put(new_run())
        assert ids((await stage.claim(free=9)).runs) == [run.id]

    async def test_a_lapsed_suspect_is_still_held(self, stage: Stage) -> None:
        await stage.suspects(new_run(), new_run())
        await stage.take()
        stage.wait(LEASE + 1)
        assert (await stage.claim(free=9)).runs == []
        assert len((await stage.claim("bob", free=9)).runs) == 1

    async def test_a_repeated_claim_answers_the_suspect_again(self, stage: Stage) -> None:
        await stage.suspects(new_run(), new_run())
        claim = await stage.claim(free=9)
        assert (await stage.claim(free=9, again=True)).runs == claim.runs
