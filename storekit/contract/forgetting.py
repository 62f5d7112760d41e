"""sweep: marks, decisions, workers and schedules are forgotten in time, and the work of one sweep is bounded."""

from rota.domain.decision import Reason
from rota.domain.guards import Cooldown, Guards, Mark
from rota.domain.lifecycle import Succeeded
from rota.domain.policy import Limit
from rota.domain.spec import TaskSpec
from rota.store import ID_MEMORY, Command, MarkRow, Report, Retention, RunQuery, Scope, Swept, Tally, WorkerSeen
from storekit.contract.stage import GREET, Stage, Staged, new_run

DAY = 86_400.0
FORGETFUL = Retention(succeeded=0, failed=0, most=0, least=0)


class ForgetContract(Staged):
    async def sweep_all(self, stage: Stage) -> list[Swept]:
        """Sweep until there is nothing more to do, and return all answers."""
        swept: list[Swept] = []
        for _ in range(200):
            swept.append(await stage.store.sweep(FORGETFUL))
            if not swept[-1].more:
                return swept
        raise AssertionError("there is always more to sweep")

    async def test_a_task_may_keep_its_ended_runs_longer_or_less_long_than_the_others(self, stage: Stage) -> None:
        brief, long = (
            Retention(succeeded=300, failed=600, most=9, least=1),
            Retention(succeeded=9 * DAY, failed=0, least=0),
        )
        await stage.store.declare([TaskSpec("brief", keep=brief), TaskSpec("long", keep=long, description='"keep":')])
        news = {task: [new_run(task, id=f"{task}{n}") for n in range(3)] for task in ("brief", "long", "usual")}
        for task, runs in news.items():
            await stage.put(*runs)
            for run in (await stage.claim("ada", 3, tasks=[task])).runs:
                await stage.end(run, Succeeded())
                stage.wait(1)
        cancelled = new_run("brief"), new_run("long")
        await stage.put(*cancelled)
        for new in cancelled:
            await stage.cancel(new)
        kept = Retention(succeeded=DAY, failed=DAY, least=0)
        for waited, expected in (
            (
                200,
                [
                    "brief0",
                    "brief1",
                    "brief2",
                    cancelled[0].id,
                    "long0",
                    "long1",
                    "long2",
                    "usual0",
                    "usual1",
                    "usual2",
                ],
            ),
            (200, [cancelled[0].id, "long0", "long1", "long2", "usual0", "usual1", "usual2"]),
            (DAY, [cancelled[0].id, "long0", "long1", "long2"]),
        ):
            stage.wait(waited)
            await stage.store.sweep(kept)
            found = {run.id for run in (await stage.store.runs(RunQuery(limit=100))).runs}
            assert found == set(expected)

    async def test_a_sweep_says_whether_it_left_something_to_expire(self, stage: Stage) -> None:
        await stage.put(*(new_run(expires_after=60) for _ in range(2300)))
        stage.wait(61)
        swept = await self.sweep_all(stage)
        assert sum(step.expired for step in swept) == 2300
        assert (await stage.store.depths()).items == []
        assert (await stage.store.sweep(FORGETFUL)).expired == 0

    async def test_a_sweep_says_whether_it_left_something_to_forget(self, stage: Stage) -> None:
        for task in ("a", "b"):
            await stage.put(*(new_run(task, delay=3600) for _ in range(6000)))
            while (await stage.store.control(Command.DROP, [task], of=Scope.TASKS)).items != [0]:
                pass
        stage.wait(ID_MEMORY + 1)
        swept = await self.sweep_all(stage)
        assert sum(step.forgotten for step in swept) == 12_000
        assert (await stage.store.sweep(FORGETFUL)).forgotten == 0

    async def test_what_a_sweep_itself_has_ended_counts_among_the_last(self, stage: Stage) -> None:
        old = await stage.ended()
        await stage.put(new_run(delay=60, expires_after=60))
        stage.wait(121)
        swept = await stage.store.sweep(Retention(most=1, least=0))
        assert (swept.expired, swept.forgotten) == (1, 1)
        assert await stage.find(old) == []

    async def test_a_small_sweep_leaves_nothing(self, stage: Stage) -> None:
        await stage.ended()
        stage.wait(ID_MEMORY + 1)
        assert not (await stage.store.sweep(FORGETFUL)).more

    async def test_expired_runs_of_a_saturated_key_let_the_next_one_start(self, stage: Stage) -> None:
        await stage.declare(Limit(per_key=1))
        run, waiting = await stage.running(new_run(key="k")), new_run(key="k")
        await stage.put(*(new_run(key="k", expires_after=60) for _ in range(3)), waiting)
        assert (await stage.claim("bob")).runs == []
        await stage.end(run, Succeeded())
        stage.wait(61)
        assert (await stage.store.sweep(Retention())).expired == 3
        assert (await stage.take("bob")).id == waiting.id

    async def test_a_mark_is_kept_for_eight_days(self, stage: Stage) -> None:
        resting = (Cooldown(0, 100 * DAY),)
        await stage.ended(new_run(key="k", unique="done"))
        stage.wait(7.9 * DAY)
        await self.sweep_all(stage)
        assert (await stage.admit(new_run(key="k", cooldowns=resting))).reason is Reason.RESTING
        assert (await stage.admit(new_run(key="k", unique="done"))).reason is Reason.ALREADY_DONE
        stage.wait(0.2 * DAY)
        await self.sweep_all(stage)
        assert await stage.admit(new_run(key="k", cooldowns=resting))

    async def test_a_mark_is_kept_as_long_as_a_policy_of_its_task_reads_it(self, stage: Stage) -> None:
        lasting = {"done": Guards(unique="done"), "slow": Guards(cooldowns=(Cooldown(0, 20 * DAY),)), "usual": Guards()}
        await stage.store.declare([TaskSpec(task, guards=guards) for task, guards in lasting.items()])
        now = await stage.now()
        await stage.store.mark([MarkRow(task, "k", Mark(now, now)) for task in (*lasting, "undeclared")])
        kept: list[list[str]] = []
        for days in (7, 2, 10, 2, 1000):
            stage.wait(days * DAY)
            await self.sweep_all(stage)
            kept.append([row.task for row in (await stage.store.rows(MarkRow)).items])
        assert kept == [["done", "slow", "undeclared", "usual"], ["done", "slow"], ["done", "slow"], ["done"], ["done"]]

    async def test_workers_that_are_gone_are_forgotten(self, stage: Stage) -> None:
        await stage.claim("ada")
        stage.wait(600)
        await stage.claim("bob")
        await self.sweep_all(stage)
        assert [seen.name for seen in (await stage.store.rows(WorkerSeen)).items] == ["ada", "bob"]
        stage.wait(DAY)
        await stage.claim("bob")
        await self.sweep_all(stage)
        assert [seen.name for seen in (await stage.store.rows(WorkerSeen)).items] == ["bob"]

    async def test_counts_are_kept_for_two_days(self, stage: Stage) -> None:
        await stage.claim(report=Report(tallies=(Tally(GREET, 1),)))
        stage.wait(1.9 * DAY)
        await self.sweep_all(stage)
        assert len((await stage.store.stats(5000)).items) == 1
        stage.wait(0.2 * DAY)
        await self.sweep_all(stage)
        assert (await stage.store.stats(5000)).items == []
