"""cooldowns and max_pending: other guards that refuse a put."""

import pytest

from rota.domain.decision import Decision, Reason
from rota.domain.guards import Cooldown
from rota.domain.lifecycle import Cancelled, Failed, Outcome, Skipped, Succeeded
from rota.domain.policy import Limit, Policy
from rota.domain.run import NewRun, State
from storekit.contract.stage import BOOM, Stage, Staged, new_run

SPACING = Cooldown(0, 60.0)
BREAKER = Cooldown(3, 600.0, Reason.BREAKER)


def spaced(key: str | None = "k", cooldowns: tuple[Cooldown, ...] = (SPACING,)) -> NewRun:
    return new_run(key=key, cooldowns=cooldowns, policy=Policy())


def guarded(key: str = "k") -> NewRun:
    return spaced(key, (BREAKER,))


class CooldownContract(Staged):
    async def end(self, stage: Stage, outcome: Outcome, new: NewRun | None = None) -> None:
        await stage.ended(new or guarded(), outcome)

    @pytest.mark.parametrize("outcome", [Succeeded(), Failed(BOOM)])
    async def test_a_key_rests_after_any_end_and_not_longer(self, stage: Stage, outcome: Outcome) -> None:
        await self.end(stage, outcome, spaced())
        refused = spaced()
        for _ in range(2):
            assert await stage.admit(refused) == Decision(refused.id, Reason.RESTING)
            stage.wait(28)
        assert await stage.find(refused) == []
        stage.wait(5)
        assert await stage.admit(refused) == Decision(refused.id, Reason.ACCEPTED)

    async def test_a_refusal_does_not_prolong_the_rest(self, stage: Stage) -> None:
        await self.end(stage, Succeeded(), spaced())
        for _ in range(6):
            stage.wait(9)
            assert not await stage.admit(spaced())
        stage.wait(7)
        assert await stage.admit(spaced())

    async def test_before_its_first_end_a_key_does_not_rest(self, stage: Stage) -> None:
        await stage.running(spaced())
        assert await stage.admit(spaced())

    async def test_other_keys_and_tasks_do_not_rest(self, stage: Stage) -> None:
        await self.end(stage, Succeeded(), spaced())
        assert await stage.admit(spaced("l"))
        assert await stage.admit(new_run("other", key="k", cooldowns=(SPACING,)))
        assert not await stage.admit(spaced())

    async def test_without_a_key_the_whole_task_rests(self, stage: Stage) -> None:
        await self.end(stage, Succeeded(), spaced(None))
        assert not await stage.admit(spaced(None))
        assert await stage.admit(spaced("k"))

    async def test_without_rest_nothing_is_judged(self, stage: Stage) -> None:
        await self.end(stage, Succeeded(), spaced())
        assert await stage.admit(new_run(key="k"))

    async def test_three_failures_in_a_row_open_the_breaker_for_its_time(self, stage: Stage) -> None:
        for _ in range(3):
            await self.end(stage, Failed(BOOM))
        assert (await stage.admit(guarded())).reason is Reason.BREAKER
        stage.wait(595)
        assert (await stage.admit(guarded())).reason is Reason.BREAKER
        stage.wait(10)
        await self.end(stage, Failed(BOOM))  # the fourth failure in a row: the breaker opens again
        assert (await stage.admit(guarded())).reason is Reason.BREAKER

    async def test_a_success_closes_the_breaker(self, stage: Stage) -> None:
        for outcome in (Failed(BOOM), Failed(BOOM), Succeeded(), Failed(BOOM), Failed(BOOM)):
            await self.end(stage, outcome)
        assert await stage.admit(guarded())

    async def test_failures_that_are_tried_again_do_not_count_by_themselves(self, stage: Stage) -> None:
        run = await stage.running(new_run(key="k", cooldowns=(BREAKER,)))
        for _ in range(5):
            await stage.end(run, Failed(BOOM))
            stage.wait(601)
            run = await stage.take()
        await stage.end(run, Succeeded())
        assert await stage.admit(guarded())

    async def test_the_first_rule_that_says_no_gives_the_reason(self, stage: Stage) -> None:
        both = (BREAKER, SPACING)
        await self.end(stage, Failed(BOOM), spaced(cooldowns=both))
        assert (await stage.admit(spaced(cooldowns=both))).reason is Reason.RESTING
        for _ in range(2):
            stage.wait(61)
            await self.end(stage, Failed(BOOM), spaced(cooldowns=both))
        assert (await stage.admit(spaced(cooldowns=both))).reason is Reason.BREAKER

    async def test_cancelled_and_skipped_runs_say_nothing_of_their_key(self, stage: Stage) -> None:
        await self.end(stage, Cancelled(), spaced())
        await self.end(stage, Skipped("nothing to do"), spaced())
        waiting = spaced()
        await stage.put(waiting)
        await stage.cancel(waiting)
        assert await stage.admit(spaced())

    async def test_a_skip_does_not_close_the_breaker(self, stage: Stage) -> None:
        for outcome in (Failed(BOOM), Failed(BOOM), Skipped("nothing to do"), Cancelled(), Failed(BOOM)):
            await self.end(stage, outcome)
        assert (await stage.admit(guarded())).reason is Reason.BREAKER

    async def test_what_is_skipped_is_not_done(self, stage: Stage) -> None:
        skipped = await stage.ended(new_run(unique="done", key="k"), Skipped("nothing to do"))
        assert (skipped.state, skipped.reason) == (State.SUCCEEDED, Reason.SKIPPED)
        assert await stage.admit(new_run(unique="done", key="k"))

    async def test_unique_and_rest_are_about_the_same_key(self, stage: Stage) -> None:
        """The unique key, for example a digest of the arguments, is the key of the mark if the run has no key."""
        new = new_run(unique="active", cooldowns=(SPACING,))
        await stage.ended(new)
        assert (await stage.admit(new_run(unique="active", cooldowns=(SPACING,)))).reason is Reason.RESTING

    async def test_the_same_id_again_does_not_rest(self, stage: Stage) -> None:
        new = spaced()
        await self.end(stage, Succeeded(), new)
        assert await stage.admit(new) == Decision(new.id, Reason.ACCEPTED)


class PendingContract(Staged):
    def one_more(self, **more: float) -> NewRun:
        return new_run(max_pending=3, **more)  # type: ignore[arg-type]

    async def test_a_task_with_enough_waiting_refuses_more(self, stage: Stage) -> None:
        await stage.put(self.one_more(), self.one_more(delay=60), new_run())
        refused = self.one_more()
        assert await stage.admit(refused) == Decision(refused.id, Reason.QUEUE_FULL)
        assert await stage.find(refused) == []
        assert await stage.admit(new_run())
        assert await stage.admit(new_run("other", max_pending=3))

    async def test_a_batch_goes_in_as_far_as_there_is_room(self, stage: Stage) -> None:
        reply = await stage.store.put([self.one_more() for _ in range(5)])
        assert [bool(decision) for decision in reply.items] == [True] * 3 + [False] * 2

    async def test_room_comes_back_when_a_run_starts_or_ends(self, stage: Stage) -> None:
        news = [self.one_more() for _ in range(3)]
        await stage.put(*news)
        await stage.take()
        assert await stage.admit(self.one_more())
        assert not await stage.admit(self.one_more())
        await stage.cancel(news[2])
        assert await stage.admit(self.one_more())
        assert not await stage.admit(self.one_more())

    async def test_parked_runs_wait_as_well_and_paused_ones_do_not(self, stage: Stage) -> None:
        await stage.declare(Limit(per_key=1))
        await stage.running(new_run(key="k"))
        news = [new_run(key="k") for _ in range(3)]
        await stage.put(*news)
        assert (await stage.claim("bob")).runs == []
        await stage.pause(news[0])
        assert await stage.admit(self.one_more())
        assert not await stage.admit(self.one_more())

    async def test_the_same_id_again_is_not_one_too_many(self, stage: Stage) -> None:
        news = [self.one_more() for _ in range(3)]
        await stage.put(*news)
        await stage.put(*news)
