"""Parking: the queued runs of a saturated key cost a claim nothing, and each of them starts in the end."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from rota.domain.lifecycle import (
    Cancelled,
    Crashed,
    Discarded,
    Failed,
    Interrupted,
    Lost,
    Outcome,
    Paused,
    Released,
    Skipped,
    Snoozed,
    Succeeded,
    settlement_of,
)
from rota.domain.policy import Limit
from rota.domain.run import NewRun, Run, State
from rota.store import Backend, Command, Depth, Retention, Scope
from storekit.contract.stage import BOOM, GREET, LEASE, Stage, Staged, ids, new_run

GONE: list[Outcome] = [
    Succeeded(),
    Failed(BOOM),
    Discarded(BOOM),
    Skipped("nothing to do"),
    Cancelled(),
    Snoozed(3600),
]
BACK: list[Outcome] = [Released(), Interrupted(), Lost(), Crashed(BOOM)]

Removal = Callable[[Stage, NewRun], Awaitable[object]]


async def cancelled(stage: Stage, new: NewRun) -> None:
    assert await stage.cancel(new)


async def paused(stage: Stage, new: NewRun) -> None:
    assert await stage.pause(new)


async def dropped(stage: Stage, new: NewRun) -> None:
    assert (await stage.store.control(Command.DROP, [new.id])).items == [1]


async def expired(stage: Stage, new: NewRun) -> None:
    stage.wait(301)
    assert (await stage.store.sweep(Retention())).expired == 1


async def expired_at_a_claim(stage: Stage, new: NewRun) -> None:
    stage.wait(301)
    await stage.claim("eve", tasks=["elsewhere"])


async def pushed(stage: Stage, new: NewRun) -> None:
    later = new_run(unique="queued", join="push", key="k", delay=3600)
    assert (await stage.admit(later)).run == new.id


async def set_later(stage: Stage, new: NewRun) -> None:
    later = new_run(unique="queued", join="set", key="k", delay=3600)
    assert (await stage.admit(later)).run == new.id


REMOVALS: list[Removal] = [cancelled, paused, dropped, expired, expired_at_a_claim, pushed, set_later]


class ParkContract(Staged):
    async def busy(self, stage: Stage, *later: NewRun) -> Run:
        """Return a running run that uses the limit of its key, after other runs of the key were put."""
        await stage.declare(Limit(per_key=1))
        run = await stage.running(new_run(key="k"))
        await stage.put(*later)
        return run

    async def saturated(self, stage: Stage, *waiting: NewRun) -> Run:
        """Do as `busy`, with a claim that parks the waiting runs."""
        run = await self.busy(stage, *waiting)
        claim = await stage.claim("bob", free=9)
        assert (claim.runs, claim.wake) == ([], None)
        return run

    async def test_runs_of_a_saturated_key_are_parked_and_still_queued(self, stage: Stage) -> None:
        waiting = [new_run(key="k") for _ in range(2)]
        run = await self.saturated(stage, *waiting)
        assert [(seen.state, seen.parked) for seen in await stage.find(*waiting)] == [(State.QUEUED, True)] * 2
        assert (await stage.store.depths()).items == [Depth(GREET, 2, 1)]
        await stage.end(run, Succeeded())
        started = await stage.take("bob")
        assert (started.id, started.parked) == (waiting[0].id, False)

    @pytest.mark.parametrize("outcome", GONE, ids=lambda outcome: type(outcome).__name__)
    async def test_whatever_takes_a_running_run_away_the_next_one_starts(self, stage: Stage, outcome: Outcome) -> None:
        waiting = [new_run(key="k") for _ in range(3)]
        run = await self.saturated(stage, *waiting)
        await stage.end(run, outcome)
        for new in waiting:
            (started,) = (await stage.claim("bob", free=9)).runs
            assert started.id == new.id
            await stage.end(started, outcome)

    @pytest.mark.parametrize("outcome", BACK, ids=lambda outcome: type(outcome).__name__)
    async def test_a_run_that_comes_back_at_once_goes_first_and_the_others_follow(
        self, stage: Stage, outcome: Outcome
    ) -> None:
        waiting = [new_run(key="k") for _ in range(3)]
        run = await self.saturated(stage, *waiting)
        stage.wait(LEASE + 1)
        await stage.end(run, outcome)
        for expected in [run.id, *ids(waiting)]:
            (started,) = (await stage.claim("bob", free=9)).runs
            assert started.id == expected
            assert (await stage.claim("cyd", free=9)).runs == []
            await stage.end(started, Succeeded())

    async def test_a_run_that_comes_back_does_not_go_before_a_better_one(self, stage: Stage) -> None:
        better = new_run(key="k", priority=1)
        run = await self.saturated(stage, better)
        await stage.end(run, Released())
        assert (await stage.take("bob")).id == better.id

    async def test_a_cancel_that_a_requeue_honours_frees_the_next(self, stage: Stage) -> None:
        waiting = new_run(key="k")
        run = await self.saturated(stage, waiting)
        await stage.cancel(run)
        assert (await stage.claim("bob")).runs == []
        await stage.end(run, Released())
        assert (await stage.take("bob")).id == waiting.id

    async def test_a_running_run_that_is_paused_frees_the_next(self, stage: Stage) -> None:
        waiting = new_run(key="k")
        run = await self.saturated(stage, waiting)
        await stage.pause(run)
        assert (await stage.claim("bob")).runs == []
        await stage.end(run, Paused())
        assert (await stage.take("bob")).id == waiting.id

    async def test_a_superseded_run_frees_the_next(self, stage: Stage) -> None:
        await stage.declare(Limit(per_key=1))
        run = await stage.running(new_run(key="k", unique="queued"))
        heir = new_run(key="k", unique="queued")
        await stage.put(heir)
        assert (await stage.claim("bob")).runs == []
        await stage.end(run, Failed(BOOM))
        assert (await stage.take("bob")).id == heir.id

    @pytest.mark.parametrize("remove", REMOVALS)
    async def test_whatever_takes_a_ready_run_away_the_next_one_starts(self, stage: Stage, remove: Removal) -> None:
        ready, following = new_run(key="k", unique="queued", expires_after=300), new_run(key="k")
        run = await self.saturated(stage, ready, following)
        await stage.end(run, Succeeded())
        await remove(stage, ready)
        assert ids((await stage.claim("bob", free=9)).runs) == [following.id]

    @pytest.mark.parametrize("remove", REMOVALS)
    async def test_whatever_takes_a_parked_run_away_the_limit_holds_and_the_others_follow(
        self, stage: Stage, remove: Removal
    ) -> None:
        parked, following = new_run(key="k", unique="queued", expires_after=300), new_run(key="k")
        run = await self.saturated(stage, parked, following)
        await remove(stage, parked)
        assert (await stage.claim("bob", free=9)).runs == []
        await stage.end(run, Succeeded())
        assert ids((await stage.claim("bob", free=9)).runs) == [following.id]

    async def test_many_expire_at_once_and_the_one_behind_them_starts(self, stage: Stage) -> None:
        late, fine = [new_run(key="k", expires_after=300) for _ in range(5)], new_run(key="k")
        run = await self.saturated(stage, *late, fine)
        await stage.end(run, Succeeded())
        stage.wait(301)
        assert (await stage.store.sweep(Retention())).expired == 5
        assert (await stage.take("bob")).id == fine.id

    async def test_many_are_dropped_at_once_and_the_one_that_comes_then_starts(self, stage: Stage) -> None:
        run = await self.saturated(stage, *(new_run(key="k") for _ in range(5)))
        await stage.end(run, Succeeded())
        assert (await stage.store.control(Command.DROP, [GREET], of=Scope.TASKS)).items == [5]
        await stage.put(fine := new_run(key="k"))
        assert (await stage.take("bob")).id == fine.id

    async def test_the_best_parked_run_goes_first(self, stage: Stage) -> None:
        early, late = new_run(key="k", at=1000), new_run(key="k", at=2000)
        low, high = new_run(key="k", at=500, priority=-1), new_run(key="k", priority=1)
        run = await self.saturated(stage, late, low, early, high)
        for expected in (high, early, late, low):
            await stage.end(run, Succeeded())
            run = await stage.take("bob")
            assert run.id == expected.id

    async def test_a_retry_that_waits_for_its_time_starves_nobody(self, stage: Stage) -> None:
        waiting = [new_run(key="k") for _ in range(2)]
        run = await self.saturated(stage, *waiting)
        await stage.end(run, Failed(BOOM))
        first = await stage.take("bob")
        stage.wait(601)
        assert (await stage.claim("cyd")).runs == []
        await stage.end(first, Succeeded())
        for expected in (waiting[1].id, run.id):
            started = await stage.take("cyd")
            assert started.id == expected
            await stage.end(started, Succeeded())

    async def test_a_run_for_later_does_not_keep_one_for_now_waiting(self, stage: Stage) -> None:
        """Both runs were put while the key was busy; then one of them is moved to an earlier time."""
        sooner, later = new_run(key="k", delay=1800), new_run(key="k", unique="queued", delay=3600)
        run = await self.busy(stage, sooner, later)
        await stage.end(run, Succeeded())
        assert (await stage.claim("bob")).runs == []
        assert (await stage.admit(new_run(key="k", unique="queued", join="set"))).run == later.id
        assert (await stage.take("bob")).id == later.id

    async def test_a_parked_run_that_is_moved_to_the_front_goes_first(self, stage: Stage) -> None:
        first, moved = new_run(key="k", at=2000), new_run(key="k", unique="queued", at=3000)
        run = await self.saturated(stage, first, moved)
        await stage.end(run, Succeeded())
        assert await stage.admit(new_run(key="k", unique="queued", join="set", at=1000))
        assert (await stage.take("bob")).id == moved.id

    async def test_a_parked_run_that_is_moved_to_later_starts_at_its_time(self, stage: Stage) -> None:
        moved = new_run(key="k", unique="queued")
        run = await self.saturated(stage, moved)
        await pushed(stage, moved)
        await stage.end(run, Succeeded())
        assert (await stage.claim("bob")).runs == []
        stage.wait(3601)
        assert (await stage.take("bob")).id == moved.id

    async def test_runs_for_later_start_at_their_time_in_their_order(self, stage: Stage) -> None:
        low, high = new_run(key="k", delay=50), new_run(key="k", delay=60, priority=1)
        run = await self.busy(stage, low, high)
        await stage.end(run, Succeeded())
        claim = await stage.claim("bob")
        assert claim.runs == []
        assert claim.wake == pytest.approx(50, abs=30)
        stage.wait(100)
        assert (await stage.take("bob")).id == high.id

    async def test_a_run_may_be_paused_while_its_key_is_saturated(self, stage: Stage) -> None:
        """A run has two holds at once; each is removed on its own."""
        paused = new_run(key="k")
        run = await self.saturated(stage, paused)
        await stage.pause(paused)
        await stage.end(run, Succeeded())
        assert (await stage.claim("bob")).runs == []
        await stage.resume(paused)
        assert (await stage.take("bob")).id == paused.id

    async def test_a_run_that_is_resumed_while_its_key_is_saturated_waits_on(self, stage: Stage) -> None:
        paused = new_run(key="k")
        run = await self.saturated(stage, paused)
        await stage.pause(paused)
        await stage.resume(paused)
        assert (await stage.claim("bob")).runs == []
        await stage.end(run, Succeeded())
        assert (await stage.take("bob")).id == paused.id

    async def test_a_paused_task_keeps_its_parked_runs_until_it_is_resumed(self, stage: Stage) -> None:
        waiting = new_run(key="k")
        run = await self.saturated(stage, waiting)
        await stage.store.control(Command.PAUSE, [GREET], of=Scope.TASKS)
        await stage.end(run, Succeeded())
        assert (await stage.claim("bob")).runs == []
        await stage.store.control(Command.RESUME, [GREET], of=Scope.TASKS)
        assert (await stage.take("bob")).id == waiting.id

    async def test_a_run_that_a_claim_itself_lets_go_is_running_afterwards(self, stage: Stage) -> None:
        """The claim expires the first run, unparks the next one and takes it: three changes in one transaction."""
        late, following = new_run(key="k", expires_after=60), new_run(key="k")
        run = await self.saturated(stage, late, following)
        await stage.end(run, Succeeded())
        stage.wait(61)
        taken = await stage.take("bob")
        assert taken.id == following.id
        assert await stage.see(following) == taken

    async def test_a_settle_that_races_with_claims_leaves_nobody_parked(self, stage: Stage, backend: Backend) -> None:
        await stage.declare(Limit(per_key=1))
        workers = [f"w{i}" for i in range(4)]
        async with backend.open() as other:
            far = Stage(backend, other)
            far.claims = stage.claims
            for turn in range(40):
                key = f"k{turn}"
                (run,) = await self.start(stage, key)
                waiting = new_run(key=key)
                claims = [(stage, far)[i % 2].claim(worker, free=9) for i, worker in enumerate(workers)]
                _, _, found = await asyncio.gather(
                    other.settle([settlement_of(run, Succeeded())]), stage.store.put([waiting]), asyncio.gather(*claims)
                )
                started = [run for claim in found for run in claim.runs]
                if not started:
                    started = (await stage.claim(free=9)).runs
                assert ids(started) == [waiting.id]
                await stage.end(started[0], Succeeded())

    async def start(self, stage: Stage, key: str) -> list[Run]:
        await stage.put(new_run(key=key))
        return (await stage.claim(free=9)).runs
