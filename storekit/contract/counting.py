"""Totals, which never fall, and slots of minutes, hours and days by task and origin."""

from msgspec.structs import replace

from rota.domain.lifecycle import Lost
from rota.domain.policy import Limit, Share
from rota.domain.schedule import Missed
from rota.domain.settlement import Verdict
from rota.domain.spec import TaskSpec
from rota.domain.tuning import Retention
from rota.store import (
    DAY,
    HOUR,
    MINUTE,
    OTHER,
    TOTAL,
    TOTAL_MEMORY,
    DueCount,
    Report,
    RowQuery,
    Stat,
    Tally,
    Total,
    What,
)
from storekit.contract.stage import GREET, LEASE, Stage, Staged, new_run
from storekit.contract.timetable import Timetable, new_tick

SECONDS = 86_400.0
"""Of one day."""


async def totals(stage: Stage, what: What | None = None) -> dict[tuple[str, str], int]:
    found = (await stage.store.rows(Total)).items
    assert found == sorted(found)
    return {(total.name, total.reason): total.count for total in found if what in (None, total.what)}


class TotalContract(Staged):
    async def test_what_is_decided_is_counted_by_task_and_reason(self, stage: Stage) -> None:
        await stage.put(new_run(), new_run(), new_run("other"))
        for name in ("ada", "bob", "ada"):
            await stage.admit(new_run(key=name, unique="queued", join="refuse"))
        assert await totals(stage) == {
            (GREET, "accepted"): 4,
            (GREET, "already_queued"): 1,
            ("other", "accepted"): 1,
        }

    async def test_a_batch_of_all_kinds_is_counted_run_by_run(self, stage: Stage) -> None:
        same = [new_run(key="ada", unique="queued", join="refuse") for _ in range(3)]
        await stage.store.put([*same, new_run("other"), new_run("other", key="k", unique="queued")])
        assert await totals(stage) == {
            (GREET, "accepted"): 1,
            (GREET, "already_queued"): 2,
            ("other", "accepted"): 2,
        }

    async def test_totals_stay_when_the_decisions_are_forgotten(self, stage: Stage) -> None:
        for _ in range(3):
            await stage.admit(new_run(key="ada", unique="queued", join="refuse"))
        before = await totals(stage)
        stage.wait(100 * SECONDS)
        await stage.store.sweep(Retention())
        assert await totals(stage) == before
        await stage.admit(new_run(key="ada", unique="queued", join="refuse"))
        assert (await totals(stage))[GREET, "already_queued"] == 3

    async def test_a_missed_tick_and_its_run_are_counted_for_the_task(self, stage: Stage) -> None:
        schedule = await Timetable(stage).due()
        tick = new_tick(schedule, new_run(), missed=Missed(0.0, 1.0, 7))
        await stage.store.fire([tick])
        assert await totals(stage) == {(GREET, "accepted"): 1, (GREET, "missed"): 7}
        await stage.store.fire([tick])  # it is stale now
        assert await totals(stage) == {(GREET, "accepted"): 1, (GREET, "missed"): 7}

    async def test_what_people_and_time_end_is_counted(self, stage: Stage) -> None:
        late = new_run(expires_after=1)
        gone = new_run()
        await stage.put(late, gone)
        await stage.cancel(gone)
        stage.wait(2)
        await stage.claim()
        assert await totals(stage) == {(GREET, "accepted"): 2, (GREET, "cancelled"): 1, (GREET, "expired"): 1}

    async def test_trying_a_put_counts_nothing(self, stage: Stage) -> None:
        await stage.put(new_run(key="ada", unique="queued", join="refuse"))
        before = await totals(stage)
        await stage.store.try_put(new_run(key="ada", unique="queued", join="refuse"))
        await stage.store.try_put(new_run())
        assert await totals(stage) == before

    async def test_what_workers_report_is_added_up_once(self, stage: Stage) -> None:
        report = Report(totals=(Total(What.FIRED, "nightly", "accepted", 2), Total(What.STALE, "")))
        await stage.claim("ada", report=report)
        await stage.claim("ada", again=True, report=report)
        await stage.claim(
            "bob", report=replace(report, totals=(*report.totals, Total(What.FIRED, "nightly", "missed")))
        )
        assert await totals(stage, What.FIRED) == {("nightly", "accepted"): 4, ("nightly", "missed"): 1}
        assert await totals(stage, What.STALE) == {("", ""): 2}
        await stage.store.sweep(Retention())
        assert await totals(stage, What.FIRED) == {("nightly", "accepted"): 4, ("nightly", "missed"): 1}

    async def test_of_the_times_of_successes_the_latest_one_stays(self, stage: Stage) -> None:
        for at in (50, 70, 60):
            await stage.claim(report=Report(totals=(Total(What.SUCCEEDED, "nightly", count=at),)))
            await stage.store.sweep(Retention())
        await stage.claim(report=Report(totals=(Total(What.SUCCEEDED, "nightly", count=65),)))
        assert await totals(stage, What.SUCCEEDED) == {("nightly", ""): 70}

    async def test_totals_of_names_that_are_gone_are_added_to_the_others(self, stage: Stage) -> None:
        old = (Total(What.FIRED, "one", "accepted", 2), Total(What.FIRED, "two", "accepted", 3), Total(What.STALE, ""))
        await stage.claim(report=Report(totals=old))
        await stage.put(new_run())
        await stage.store.sweep(Retention())
        stage.wait(TOTAL_MEMORY / 2)
        await stage.claim(report=Report(totals=(Total(What.FIRED, "two", "accepted"),)))
        await stage.store.sweep(Retention())
        stage.wait(TOTAL_MEMORY / 2 + 60)
        await stage.store.sweep(Retention())
        assert await totals(stage, What.FIRED) == {(OTHER, "accepted"): 2, ("two", "accepted"): 4}
        stage.wait(TOTAL_MEMORY)
        await stage.store.sweep(Retention())
        assert await totals(stage) == {(OTHER, "accepted"): 6, ("", ""): 1, (GREET, "accepted"): 1}

    async def test_a_name_may_have_any_letters(self, stage: Stage) -> None:
        odd = tuple(Total(What.FIRED, name, "a:b", 1) for name in ("1:2", "ärger", "a b", ":", "🦉"))
        await stage.claim(report=Report(totals=odd))
        assert await totals(stage) == {(total.name, "a:b"): 1 for total in odd}


async def slots(stage: Stage, days: int, every: int) -> list[Stat]:
    return (await stage.store.stats(days * DAY, every)).items


class RollupContract(Staged):
    async def at_a_new_day(self, stage: Stage) -> int:
        """Move the clock to the first minute of a day, and return that minute."""
        stage.wait(SECONDS + 1 - await stage.now() % SECONDS)
        return int(await stage.now() // 60)

    async def test_reports_are_added_up_by_minute_hour_and_day(self, stage: Stage) -> None:
        begin = await self.at_a_new_day(stage)
        for minutes in (0, 1, 59, 60):
            stage.wait((begin + minutes) * 60 + 1 - await stage.now())
            await stage.claim(report=Report(tallies=(Tally(GREET, 1, waits={0: 1}, ran=5),)))
        each = [Stat(begin + minute, Tally(GREET, 1, waits={0: 1}, ran=5)) for minute in (0, 1, 59, 60)]
        assert await slots(stage, 1, MINUTE) == each
        three = Tally(GREET, 3, waits={0: 3}, ran=15)
        assert await slots(stage, 1, HOUR) == [Stat(begin, three), Stat(begin + 60, each[0].tally)]
        four = Tally(GREET, 4, waits={0: 4}, ran=20)
        assert await slots(stage, 1, DAY) == [Stat(begin, four)]
        assert (await stage.store.stats(30, HOUR)).items == [Stat(begin, three), Stat(begin + 60, each[0].tally)]
        assert (await stage.store.stats(1, HOUR)).items == [Stat(begin + 60, each[0].tally)]

    async def test_runs_of_several_origins_are_counted_apart_and_their_totals_together(self, stage: Stage) -> None:
        begin = await self.at_a_new_day(stage)
        tallies = (Tally(GREET, 2, origin="submit"), Tally(GREET, 1, origin="schedule"), Tally("b", failed=1))
        await stage.claim("ada", report=Report(tallies=tallies))
        await stage.claim("bob", report=Report(tallies=tallies))
        twice = [Tally("b", failed=2), Tally(GREET, 2, origin="schedule"), Tally(GREET, 4, origin="submit")]
        for every in (MINUTE, HOUR, DAY):
            assert await slots(stage, 1, every) == [Stat(begin, tally) for tally in twice]
        expected = [Stat(TOTAL, Tally("b", failed=2)), Stat(TOTAL, Tally(GREET, 6))]
        assert (await stage.store.stats(None)).items == expected

    async def test_minutes_are_kept_for_two_days_hours_for_60_and_days_for_400(self, stage: Stage) -> None:
        await self.at_a_new_day(stage)
        await stage.claim(report=Report(tallies=(Tally(GREET, 1, origin="plan"),)))
        begin = await stage.now()
        for every, days in ((MINUTE, 2), (HOUR, 60), (DAY, 400)):
            for passed, left in ((days - 0.1, 1), (days + 0.1, 0)):
                stage.wait(begin + passed * SECONDS - await stage.now())
                await stage.store.sweep(Retention())
                assert len(await slots(stage, 500, every)) == left, (every, passed)
        assert (await stage.store.stats(None)).items == [Stat(TOTAL, Tally(GREET, 1))]


class DueCountContract(Staged):
    async def due(self, stage: Stage) -> list[DueCount]:
        return (await stage.store.rows(DueCount)).items

    async def test_due_runs_are_counted_by_task_and_queue(self, stage: Stage) -> None:
        assert await self.due(stage) == []
        first, other = new_run(), new_run("other:x", queue="gpu")
        await stage.put(first)
        stage.wait(1)
        await stage.put(new_run(priority=5), new_run(delay=60), other)
        since = [(await stage.see(run)).due_at for run in (first, other)]
        gpu = DueCount("other:x", "gpu", 1, since[1])
        assert await self.due(stage) == [DueCount(GREET, "default", 2, since[0]), gpu]
        stage.wait(61)
        later = DueCount(GREET, "default", 3, since[0])
        assert await self.due(stage) == [later, gpu]
        assert (await stage.store.rows(DueCount, RowQuery(limit=1))).items == [later]
        assert (await stage.store.rows(DueCount, RowQuery(task="other:x"))).items == [gpu]
        assert (await stage.store.rows(DueCount, RowQuery(task="none"))).items == []

    async def test_what_is_leased_paused_parked_or_waits_is_not_due(self, stage: Stage) -> None:
        await stage.declare(Limit(per_key=1))
        running, parked, paused = new_run(key="k"), new_run(key="k"), new_run()
        await stage.put(running, parked, paused, new_run(needs=[running.id]))
        await stage.pause(paused)
        assert len((await stage.claim(free=5)).runs) == 1
        assert await self.due(stage) == []

    async def test_shares_and_suspects_of_a_queue_are_counted_once(self, stage: Stage) -> None:
        await stage.store.declare([TaskSpec(GREET, share=Share("{tenant}"))])
        lost = await stage.running()
        stage.wait(LEASE + 1)
        assert await stage.end(lost, Lost()) is Verdict.APPLIED
        await stage.put(*(new_run(share=share) for share in ("a", "b", "b")), new_run())
        stage.wait(600)
        (found,) = await self.due(stage)
        assert (found.task, found.queue, found.count) == (GREET, "default", 5)
