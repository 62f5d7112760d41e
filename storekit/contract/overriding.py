"""override: what an operator says of a task wins over its code, and no declaration takes it away."""

from typing import Any

from msgspec.structs import replace

from rota.domain.decision import Reason
from rota.domain.lifecycle import Succeeded
from rota.domain.overrides import Overrides
from rota.domain.policy import Limit, Rate, Retry
from rota.domain.run import State
from rota.domain.spec import TaskSpec
from rota.store import Command, Declared, RowQuery, Scope
from storekit.contract.stage import GREET, Stage, Staged, ids, new_run


class OverrideContract(Staged):
    async def override(self, stage: Stage, version: int = 1, task: str = GREET, **values: Any) -> Declared:
        given = Overrides(version, **values, note="flood", by="eve")
        (answer,) = (await stage.store.override(task, given)).items
        return answer

    async def greeting(self, stage: Stage) -> TaskSpec:
        (spec,) = (await stage.store.rows(TaskSpec, RowQuery(names=[GREET]))).items
        return spec

    async def test_it_is_beside_the_spec_and_each_change_needs_the_version_before(self, stage: Stage) -> None:
        await stage.declare(Limit(5))
        assert await self.override(stage, 1, limit=Limit(1)) is Declared.CHANGED
        assert await self.override(stage, 1, limit=Limit(1)) is Declared.UNCHANGED, "sent again"
        assert await self.override(stage, 1, limit=Limit(2)) is Declared.CONFLICT
        assert await self.override(stage, 3, limit=Limit(2)) is Declared.CONFLICT
        assert await self.greeting(stage) == TaskSpec(
            GREET, limit=Limit(5), overrides=Overrides(1, limit=Limit(1), note="flood", by="eve")
        )
        assert await self.override(stage, 2) is Declared.CHANGED
        assert [spec.name for spec in (await stage.store.rows(TaskSpec)).items] == [GREET], "its row is hidden"
        assert [spec.overrides for spec in (await stage.store.rows(TaskSpec)).items] == [
            Overrides(2, note="flood", by="eve")
        ]

    async def test_a_limit_wins_at_the_next_claim_and_the_code_has_its_own_back(self, stage: Stage) -> None:
        await stage.declare(Limit(3))
        await stage.put(*(new_run() for _ in range(6)))
        assert len((await stage.claim(free=1)).runs) == 1
        await self.override(stage, 1, limit=Limit(2))
        assert len((await stage.claim(free=6)).runs) == 1
        await stage.declare(Limit(4))
        assert (await stage.claim(free=6)).runs == [], "a declaration does not take it away"
        await self.override(stage, 2)
        assert len((await stage.claim(free=6)).runs) == 2

    async def test_a_task_without_a_gate_gets_one_and_counts_what_runs(self, stage: Stage) -> None:
        await stage.declare()
        run = await stage.running()
        await stage.put(new_run(), new_run())
        await self.override(stage, 1, limit=Limit(2))
        assert len((await stage.claim(free=5)).runs) == 1
        await stage.end(run, Succeeded())
        assert len((await stage.claim(free=5)).runs) == 1
        await self.override(stage, 2)
        await stage.put(new_run(), new_run())
        assert len((await stage.claim(free=5)).runs) == 2

    async def test_a_limit_of_keys_lets_parked_runs_go_when_it_grows(self, stage: Stage) -> None:
        await stage.declare(Limit(per_key=1))
        await stage.put(*(new_run(key="k") for _ in range(4)))
        assert len((await stage.claim(free=5)).runs) == 1
        await self.override(stage, 1, limit=Limit(per_key=3))
        assert len((await stage.claim(free=5)).runs) == 2

    async def test_a_rate_wins(self, stage: Stage) -> None:
        await stage.store.declare([TaskSpec(GREET, rate=Rate(1, 3600))])
        await stage.put(*(new_run() for _ in range(4)))
        assert len((await stage.claim(free=5)).runs) == 1
        await self.override(stage, 1, rate=Rate(1, 10))
        assert len((await stage.claim(free=5)).runs) == 1
        stage.wait(10)
        assert len((await stage.claim(free=5)).runs) == 1
        await self.override(stage, 2)
        stage.wait(10)
        assert len((await stage.claim(free=5)).runs) == 1, "the code's rate has a new bucket"
        stage.wait(10)
        assert (await stage.claim(free=5)).runs == []

    async def test_a_declaration_gives_the_rate_of_an_operator_no_new_bucket(self, stage: Stage) -> None:
        await stage.declare()
        await stage.put(*(new_run() for _ in range(4)))
        await self.override(stage, 1, rate=Rate(1, 3600))
        assert len((await stage.claim(free=5)).runs) == 1
        for rate in (None, Rate(2, 60)):
            await stage.store.declare([TaskSpec(GREET, limit=Limit(9), rate=rate)])
            assert (await stage.claim(free=5)).runs == []
        await self.override(stage, 2)
        assert len((await stage.claim(free=5)).runs) == 1, "the code's rate has a new bucket"

    async def test_a_version_that_cannot_be_changes_nothing(self, stage: Stage) -> None:
        for version in (0, 2):
            assert await self.override(stage, version, "never", limit=Limit(1)) is Declared.CONFLICT
        assert (await stage.store.override("never", Overrides())).items == [Declared.CONFLICT]
        assert (await stage.store.rows(TaskSpec, RowQuery(names=["never"]))).items == []
        assert (await stage.store.declare([TaskSpec("never")])).items == [Declared.ADDED]

    async def test_it_disables_a_task_and_enables_none_that_its_code_disables(self, stage: Stage) -> None:
        await stage.declare()
        await stage.put(waiting := new_run())
        await self.override(stage, 1, enabled=False)
        assert (await stage.claim()).runs == []
        (refused,) = (await stage.store.put([new_run()])).items
        assert refused.reason is Reason.DISABLED
        assert (await self.greeting(stage)).starts_nothing
        async with stage.listening() as ear:
            await stage.claim()
            await self.override(stage, 2, enabled=True)
            assert "ada" in await ear.workers()
        assert ids((await stage.claim()).runs) == [waiting.id]
        await stage.store.declare([TaskSpec(GREET, enabled=False)])
        (refused,) = (await stage.store.put([new_run()])).items
        assert refused.reason is Reason.DISABLED

    async def test_a_claim_answers_runs_with_its_retry_and_timeout(self, stage: Stage) -> None:
        await stage.put(first := new_run(), new_run(), new_run("other"))
        plain = (await stage.see(first)).policy
        await self.override(stage, 1, retry=Retry(7), timeout=2.5)
        claimed = {run.task: run for run in (await stage.claim(free=3, tasks=[GREET, "other"])).runs}
        policy = replace(plain, retry=Retry(7), timeout=2.5, overridden_retry=True)
        assert claimed[GREET].policy == policy
        assert claimed["other"].policy == plain
        assert (await stage.see(first)).policy == plain, "the run itself has what was submitted"
        again = (await stage.claim(free=3, tasks=[GREET, "other"], again=True)).runs
        assert {run.task: run.policy for run in again} == {GREET: policy, "other": plain}
        await self.override(stage, 2)
        await stage.put(new_run())
        assert (await stage.take("bob")).policy == plain

    async def test_no_run_of_it_is_handed_over(self, stage: Stage) -> None:
        await self.override(stage, 1, timeout=2.5)
        await stage.claim("ada", ready=True)
        await stage.put(new := new_run())
        assert (await stage.see(new)).state is State.QUEUED

    async def test_a_pause_and_a_declaration_leave_it_alone(self, stage: Stage) -> None:
        await self.override(stage, 1, limit=Limit(1))
        await stage.store.control(Command.PAUSE, [GREET], of=Scope.TASKS)
        await stage.declare(Limit(5))
        await stage.store.control(Command.RESUME, [GREET], of=Scope.TASKS)
        await self.override(stage, 2)
        assert await self.greeting(stage) == TaskSpec(
            GREET, limit=Limit(5), overrides=Overrides(2, note="flood", by="eve")
        )
        await stage.put(*(new_run() for _ in range(6)))
        assert len((await stage.claim(free=9)).runs) == 5
