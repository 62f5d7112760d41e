"""needs: a run waits for the end of other runs, whatever that end is, and for nothing else."""

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from rota.domain import needs
from rota.domain.decision import Decision, Reason
from rota.domain.guards import Cooldown
from rota.domain.lifecycle import (
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
from rota.domain.policy import Policy
from rota.domain.run import NewRun, Run, State
from rota.domain.settlement import Verdict
from rota.store import Command, Depth, Retention, Scope
from storekit.contract.stage import BOOM, GREET, LEASE, STUBBORN, Stage, Staged, ids, new_run

PARENT = "parent"
ONE_TRY = Policy(max_losses=1)

End = Callable[[Stage, NewRun], Awaitable[object]]


async def take_parent(stage: Stage, new: NewRun) -> Run:
    """Claim the parent, and return it."""
    (run,) = (await stage.claim("holder", tasks=[PARENT])).runs
    assert run.id == new.id
    return run


def ends(outcome: Outcome) -> End:
    async def end(stage: Stage, new: NewRun) -> None:
        run = await take_parent(stage, new)
        await stage.end(run, outcome)

    end.__name__ = type(outcome).__name__
    return end


async def cancelled(stage: Stage, new: NewRun) -> None:
    assert await stage.cancel(new)


async def cancelled_while_running(stage: Stage, new: NewRun) -> None:
    run = await take_parent(stage, new)
    await stage.cancel(run)
    assert (await stage.claim()).runs == []
    await stage.end(run, Released())


async def dropped(stage: Stage, new: NewRun) -> None:
    assert (await stage.store.control(Command.DROP, [new.id])).items == [1]


async def dropped_with_its_task(stage: Stage, new: NewRun) -> None:
    assert (await stage.store.control(Command.DROP, [PARENT], of=Scope.TASKS)).items == [1]


async def expired_at_a_sweep(stage: Stage, new: NewRun) -> None:
    stage.wait(301)
    assert (await stage.store.sweep(Retention())).expired == 1


async def expired_at_a_claim(stage: Stage, new: NewRun) -> None:
    stage.wait(301)
    await stage.claim("eve", tasks=["elsewhere"])


async def expired_at_a_put(stage: Stage, new: NewRun) -> None:
    stage.wait(301)
    assert await stage.admit(new_run(PARENT, unique="queued", key="k"))


async def superseded(stage: Stage, new: NewRun) -> None:
    run = await take_parent(stage, new)
    await stage.put(new_run(PARENT, unique="queued", key="k"))
    await stage.end(run, Released())
    assert (await stage.see(new)).reason is Reason.SUPERSEDED


async def lost_for_good(stage: Stage, new: NewRun) -> None:
    run = await take_parent(stage, new)
    stage.wait(LEASE + 1)
    await stage.end(run, Lost())
    assert (await stage.see(new)).reason is Reason.POISON


async def paused_then_cancelled(stage: Stage, new: NewRun) -> None:
    await stage.pause(new)
    assert (await stage.claim()).runs == []
    await stage.cancel(new)


ENDS: list[End] = [
    ends(Succeeded(b"1")),
    ends(Failed(BOOM)),
    ends(Discarded(BOOM)),
    ends(Skipped("nothing to do")),
    cancelled,
    cancelled_while_running,
    dropped,
    dropped_with_its_task,
    expired_at_a_sweep,
    expired_at_a_claim,
    expired_at_a_put,
    superseded,
    lost_for_good,
    paused_then_cancelled,
]
BACK: list[Outcome] = [Failed(BOOM), Released(), Interrupted(), Snoozed(5), Lost(), Paused()]


class NeedsContract(Staged):
    async def waiting(self, stage: Stage, *, policy: Policy = ONE_TRY) -> tuple[NewRun, NewRun]:
        """Return a parent and a child that waits for its end."""
        parent = new_run(PARENT, policy=policy, unique="queued", key="k", expires_after=300)
        child = new_run(needs=[parent.id])
        await stage.put(parent, child)
        return parent, child

    async def test_a_run_that_waits_is_queued_and_not_claimed(self, stage: Stage) -> None:
        parent, child = await self.waiting(stage)
        claim = await stage.claim(free=9)
        assert (claim.runs, claim.wake, claim.passed_over) == ([], None, False)
        seen, awaited = await stage.see(child), await stage.see(parent)
        assert (seen.state, seen.needs, seen.awaited) == (State.QUEUED, (parent.id,), False)
        assert (awaited.needs, awaited.awaited) == ((), True)
        assert (await stage.store.depths()).items == [Depth(GREET, 1, 0), Depth(PARENT, 1, 0)]

    @pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
    async def test_any_end_of_what_it_waits_for_lets_it_go(self, stage: Stage, end: End) -> None:
        parent, child = await self.waiting(stage)
        await end(stage, parent)
        assert (await stage.see(parent)).state.final
        assert (await stage.see(child)).needs == ()
        run = await stage.take()
        assert (run.id, run.needs) == (child.id, ())

    @pytest.mark.parametrize("outcome", BACK, ids=lambda outcome: type(outcome).__name__)
    async def test_a_requeue_is_no_end(self, stage: Stage, outcome: Outcome) -> None:
        parent, child = await self.waiting(stage, policy=STUBBORN)
        run = await take_parent(stage, parent)
        stage.wait(LEASE + 1)
        if isinstance(outcome, Paused):
            await stage.pause(run)
        await stage.end(run, outcome)
        assert not (await stage.see(parent)).state.final
        assert (await stage.see(child)).needs == (parent.id,)
        assert (await stage.claim()).runs == []
        await stage.cancel(parent)
        assert (await stage.take()).id == child.id

    async def test_an_end_hints_an_idle_worker_of_those_that_waited(self, stage: Stage) -> None:
        for end in (ENDS[0], cancelled, expired_at_a_sweep):
            parent, child = await self.waiting(stage)
            await stage.claim()
            async with stage.listening() as ear:
                await end(stage, parent)
                # before that sweep ada was silent for so long that she counts as gone
                if end is not expired_at_a_sweep:
                    assert "ada" in await ear.workers()
            assert (await stage.take()).id == child.id

    async def test_a_stale_settlement_lets_nobody_go(self, stage: Stage) -> None:
        parent, child = await self.waiting(stage, policy=STUBBORN)
        run = await take_parent(stage, parent)
        await stage.end(run, Released())
        await stage.end(run, Succeeded())
        assert (await stage.see(child)).needs == (parent.id,)

    async def test_a_run_waits_for_all_of_several(self, stage: Stage) -> None:
        parents = [new_run(PARENT) for _ in range(3)]
        child = new_run(needs=ids(parents))
        await stage.put(*parents, child)
        for parent in parents:
            assert (await stage.claim()).runs == []
            await stage.cancel(parent)
        assert (await stage.take()).id == child.id

    async def test_several_end_in_one_call(self, stage: Stage) -> None:
        parents = [new_run(PARENT) for _ in range(3)]
        child, other = new_run(needs=ids(parents)), new_run(needs=ids(parents[:2]))
        await stage.put(*parents, child, other)
        runs = (await stage.claim("holder", 3, tasks=[PARENT])).runs
        await stage.store.settle([settlement_of(run, Succeeded()) for run in runs[:2]])
        assert (await stage.take()).id == other.id
        await stage.store.settle([settlement_of(run, Succeeded()) for run in runs])
        assert (await stage.take("bob")).id == child.id

    async def test_one_end_lets_many_go(self, stage: Stage) -> None:
        parent = new_run(PARENT)
        children = [new_run(needs=[parent.id]) for _ in range(50)]
        await stage.put(parent, *children)
        await stage.cancel(parent)
        assert ids((await stage.claim(free=100)).runs) == ids(children)

    async def test_ended_and_unknown_runs_are_waited_for_by_nobody(self, stage: Stage) -> None:
        ended, parent = await stage.ended(), new_run(PARENT)
        own = "needs-itself"
        needs = [ended.id, "never-put", parent.id, own, parent.id]
        await stage.put(parent, new_run(id=own, needs=needs), free := new_run(needs=[ended.id, "never-put"]))
        assert ids((await stage.claim(free=9)).runs) == [free.id]
        assert set((await stage.see(new_run(id=own))).needs) == {parent.id}
        assert await stage.see(ended) == ended
        await stage.cancel(parent)
        assert (await stage.take("bob")).id == own

    async def test_a_chain_goes_one_by_one(self, stage: Stage) -> None:
        chain = [new_run()]
        for _ in range(99):
            chain.append(new_run(needs=[chain[-1].id]))
        await stage.put(*chain)
        for link in chain:
            (run,) = (await stage.claim(free=9)).runs
            assert run.id == link.id
            await stage.end(run, Succeeded())
        assert (await stage.store.depths()).items == []

    async def test_a_child_waits_for_a_unique_parent_of_its_own_batch(self, stage: Stage) -> None:
        parent = new_run(key="k", unique="active")
        await stage.put(parent, child := new_run(needs=(parent.id,)))
        assert (await stage.see(child)).needs == (parent.id,)

    async def test_a_child_can_come_while_its_parent_runs(self, stage: Stage) -> None:
        parent = new_run(PARENT)
        await stage.put(parent)
        run = await take_parent(stage, parent)
        child = new_run(needs=[parent.id])
        await stage.put(child)
        assert await stage.see(parent) == replace(run, awaited=True)
        assert (await stage.claim()).runs == []
        await stage.end(run, Succeeded())
        assert (await stage.take()).id == child.id

    async def test_a_lapsed_parent_is_still_to_end(self, stage: Stage) -> None:
        parent = new_run(PARENT)
        await stage.put(parent)
        await take_parent(stage, parent)
        stage.wait(LEASE + 1)
        await stage.put(new_run(needs=[parent.id]))
        assert (await stage.claim()).runs == []

    async def test_a_put_that_is_sent_again_changes_nothing(self, stage: Stage) -> None:
        parent, child = await self.waiting(stage)
        await stage.put(parent, child)
        assert (await stage.see(child)).needs == (parent.id,)
        await stage.cancel(parent)
        go = await stage.see(child)
        await stage.put(other := new_run("elsewhere"), replace(child, needs=(other.id,)), parent, child)
        assert await stage.see(child) == go
        assert not (await stage.see(other)).awaited
        run = await stage.take()
        await stage.put(child)
        assert await stage.see(child) == run
        assert (await stage.store.depths()).items == [Depth("elsewhere", 1, 0), Depth(GREET, 0, 1)]

    async def test_the_due_time_still_holds_when_the_wait_is_over(self, stage: Stage) -> None:
        parent = new_run(PARENT)
        child = new_run(delay=600, needs=[parent.id])
        await stage.put(parent, child)
        assert (await stage.claim()).wake is None
        await stage.cancel(parent)
        claim = await stage.claim()
        assert claim.runs == []
        assert claim.wake == pytest.approx(600, abs=30)
        stage.wait(601)
        assert (await stage.take()).id == child.id

    async def test_runs_that_wait_are_not_pending(self, stage: Stage) -> None:
        parent = new_run(PARENT)
        waiting = [new_run(needs=[parent.id]) for _ in range(5)]
        await stage.put(parent, *waiting)
        assert await stage.admit(new_run(max_pending=1))
        assert (await stage.admit(new_run(max_pending=1))).reason is Reason.QUEUE_FULL
        await stage.cancel(parent)
        assert (await stage.admit(new_run(max_pending=6))).reason is Reason.QUEUE_FULL
        assert await stage.admit(new_run(max_pending=7))


class BehindContract(Staged):
    """The guard `behind`: a new run waits for the end of the running run of its unique key."""

    def behind(self, key: str = "k") -> NewRun:
        return new_run(unique="queued", key=key, behind=True)

    async def test_it_waits_for_the_equal_one_that_runs(self, stage: Stage) -> None:
        await stage.put(self.behind())
        running = await stage.take()
        second = self.behind()
        await stage.put(second)
        assert (await stage.see(second)).needs == (running.id,)
        assert (await stage.claim()).runs == []
        await stage.settle(settlement_of(running, Succeeded()))
        assert (await stage.take()).id == second.id

    async def test_nobody_runs_and_it_starts_at_once(self, stage: Stage) -> None:
        first = self.behind()
        await stage.put(first)
        assert (await stage.see(first)).needs == ()
        assert (await stage.take()).id == first.id

    async def test_a_third_joins_the_one_that_waits_behind(self, stage: Stage) -> None:
        await stage.put(self.behind())
        await stage.take()
        second = self.behind()
        await stage.put(second)
        third = await stage.admit(self.behind())
        assert (third.reason, third.run) == (Reason.JOINED, second.id)
        assert (await stage.claim()).runs == [], "joining does not let it go"

    async def test_another_key_waits_for_nobody(self, stage: Stage) -> None:
        await stage.put(self.behind())
        await stage.take()
        other = self.behind("other")
        await stage.put(other)
        assert (await stage.take()).id == other.id

    async def test_one_that_is_to_be_tried_again_goes_before_the_one_behind_it(self, stage: Stage) -> None:
        await stage.put(self.behind())
        running = await stage.take()
        second = self.behind()
        await stage.put(second)
        await stage.settle(settlement_of(running, Failed(BOOM)))
        stage.wait(601)
        again = await stage.take()
        assert (again.id, again.failures) == (running.id, 1)
        await stage.settle(settlement_of(again, Succeeded()))
        assert (await stage.take()).id == second.id

    async def test_a_join_keeps_no_need_that_its_own_step_has_met(self, stage: Stage) -> None:
        """The run ahead is released, and too late when the next equal run comes: that put expires it, which meets the
        need of the run behind, and joins the run behind."""
        await stage.put(new_run(unique="queued", key="k", expires_after=20))
        running = await stage.take()
        await stage.put(second := self.behind())
        await stage.settle(settlement_of(running, Released()))
        stage.wait(30)
        assert await stage.admit(self.behind()) == Decision(second.id, Reason.JOINED)
        assert (await stage.see(running)).reason is Reason.EXPIRED
        assert (await stage.see(second)).needs == ()
        assert (await stage.take()).id == second.id

    async def test_cooldowns_know_an_end_that_another_run_waited_for(self, stage: Stage) -> None:
        """A skipped run leaves no mark, but a run that waited for any end of its key has seen one."""
        await stage.put(new_run(unique="queued", key="k", cooldowns=(Cooldown(0, 60),)))
        running = await stage.take()
        second = new_run(unique="queued", key="k", behind=True, cooldowns=(Cooldown(0, 60),))
        await stage.put(new_run("other", needs=[needs.ended(GREET, "k")]), second)
        await stage.put(new_run("another", needs=[needs.ended(GREET, "k")]))
        await stage.settle(settlement_of(running, Skipped("nothing to do")))
        assert (await stage.see(second)).due_at == ((await stage.see(running)).finished_at or 0.0) + 60

    async def test_the_rules_of_rest_are_judged_again_when_the_one_ahead_has_ended(self, stage: Stage) -> None:
        cooldowns = (Cooldown(0, 60), Cooldown(2, 3600, Reason.BREAKER))

        def guarded() -> NewRun:
            return new_run(unique="queued", key="k", behind=True, cooldowns=cooldowns)

        await stage.put(guarded())
        running = await stage.take()
        await stage.put(second := guarded())
        assert await stage.settle(settlement_of(running, Discarded(BOOM))) is Verdict.APPLIED
        waits = await stage.see(second)
        assert (waits.needs, waits.due_at) == ((), ((await stage.see(running)).finished_at or 0.0) + 60)
        assert (await stage.claim()).runs == []
        stage.wait(60)
        running = await stage.take()
        assert running.id == second.id
        await stage.put(third := guarded())
        await stage.settle(settlement_of(running, Discarded(BOOM)))
        assert (await stage.see(third)).due_at == ((await stage.see(running)).finished_at or 0.0) + 3600
