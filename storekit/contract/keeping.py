"""sweep: how long ended runs are kept."""

from rota.domain.lifecycle import Cancelled, Failed, Outcome, Succeeded, settlement_of
from rota.domain.policy import Policy
from rota.domain.run import Run, State
from rota.store import ID_MEMORY, Retention, RunQuery
from storekit.contract.stage import BOOM, GREET, Stage, Staged, ids, new_run

DAY = 86_400.0


class SweepContract(Staged):
    async def end_together(self, stage: Stage, count: int, outcome: Outcome, task: str = GREET) -> list[Run]:
        """Return runs that end in one batch, so at one instant."""
        await stage.put(*(new_run(task, policy=Policy()) for _ in range(count)))
        runs = (await stage.claim(free=count, tasks=[task])).runs
        await stage.store.settle([settlement_of(run, outcome) for run in runs])
        return runs

    async def end_in_turn(self, stage: Stage, count: int, outcome: Outcome, task: str = GREET) -> list[Run]:
        runs: list[Run] = []
        for _ in range(count):
            runs += await self.end_together(stage, 1, outcome, task)
            stage.wait(1)
        return runs

    async def kept(self, stage: Stage, retention: Retention) -> list[str]:
        """Return the ids that a sweep keeps, the oldest first."""
        before = ids((await stage.store.runs(RunQuery(limit=1000))).runs)
        swept = await stage.store.sweep(retention)
        left = ids((await stage.store.runs(RunQuery(limit=1000))).runs)
        assert swept.forgotten == len(before) - len(left)
        return left[::-1]

    async def test_runs_are_forgotten_by_age_and_state(self, stage: Stage) -> None:
        succeeded = await self.end_in_turn(stage, 1, Succeeded())
        failed = await self.end_in_turn(stage, 1, Failed(BOOM))
        cancelled = await self.end_in_turn(stage, 1, Cancelled())
        retention = Retention(succeeded=DAY, failed=7 * DAY, least=0)
        stage.wait(DAY - 600)
        assert await self.kept(stage, retention) == ids(succeeded + failed + cancelled)
        stage.wait(601)
        assert await self.kept(stage, retention) == ids(failed + cancelled)
        stage.wait(6 * DAY)
        assert await self.kept(stage, retention) == []
        assert await stage.find(*succeeded, *failed) == []

    async def test_age_counts_from_the_end(self, stage: Stage) -> None:
        run = await stage.running()
        stage.wait(2 * DAY)
        await stage.end(run, Succeeded())
        stage.wait(DAY / 2)
        assert await self.kept(stage, Retention(least=0)) == [run.id]

    async def test_at_most_so_many_are_kept_per_task(self, stage: Stage) -> None:
        runs = await self.end_in_turn(stage, 5, Succeeded())
        failed = await self.end_in_turn(stage, 2, Failed(BOOM))
        others = await self.end_in_turn(stage, 2, Succeeded(), "other")
        stage.wait(ID_MEMORY + 1)
        retention = Retention(most=4, least=0)
        assert await self.kept(stage, retention) == ids(runs[3:] + failed + others)
        assert await self.kept(stage, retention) == ids(runs[3:] + failed + others)

    async def test_no_id_is_forgotten_too_early_for_being_one_too_many(self, stage: Stage) -> None:
        runs = await self.end_in_turn(stage, 4, Succeeded())
        assert await self.kept(stage, Retention(most=1, least=0)) == ids(runs)
        stage.wait(ID_MEMORY - 15)
        assert await self.kept(stage, Retention(most=1, least=0)) == ids(runs)
        stage.wait(16)
        assert await self.kept(stage, Retention(most=1, least=0)) == ids(runs[3:])

    async def test_the_last_ones_are_kept_however_old(self, stage: Stage) -> None:
        runs = await self.end_in_turn(stage, 5, Succeeded())
        others = await self.end_in_turn(stage, 2, Failed(BOOM), "other")
        stage.wait(100 * DAY)
        assert await self.kept(stage, Retention(least=3)) == ids(runs[2:] + others)

    async def test_the_last_ones_are_the_last_of_any_state(self, stage: Stage) -> None:
        failed = await self.end_in_turn(stage, 2, Failed(BOOM))
        succeeded = await self.end_in_turn(stage, 3, Succeeded())
        stage.wait(2 * DAY)
        assert await self.kept(stage, Retention(least=2)) == ids(failed + succeeded[1:])

    async def test_runs_that_ended_together_are_counted_one_by_one(self, stage: Stage) -> None:
        runs = await self.end_together(stage, 6, Succeeded())
        stage.wait(2 * DAY)
        assert len(await self.kept(stage, Retention(least=4))) == 4
        assert len(await self.kept(stage, Retention(most=3, least=0, succeeded=9 * DAY))) == 3
        assert len(runs) == 6

    async def test_what_has_not_ended_is_never_forgotten(self, stage: Stage) -> None:
        run, queued = await stage.running(), new_run(delay=60)
        await stage.put(queued)
        stage.wait(100 * DAY)
        assert await self.kept(stage, Retention(succeeded=0, failed=0, most=0, least=0)) == ids([run, queued])
        assert [seen.state for seen in await stage.find(run, queued)] == [State.RUNNING, State.QUEUED]
