"""declare, rows and stats: specs of tasks, and reports of workers."""

from msgspec.structs import replace

from rota.domain.policy import Limit, Policy, Rate, Retry
from rota.domain.spec import TaskSpec
from rota.domain.tuning import Retention
from rota.store import TOTAL, ClaimRequest, Declared, Report, Stat, Tally, WorkerSeen
from storekit.contract.stage import GREET, Stage, Staged, new_run

FULL = TaskSpec(
    GREET, False, Limit(9, 2), Rate(5, 60, 2, True), "Greets. 🦉", "process", policy=Policy(Retry(3), timeout=30.0)
)
REPORT = Report("host", 71, "1.2", seats=10, leased=3, overdue=1)


class DeclareContract(Staged):
    async def specs(self, stage: Stage) -> list[TaskSpec]:
        return (await stage.store.rows(TaskSpec)).items

    async def test_the_last_publish_wins(self, stage: Stage) -> None:
        assert await self.specs(stage) == []
        other = TaskSpec("elsewhere")
        assert (await stage.store.declare([FULL, other])).items == [Declared.ADDED, Declared.ADDED]
        assert await self.specs(stage) == [other, FULL]
        newer = TaskSpec(GREET, limit=Limit(1))
        assert (await stage.store.declare([newer])).items == [Declared.CHANGED]
        assert await self.specs(stage) == [other, newer]

    async def test_what_has_not_changed_is_answered_so(self, stage: Stage) -> None:
        changes = [FULL, FULL, replace(FULL, rate=None), FULL, TaskSpec("other"), FULL]
        added, changed, unchanged = Declared.ADDED, Declared.CHANGED, Declared.UNCHANGED
        answers = [added, unchanged, changed, changed, added, unchanged]
        assert (await stage.store.declare(changes)).items == answers
        assert (await stage.store.declare([FULL])).items == [unchanged]
        assert (await stage.store.declare([])).items == []

    async def test_a_spec_says_nothing_of_other_tasks(self, stage: Stage) -> None:
        await stage.store.declare([replace(FULL, name="gre"), replace(FULL, name="greet2")])
        await stage.put(new_run(), new_run())
        assert len((await stage.claim(free=9)).runs) == 2


class ReportContract(Staged):
    async def at_a_new_minute(self, stage: Stage) -> int:
        """Move the clock to the first second of a new minute, and return that minute."""
        stage.wait(61 - await stage.now() % 60)
        return int(await stage.now() // 60)

    async def stats(self, stage: Stage, minutes: int = 60) -> list[Stat]:
        return (await stage.store.stats(minutes)).items

    async def test_workers_are_seen_with_their_last_report(self, stage: Stage) -> None:
        await stage.put(new_run())
        busy = await stage.claim("bob", report=replace(REPORT, tallies=(Tally(GREET, 1),)))
        idle = await stage.claim("ada", tasks=["other", GREET])
        assert (await stage.store.rows(WorkerSeen)).items == [
            WorkerSeen("ada", ("other", GREET), idle.now, True),
            WorkerSeen("bob", (GREET,), busy.now, False, REPORT),
        ]
        stage.wait(10)
        again = await stage.claim("bob")
        assert (await stage.store.rows(WorkerSeen)).items[1:] == [WorkerSeen("bob", (GREET,), again.now, True, REPORT)]
        newer = replace(REPORT, leased=0)
        await stage.claim("bob", report=newer)
        assert (await stage.store.rows(WorkerSeen)).items[1].report == newer

    async def test_counts_of_all_workers_are_added_up_by_minute_and_task(self, stage: Stage) -> None:
        minute = await self.at_a_new_minute(stage)
        ada = Report(tallies=(Tally(GREET, 2, 1, waits={0: 2, 7: 1}, durations={3: 3}), Tally("b", other=1)))
        bob = Report(
            tallies=(
                Tally(GREET, 1, retried=4, cancelled=2, snoozed=1, lost=1, waits={7: 1}),
                Tally("a", 1),
                Tally("a", failed=2),
            )
        )
        await stage.claim("ada", report=ada)
        await stage.claim("bob", report=bob)
        first = [
            Stat(minute, Tally("a", 1, 2)),
            Stat(minute, Tally("b", other=1)),
            Stat(minute, Tally(GREET, 3, 1, 4, 2, snoozed=1, lost=1, waits={0: 2, 7: 2}, durations={3: 3})),
        ]
        assert await self.stats(stage) == first
        stage.wait(60)
        await stage.claim("ada", report=Report(tallies=(Tally(GREET, 5),)))
        assert await self.stats(stage) == [*first, Stat(minute + 1, Tally(GREET, 5))]

    async def test_totals_never_fall_and_have_the_sums_of_waits_and_durations(self, stage: Stage) -> None:
        await self.at_a_new_minute(stage)
        first = Tally(GREET, 2, 1, waits={3: 3}, durations={0: 2, 9: 1}, waited=1_500_000, ran=7)
        await stage.claim(report=Report(tallies=(first, Tally("b", 1))))
        stage.wait(4 * 86_400)
        await stage.store.sweep(Retention())
        assert await self.stats(stage, 10_000) == []
        await stage.claim(report=Report(tallies=(Tally(GREET, 1, waits={3: 1}, waited=500_000),)))
        assert (await stage.store.stats(None)).items == [
            Stat(TOTAL, Tally("b", 1)),
            Stat(TOTAL, Tally(GREET, 3, 1, waits={3: 4}, durations={0: 2, 9: 1}, waited=2_000_000, ran=7)),
        ]

    async def test_the_last_minutes_are_read_and_no_earlier_ones(self, stage: Stage) -> None:
        minute = await self.at_a_new_minute(stage)
        for _ in range(4):
            await stage.claim(report=Report(tallies=(Tally(GREET, 1),)))
            stage.wait(60)
        assert [stat.minute for stat in await self.stats(stage, 3)] == [minute + 2, minute + 3]
        assert await self.stats(stage, 1) == []

    async def test_a_report_counts_once_however_often_its_claim_is_sent(self, stage: Stage) -> None:
        report = Report(leased=1, tallies=(Tally(GREET, 1),))
        await stage.claim(report=report)
        for _ in range(3):
            await stage.claim(again=True, report=report)
        await stage.store.claim(ClaimRequest("ada", 0, [GREET], 1, 30, replace(report, leased=7)))
        assert [stat.tally for stat in await self.stats(stage)] == [Tally(GREET, 1)]
        assert (await stage.store.rows(WorkerSeen)).items[0].report == Report(leased=1)

    async def test_a_worker_without_free_seats_reports_as_well(self, stage: Stage) -> None:
        await stage.claim(free=0, report=Report(leased=3, tallies=(Tally(GREET, 1),)))
        assert len(await self.stats(stage)) == 1
        assert (await stage.store.rows(WorkerSeen)).items[0].report.leased == 3
