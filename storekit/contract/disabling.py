"""Disabled tasks: no run of such a task starts and no new run is accepted until its code enables the task again."""

from rota.domain.decision import Decision, Reason
from rota.domain.lifecycle import Failed, Lost, Released, Succeeded
from rota.domain.policy import Limit, Rate
from rota.domain.run import State
from rota.domain.settlement import Verdict
from rota.domain.spec import TaskSpec
from rota.store import Command, Renewal, Scope
from storekit.contract.stage import BOOM, GREET, Stage, Staged, ids, new_run


class DisabledContract(Staged):
    async def test_a_disabled_task_refuses_until_it_is_enabled(self, stage: Stage) -> None:
        await stage.declare(enabled=False)
        refused = new_run()
        assert await stage.admit(refused) == Decision(refused.id, Reason.DISABLED)
        assert await stage.find(refused) == []
        assert await stage.admit(new_run("other"))
        await stage.declare(enabled=True)
        assert await stage.admit(refused)

    async def test_what_was_taken_before_answers_the_same_and_waits(self, stage: Stage) -> None:
        new = new_run()
        await stage.put(new)
        await stage.declare(enabled=False)
        await stage.put(new)
        assert (await stage.claim()).runs == []
        await stage.declare(enabled=True)
        assert (await stage.take()).id == new.id

    async def test_a_claim_passes_a_disabled_task_over_and_does_not_wake_for_it(self, stage: Stage) -> None:
        first, second, other = new_run(priority=9), new_run(), new_run("other")
        await stage.put(first, second, new_run(delay=60), other)
        await stage.declare(enabled=False)
        claim = await stage.claim(free=9, tasks=[GREET, "other"])
        assert ids(claim.runs) == [other.id]
        assert claim.wake is None
        assert (await stage.see(first)).state is State.QUEUED
        await stage.declare(enabled=True)
        assert ids((await stage.claim(free=9)).runs) == ids([first, second])

    async def test_what_runs_of_a_disabled_task_runs_on_and_is_not_tried_again(self, stage: Stage) -> None:
        runs = [await stage.running(), await stage.running()]
        await stage.declare(enabled=False)
        assert [await stage.renew(run) for run in runs] == [Renewal.OK] * 2
        assert await stage.end(runs[0], Released()) is Verdict.APPLIED
        assert await stage.end(runs[1], Failed(BOOM)) is Verdict.APPLIED
        stage.wait(700)
        assert [run.state for run in await stage.find(*runs)] == [State.QUEUED] * 2
        assert (await stage.claim(free=9)).runs == []
        await stage.declare(enabled=True)
        assert len((await stage.claim(free=9)).runs) == 2

    async def test_a_rescued_run_of_a_disabled_task_waits(self, stage: Stage) -> None:
        run = await stage.lapsed()
        await stage.declare(enabled=False)
        claim = await stage.claim("bob")
        assert (ids(claim.lapsed), claim.runs) == ([run.id], [])
        assert await stage.end(claim.lapsed[0], Lost()) is Verdict.APPLIED
        assert (await stage.claim("bob", free=9)).runs == []
        await stage.declare(enabled=True)
        assert (await stage.take("bob")).id == run.id

    async def test_a_claim_that_is_sent_again_still_answers_what_it_took(self, stage: Stage) -> None:
        run = await stage.running()
        await stage.declare(enabled=False)
        assert ids((await stage.claim(again=True)).runs) == [run.id]
        assert await stage.end(run, Succeeded()) is Verdict.APPLIED

    async def test_parked_runs_of_a_disabled_task_wait_and_go_on_afterwards(self, stage: Stage) -> None:
        await stage.declare(Limit(per_key=1))
        run = await stage.running(new_run(key="k"))
        await stage.put(parked := new_run(key="k"))
        await stage.declare(Limit(per_key=1), enabled=False)
        assert await stage.end(run, Succeeded()) is Verdict.APPLIED
        assert (await stage.claim(free=9)).runs == []
        await stage.declare(Limit(per_key=1), enabled=True)
        assert (await stage.take()).id == parked.id

    async def test_nobody_wakes_for_the_rate_of_a_disabled_task(self, stage: Stage) -> None:
        rate = Rate(1, 60, per_key=True)
        await stage.declare(rate=rate)
        await stage.put(new_run(key="k"), waits := new_run(key="k"))
        assert len((await stage.claim(free=9)).runs) == 1
        await stage.declare(rate=rate, enabled=False)
        stage.wait(61)
        claim = await stage.claim("bob", free=9)
        assert (claim.runs, claim.wake) == ([], None)
        await stage.declare(rate=rate, enabled=True)
        assert (await stage.take("bob")).id == waits.id

    async def test_a_task_that_is_enabled_again_hints_an_idle_worker(self, stage: Stage) -> None:
        await stage.put(new_run())
        await stage.declare(enabled=False)
        await stage.claim()
        async with stage.listening() as ear:
            await stage.declare(enabled=True)
            assert await ear.workers() == {"ada"}

    async def test_the_last_publish_says_whether_a_task_is_enabled(self, stage: Stage) -> None:
        await stage.put(new_run())
        await stage.declare(enabled=False)
        await stage.store.declare([TaskSpec(GREET, description="of an older release")])
        assert len((await stage.claim()).runs) == 1

    async def test_disabled_and_paused_hold_a_task_each_by_itself(self, stage: Stage) -> None:
        await stage.put(new_run())
        await stage.declare(enabled=False)
        assert (await stage.store.control(Command.PAUSE, [GREET], of=Scope.TASKS)).items == [1]
        await stage.declare(enabled=True)
        assert (await stage.claim()).runs == []
        await stage.declare(enabled=False)
        assert (await stage.store.control(Command.RESUME, [GREET], of=Scope.TASKS)).items == [1]
        assert (await stage.claim()).runs == []
        await stage.declare(enabled=True)
        assert len((await stage.claim()).runs) == 1

    async def test_a_run_is_not_handed_over_once_its_task_is_disabled(self, stage: Stage) -> None:
        async with stage.listening() as ear:
            await stage.claim(ready=True)
            await stage.declare(enabled=False)
            refused = new_run()
            assert await stage.admit(refused) == Decision(refused.id, Reason.DISABLED)
            assert await ear.handed() is None

    async def test_a_refused_neighbour_spoils_nothing(self, stage: Stage) -> None:
        await stage.declare(task="off", enabled=False)
        await stage.put(full := new_run(max_pending=1, unique="queued", key="k"))
        batch = [new_run(), new_run("off"), new_run(max_pending=1), new_run(unique="queued", key="k", join="refuse")]
        reasons = [decision.reason for decision in (await stage.store.put([*batch, new_run()])).items]
        assert reasons == ["accepted", "disabled", "queue_full", "already_queued", "accepted"]
        assert len((await stage.claim(free=9)).runs) == 3
        assert (await stage.store.control(Command.DROP, [full.id])).items == [0]
