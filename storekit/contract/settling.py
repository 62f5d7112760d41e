"""settle: one worker and one ending per claim, however often the settlement is sent."""

import asyncio

import pytest
from msgspec.structs import replace

from rota.domain.decision import Reason
from rota.domain.guards import Unique
from rota.domain.lifecycle import (
    Crashed,
    Failed,
    Interrupted,
    Lost,
    Outcome,
    Released,
    Succeeded,
    Unbindable,
    settlement_of,
)
from rota.domain.policy import Policy
from rota.domain.run import ATTEMPTS_KEPT, Attempt, State, after
from rota.domain.settlement import Finish, Requeue, Settlement, Verdict
from storekit.contract.stage import BOOM, LEASE, Stage, Staged, new_run

APPLIED, ALREADY, STALE = Verdict.APPLIED, Verdict.ALREADY, Verdict.STALE
NO_RETRY = Policy()


class SettleContract(Staged):
    async def test_a_finish_is_recorded_with_its_result_and_attempt(self, stage: Stage) -> None:
        run = await stage.running()
        reply = await stage.store.settle([settlement_of(run, Succeeded(b'{"n":1}'), 0.125)])
        assert reply.items == [APPLIED]
        attempt = Attempt(run.fence, "ada", "succeeded", run.claimed_at or 0.0, reply.now, 0.125)
        assert await stage.see(run) == replace(
            run,
            state=State.SUCCEEDED,
            result=b'{"n":1}',
            finished_at=reply.now,
            attempts=(attempt,),
            worker=None,
            claimed_at=None,
            until=None,
        )

    async def test_a_failure_is_recorded_with_its_reason_and_error(self, stage: Stage) -> None:
        run = await stage.ended(new_run(policy=NO_RETRY), Failed(BOOM))
        assert (run.state, run.reason, run.error, run.result) == (State.FAILED, Reason.FAILED, BOOM, None)
        assert (run.failures, run.losses, run.attempts[0].error) == (1, 0, BOOM)

    async def test_a_crash_that_ends_a_run_counts_as_its_loss(self, stage: Stage) -> None:
        run = await stage.ended(new_run(policy=Policy(lost="fail")), Crashed(BOOM))
        assert (run.state, run.reason, run.failures, run.losses) == (State.FAILED, Reason.LOST, 0, 1)

    async def test_a_final_run_is_never_claimed_or_offered_again(self, stage: Stage) -> None:
        await stage.ended()
        await stage.ended(new_run(policy=NO_RETRY), Failed(BOOM))
        stage.wait(100_000)
        claim = await stage.claim("bob", free=10)
        assert (claim.runs, claim.lapsed) == ([], [])

    async def test_a_holder_may_settle_after_its_lease_lapsed_if_nobody_rescued_it(self, stage: Stage) -> None:
        run = await stage.lapsed()
        assert await stage.end(run, Succeeded()) is APPLIED
        assert (await stage.see(run)).state is State.SUCCEEDED

    async def test_a_finish_sent_again_is_already_applied(self, stage: Stage) -> None:
        run = await stage.running()
        assert await stage.end(run, Succeeded(b"1")) is APPLIED
        ended = await stage.see(run)
        stage.wait(10)
        assert await stage.end(run, Succeeded(b"1")) is ALREADY
        assert await stage.see(run) == ended

    @pytest.mark.parametrize("outcome", [Failed(BOOM), Released(), Interrupted(), Unbindable(BOOM)])
    async def test_a_requeue_sent_again_is_already_applied(self, stage: Stage, outcome: Outcome) -> None:
        run = await stage.running()
        assert await stage.end(run, outcome) is APPLIED
        queued = await stage.see(run)
        assert queued.state is State.QUEUED
        assert await stage.end(run, outcome) is ALREADY
        assert await stage.see(run) == queued
        stage.wait(601)
        again = await stage.take("bob")
        assert await stage.end(run, outcome) is ALREADY
        assert await stage.see(run) == again
        await stage.end(again, Succeeded())
        assert await stage.end(run, outcome) is ALREADY

    async def test_a_zombie_cannot_settle_a_run_it_lost(self, stage: Stage) -> None:
        run = await stage.lapsed()
        assert await stage.end(run, Lost()) is APPLIED
        rescued = await stage.see(run)
        assert (rescued.state, rescued.losses, rescued.failures) == (State.QUEUED, 1, 0)
        assert await stage.end(run, Succeeded(b"1")) is STALE
        assert await stage.end(run, Lost()) is ALREADY
        assert await stage.see(run) == rescued
        again = await stage.take("bob")
        assert await stage.end(run, Succeeded(b"1")) is STALE
        assert await stage.end(run, Released()) is STALE
        assert await stage.end(run, Lost()) is ALREADY
        assert await stage.see(run) == again
        assert await stage.end(again, Succeeded(b"2")) is APPLIED
        assert await stage.end(run, Succeeded(b"1")) is STALE
        assert (await stage.see(run)).result == b"2"

    async def test_a_rescuer_cannot_settle_a_run_that_its_worker_ended(self, stage: Stage) -> None:
        run = await stage.lapsed()
        assert await stage.end(run, Failed(BOOM)) is APPLIED
        queued = await stage.see(run)
        assert await stage.end(run, Lost()) is STALE
        assert await stage.end(run, Failed(BOOM)) is ALREADY
        assert await stage.see(run) == queued

    async def test_a_loss_applies_only_while_the_lease_is_lapsed(self, stage: Stage) -> None:
        run = await stage.running()
        stage.wait(LEASE - 10)
        assert await stage.end(run, Lost()) is STALE
        assert await stage.see(run) == run
        stage.wait(11)
        assert await stage.end(run, Lost()) is APPLIED

    @pytest.mark.parametrize("unique", [None, "done"])
    async def test_a_settlement_under_the_same_fence_by_another_worker_is_stale(
        self, stage: Stage, unique: Unique | None
    ) -> None:
        """A server may lose a claim at a failover and give the same fence to another worker."""
        run = await stage.running(new_run(key="k", unique=unique))
        forgotten = replace(run, worker="bob")
        assert await stage.end(forgotten, Succeeded(b"1")) is STALE
        assert await stage.end(forgotten, Released()) is STALE
        assert await stage.see(run) == run
        assert await stage.end(run, Succeeded(b"2")) is APPLIED
        assert await stage.end(forgotten, Succeeded(b"1")) is STALE
        assert await stage.end(run, Succeeded(b"2")) is ALREADY
        assert (await stage.see(run)).result == b"2"

    async def test_a_rescuer_who_found_another_worker_there_is_stale(self, stage: Stage) -> None:
        run = await stage.lapsed()
        assert await stage.end(replace(run, worker="bob"), Lost()) is STALE
        assert await stage.see(run) == run

    async def test_a_run_lost_for_good_ends_once(self, stage: Stage) -> None:
        run = await stage.lapsed(new_run(policy=Policy(lost="fail")))
        assert await stage.end(run, Lost()) is APPLIED
        ended = await stage.see(run)
        assert (ended.state, ended.reason, ended.losses) == (State.FAILED, Reason.LOST, 1)
        assert await stage.end(run, Succeeded()) is STALE
        assert await stage.end(run, Lost()) is ALREADY
        assert await stage.see(run) == ended

    async def test_two_settlements_of_one_run_in_a_batch_are_judged_in_turn(self, stage: Stage) -> None:
        run = await stage.running()
        batch = [settlement_of(run, Succeeded(b"1")), settlement_of(run, Succeeded(b"1")), settlement_of(run, Lost())]
        assert (await stage.store.settle(batch)).items == [APPLIED, ALREADY, STALE]
        ended = await stage.see(run)
        assert (ended.result, len(ended.attempts)) == (b"1", 1)

    async def test_a_bad_item_never_spoils_its_neighbours(self, stage: Stage) -> None:
        await stage.put(*(new_run() for _ in range(3)))
        one, two, three = (await stage.claim(free=3)).runs
        batch = [
            Settlement("never-put", 1, "ada", Finish(State.SUCCEEDED), "succeeded"),
            settlement_of(one, Succeeded(b"1")),
            replace(settlement_of(two, Succeeded()), fence=two.fence + 1),
            replace(settlement_of(two, Succeeded()), fence=0),
            settlement_of(three, Released()),
            settlement_of(one, Succeeded(b"1")),
        ]
        reply = await stage.store.settle(batch)
        assert reply.items == [STALE, APPLIED, STALE, STALE, APPLIED, ALREADY]
        states = [run.state for run in await stage.find(one, two, three)]
        assert states == [State.SUCCEEDED, State.RUNNING, State.QUEUED]
        assert await stage.see(two) == two

    async def test_settling_nothing_is_answered_with_the_time(self, stage: Stage) -> None:
        assert (await stage.store.settle([])).items == []

    async def test_of_many_who_settle_at_once_one_is_applied(self, stage: Stage) -> None:
        run = await stage.lapsed()
        endings: list[Outcome] = [Succeeded(b"1"), Lost()] * 10
        verdicts = await asyncio.gather(*(stage.end(run, outcome) for outcome in endings))
        assert verdicts.count(APPLIED) == 1
        assert verdicts.count(ALREADY) == 9
        assert len((await stage.see(run)).attempts) == 1

    async def test_a_release_keeps_the_place_in_the_queue(self, stage: Stage) -> None:
        early, late = new_run(at=1000), new_run(at=2000)
        await stage.put(late, early)
        run = await stage.take()
        await stage.end(run, Released())
        assert (await stage.see(early)).due_at == 1000
        assert (await stage.take()).id == early.id

    async def test_a_requeue_with_a_delay_is_due_that_long_after_now(self, stage: Stage) -> None:
        run = await stage.running()
        stage.wait(20)
        reply = await stage.store.settle([Settlement(run.id, run.fence, "ada", Requeue(900), "snoozed")])
        queued = await stage.see(run)
        assert (queued.state, queued.due_at) == (State.QUEUED, after(reply.now, 900))
        stage.wait(800)
        assert (await stage.claim()).runs == []
        stage.wait(101)
        assert (await stage.take()).fence == 2

    async def test_a_requeued_run_is_held_by_nobody(self, stage: Stage) -> None:
        run = await stage.running()
        await stage.end(run, Released())
        queued = await stage.see(run)
        assert (queued.worker, queued.until, queued.claimed_at, queued.finished_at) == (None,) * 4

    async def test_only_the_charged_counter_grows(self, stage: Stage) -> None:
        run = await stage.running()
        seen: list[tuple[str, int, int]] = []
        story: list[Outcome] = [Failed(BOOM), Released(), Interrupted(), Unbindable(BOOM), Lost(), Failed(BOOM)]
        for outcome in story:
            stage.wait(LEASE + 1)
            assert await stage.end(run, outcome) is APPLIED
            ended = await stage.see(run)
            seen.append((ended.attempts[-1].outcome, ended.failures, ended.losses))
            stage.wait(601)
            run = await stage.take()
        assert seen == [
            ("failed", 1, 0),
            ("released", 1, 0),
            ("interrupted", 1, 0),
            ("unbindable", 1, 0),
            ("lost", 1, 1),
            ("failed", 2, 1),
        ]

    async def test_the_last_twenty_attempts_are_kept(self, stage: Stage) -> None:
        run = await stage.running()
        for _ in range(ATTEMPTS_KEPT + 3):
            await stage.end(run, Released())
            run = await stage.take()
        assert [attempt.fence for attempt in run.attempts] == list(range(4, ATTEMPTS_KEPT + 4))

    async def test_attempts_are_stamped_by_the_clock_of_the_store(self, stage: Stage) -> None:
        stage.wait(1_000_000)
        run = await stage.running()
        stage.wait(20)
        reply = await stage.store.settle([settlement_of(run, Failed(BOOM), 19.5)])
        assert (await stage.see(run)).attempts == (
            Attempt(1, "ada", "failed", run.claimed_at or 0.0, reply.now, 19.5, BOOM),
        )

    async def test_a_new_claim_clears_no_history(self, stage: Stage) -> None:
        run = await stage.running()
        await stage.end(run, Failed(BOOM))
        queued = await stage.see(run)
        stage.wait(601)
        again = await stage.take()
        assert (again.attempts, again.failures, again.error) == (queued.attempts, 1, BOOM)
