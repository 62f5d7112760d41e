"""put with an id of the submitter's own: an idempotency key, remembered for a day after the end of its run."""

import asyncio

import pytest
from msgspec.structs import replace

from rota.domain.decision import Decision, DecisionCount, Reason
from rota.domain.ids import fingerprint
from rota.domain.lifecycle import Failed, Succeeded
from rota.domain.policy import Policy
from rota.domain.run import NewRun, State
from rota.store import OWN_ID_MEMORY, Command, Retention, RunQuery
from storekit.contract.stage import ARGS, BOOM, GREET, Stage, Staged, new_run

FORGETFUL = Retention(succeeded=0, failed=0, most=0, least=0)
ID = "order-17/ship"


def own(args: bytes = ARGS, task: str = GREET, id: str = ID, **more: object) -> NewRun:
    """Return a run whose submitter gave it its id."""
    made = new_run(task, id=id, args=args, **more)  # type: ignore[arg-type]
    return replace(made, fingerprint=fingerprint(task, args))


JOINED, CONFLICT = Decision(ID, Reason.JOINED), Decision(ID, Reason.ID_CONFLICT)


class OwnIdContract(Staged):
    async def test_the_first_put_of_an_id_wins_and_a_later_one_answers_its_run(self, stage: Stage) -> None:
        assert await stage.admit(own(priority=3)) == Decision(ID, Reason.ACCEPTED)
        before = await stage.see(own())
        stage.wait(5)
        assert await stage.admit(own(priority=9, delay=60)) == JOINED
        assert await stage.see(own()) == before
        assert (await stage.store.rows(DecisionCount)).items == []

    async def test_another_task_or_other_arguments_are_a_conflict(self, stage: Stage) -> None:
        await stage.put(own())
        before = await stage.see(own())
        for other in (own(b"[2]"), own(task="other")):
            assert await stage.admit(other) == CONFLICT
        assert await stage.see(own()) == before
        assert len((await stage.store.runs(RunQuery())).runs) == 1

    async def test_the_id_is_known_in_every_state(self, stage: Stage) -> None:
        run = await stage.running(own())
        assert await stage.admit(own()) == JOINED
        assert await stage.admit(own(b"[2]")) == CONFLICT
        await stage.end(run, Succeeded(b"7"))
        assert await stage.admit(own()) == JOINED
        assert await stage.admit(own(b"[2]")) == CONFLICT
        assert (await stage.see(run)).result == b"7"

    async def test_one_batch_may_have_an_id_twice(self, stage: Stage) -> None:
        reply = await stage.store.put([own(), new_run(), own(), own(b"[2]"), own(id="another")])
        reasons = [Reason.ACCEPTED, Reason.ACCEPTED, Reason.JOINED, Reason.ID_CONFLICT, Reason.ACCEPTED]
        assert [decision.reason for decision in reply.items] == reasons
        assert len((await stage.store.runs(RunQuery())).runs) == 3

    async def test_an_id_of_a_run_that_was_put_without_one_of_its_own_is_a_conflict(self, stage: Stage) -> None:
        await stage.put(new_run(id=ID))
        assert await stage.admit(own()) == CONFLICT

    async def test_two_at_once_make_one_run(self, stage: Stage) -> None:
        async with stage.backend.open() as other:
            puts = [store.put([own(), own(id=f"only-{n}")]) for n in range(10) for store in (stage.store, other)]
            answers = [reply.items for reply in await asyncio.gather(*puts)]
        assert sorted(shared.reason for shared, _ in answers) == ["accepted"] + ["joined"] * 19
        assert sorted(alone.reason for _, alone in answers) == ["accepted"] * 10 + ["joined"] * 10
        assert len((await stage.store.runs(RunQuery())).runs) == 11

    async def test_two_at_once_with_different_arguments_make_one_run(self, stage: Stage) -> None:
        async with stage.backend.open() as other:
            one, two = await asyncio.gather(stage.store.put([own()]), other.put([own(b"[2]")]))
        assert sorted([one.items[0].reason, two.items[0].reason]) == ["accepted", "id_conflict"]
        (run,) = await stage.find(own())
        assert run.args == (ARGS if one.items[0] else b"[2]")

    @pytest.mark.parametrize("outcome", [Succeeded(b"7"), Failed(BOOM)])
    async def test_the_id_outlives_its_run_by_a_day_after_the_end(
        self, stage: Stage, outcome: Succeeded | Failed
    ) -> None:
        await stage.ended(own(policy=Policy()), outcome)
        for waited in (3600, OWN_ID_MEMORY - 3700):
            stage.wait(waited)
            await stage.store.sweep(FORGETFUL)
            assert await stage.find(own()) == []
            assert await stage.admit(own()) == JOINED
            assert await stage.admit(own(b"[2]")) == CONFLICT
        stage.wait(101)
        await stage.store.sweep(FORGETFUL)
        assert await stage.admit(own(b"[2]")) == Decision(ID, Reason.ACCEPTED)
        assert await stage.admit(own(b"[2]")) == JOINED

    async def test_a_run_that_is_kept_longer_than_a_day_is_still_answered(self, stage: Stage) -> None:
        await stage.ended(own())
        stage.wait(3 * OWN_ID_MEMORY)
        await stage.store.sweep(Retention(succeeded=9 * OWN_ID_MEMORY))
        assert await stage.admit(own()) == JOINED
        await stage.store.sweep(FORGETFUL)
        await stage.store.sweep(FORGETFUL)
        assert await stage.admit(own()) == Decision(ID, Reason.ACCEPTED)

    async def test_a_waiting_run_that_was_cancelled_keeps_its_id(self, stage: Stage) -> None:
        await stage.put(own())
        await stage.cancel(own())
        stage.wait(3600)
        await stage.store.sweep(FORGETFUL)
        assert await stage.find(own()) == []
        assert await stage.admit(own()) == JOINED

    async def test_a_run_that_was_deleted_keeps_its_id(self, stage: Stage) -> None:
        await stage.ended(own())
        stage.wait(3600)
        assert (await stage.store.control(Command.DELETE, [ID])).items == [1]
        assert await stage.find(own()) == []
        assert await stage.admit(own()) == JOINED
        stage.wait(OWN_ID_MEMORY)
        await stage.store.sweep(FORGETFUL)
        assert await stage.admit(own()) == Decision(ID, Reason.ACCEPTED)

    async def test_a_refused_put_leaves_its_id_free(self, stage: Stage) -> None:
        await stage.put(new_run(max_pending=9))
        assert (await stage.admit(own(max_pending=1))).reason is Reason.QUEUE_FULL
        assert await stage.admit(own(b"[2]")) == Decision(ID, Reason.ACCEPTED)

    async def test_a_put_that_joins_an_equal_run_leaves_its_id_free(self, stage: Stage) -> None:
        holder = new_run(key="k", unique="queued")
        await stage.put(holder)
        assert await stage.admit(own(key="k", unique="queued")) == Decision(holder.id, Reason.JOINED)
        assert await stage.admit(own(b"[2]")) == Decision(ID, Reason.ACCEPTED)

    async def test_an_id_goes_with_guards_needs_and_groups(self, stage: Stage) -> None:
        first = new_run()
        await stage.put(first)
        waiting = own(key="k", unique="done", needs=[first.id])
        assert await stage.admit(waiting) == Decision(ID, Reason.ACCEPTED)
        assert await stage.admit(waiting) == JOINED
        assert (await stage.see(waiting)).state is State.QUEUED
