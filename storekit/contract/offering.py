"""A claim offers due schedules, each to one worker at a time; and one idle worker wakes for the next tick."""

import pytest

from rota.domain.schedule import Schedule
from rota.store import DUE_SCHEDULES, IDLE_MEMORY, OFFER_AGAIN, ClaimRequest, Command, WorkerSeen
from storekit.contract.stage import GREET, Stage, Staged, new_run
from storekit.contract.timetable import MINUTE, REPORT, Timetable, new_schedule, new_tick, tick_run


class ClaimAloneContract(Staged):
    async def test_a_claim_without_offers_takes_runs_and_nothing_else(self, stage: Stage) -> None:
        await Timetable(stage).due()
        lapsing = new_run()
        await stage.put(lapsing)
        await stage.claim("dead", lease=1)
        stage.wait(2)
        mine = new_run("mine")
        await stage.put(mine)
        request = ClaimRequest("caller", 1, ["mine"], 1, 30.0, offers=False)
        alone = [await stage.store.claim(request) for _ in range(2)]
        assert [[run.id for run in claim.runs] for claim in alone] == [[mine.id]] * 2, "the same number, the same batch"
        assert [(claim.schedules, claim.lapsed, claim.wake) for claim in alone] == [([], [], None)] * 2
        others = await stage.claim("bob")
        assert ([run.id for run in others.lapsed], len(others.schedules)) == ([lapsing.id], 1)

    async def test_who_claims_without_offers_is_neither_hinted_nor_counted_as_a_worker(self, stage: Stage) -> None:
        request = ClaimRequest("caller", 1, [GREET], 1, 30.0, offers=False)
        assert (await stage.store.claim(request)).runs == []
        async with stage.listening() as ear:
            await stage.put(new_run())
            assert await ear.workers() == set()
        (seen,) = (await stage.store.rows(WorkerSeen)).items
        assert (seen.name, seen.tasks, seen.idle) == ("caller", (), False)


class OfferContract(Staged):
    async def test_a_due_schedule_comes_whole_with_a_claim(self, stage: Stage) -> None:
        schedule = await Timetable(stage).due(priority=3, grace=9.5)
        assert (await stage.claim()).schedules == [schedule]

    async def test_a_schedule_is_not_offered_before_its_time_to_fire(self, stage: Stage) -> None:
        """The time to fire is the nominal time with its jitter, by the store's clock."""
        timetable = Timetable(stage)
        at = await stage.now() + MINUTE
        await timetable.declare(new_schedule(at=at, fires_at=at + 30))
        assert await timetable.offered() == []
        stage.wait(MINUTE + 15)
        assert await timetable.offered() == []
        stage.wait(15)
        assert await timetable.offered() == [REPORT]

    async def test_it_is_offered_to_one_claimer_at_a_time(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.due()
        assert [await timetable.offered(worker) for worker in ("ada", "bob", "ada")] == [[REPORT], [], []]
        stage.wait(OFFER_AGAIN + 0.1)
        assert [await timetable.offered(worker) for worker in ("bob", "ada")] == [[REPORT], []]

    async def test_one_that_was_fired_is_offered_again_at_its_next_time(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        schedule = await timetable.due()
        await timetable.offered()
        await timetable.fire(new_tick(schedule))
        assert await timetable.offered() == []
        stage.wait(MINUTE - 2)
        assert await timetable.offered() == []
        stage.wait(2)
        assert await timetable.offered() == [REPORT]

    async def test_one_whose_next_tick_is_due_as_well_is_offered_at_once(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        schedule = await timetable.due()
        await timetable.offered()
        await timetable.fire(new_tick(schedule, then=await stage.now() - 0.5))
        assert await timetable.offered() == [REPORT]

    async def test_one_that_has_no_tick_is_not_offered_when_it_is_resumed(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.declare(new_schedule())
        for command in (Command.PAUSE, Command.RESUME):
            await timetable.control(command)
        assert await timetable.offered() == []

    async def test_a_paused_one_is_not_offered_until_it_is_resumed(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.due()
        await timetable.control(Command.PAUSE)
        assert await timetable.offered() == []
        stage.wait(OFFER_AGAIN + 1)
        assert await timetable.offered() == []
        await timetable.control(Command.RESUME)
        assert await timetable.offered() == [REPORT]

    async def test_one_that_is_dropped_or_has_no_tick_left_is_not_offered(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.add("gone")
        over = await timetable.due("over")
        await timetable.fire(new_tick(over, last=True))
        await timetable.control(Command.DROP, "gone")
        assert await timetable.offered() == []
        stage.wait(3600)
        assert await timetable.offered() == []

    async def test_it_comes_to_a_worker_of_any_task_and_to_a_full_one(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.add("one")
        await timetable.due("two")
        assert await timetable.offered(tasks=["elsewhere"], free=0) == ["one", "two"]
        stage.wait(OFFER_AGAIN + 0.1)
        assert await timetable.offered("bob", tasks=(), free=3) == ["one", "two"]

    async def test_a_farewell_is_offered_none(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.due()
        assert await timetable.offered("leaving", tasks=(), free=0) == []
        assert await timetable.offered("bob") == [REPORT]

    async def test_so_many_at_once_and_the_others_to_the_next_claimer(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        now = await stage.now()
        count = 2 * DUE_SCHEDULES + 7
        await timetable.declare(*(new_schedule(f"s{place:05}", now + place / 1000) for place in range(count)))
        stage.wait(10)
        found = [await timetable.offered("ada")]
        stage.wait(-60)  # the clock of the store stands still: nothing is offered again, however long the others take
        found += [await timetable.offered(worker) for worker in ("bob", "cyd", "dan")]
        assert [len(ids) for ids in found] == [DUE_SCHEDULES, DUE_SCHEDULES, 7, 0]
        assert len({id for ids in found for id in ids}) == count
        assert "s00000" in found[0]  # the longest due come first
        assert f"s{count - 1:05}" in found[2]

    async def test_a_changed_one_is_offered_as_it_is_now(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        schedule = await timetable.due()
        await timetable.declare(new_schedule(priority=5))
        (offered,) = (await stage.claim()).schedules
        assert (offered.priority, offered.next_at, offered.version) == (5, schedule.next_at, 2)


class ScheduleWakeContract(Staged):
    async def fill(self, stage: Stage, worker: str) -> float | None:
        """Fill the only seat of a worker, and return its wake time."""
        await stage.put(new_run())
        claim = await stage.claim(worker)
        assert len(claim.runs) == 1
        return claim.wake

    async def test_an_idle_worker_wakes_for_the_next_schedule(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.add("later", 900)
        soon = await timetable.add("soon", 600)
        claim = await stage.claim(tasks=["elsewhere"])
        assert claim.wake == pytest.approx((soon.fires_at or 0) - claim.now, abs=1e-3)
        stage.wait(claim.wake or 0)
        assert await timetable.offered() == ["soon"]

    async def test_only_one_of_many_idle_workers_wakes_for_a_tick(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.add(delay=600)
        for _ in range(2):  # a worker that claims again keeps its wake time
            assert await timetable.idle("ada", "bob", "cyd") == [pytest.approx(600, abs=30), None, None]

    async def test_schedules_of_one_instant_need_one_worker_and_others_another(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        at = await stage.now() + 600
        await timetable.declare(*(new_schedule(f"s{place}", at) for place in range(50)))
        assert await timetable.idle("ada", "bob") == [pytest.approx(600, abs=30), None]
        await stage.put(new_run(delay=900))
        assert await timetable.idle("ada", "bob", "cyd") == [*[pytest.approx(due, abs=30) for due in (600, 900)], None]

    async def test_the_place_of_a_silent_one_is_taken_over(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.add(delay=600)
        assert await timetable.idle("ada", "bob") == [pytest.approx(600, abs=30), None]
        stage.wait(IDLE_MEMORY + 1)
        assert await timetable.idle("bob") == [pytest.approx(600 - IDLE_MEMORY, abs=30)]

    async def test_an_offer_that_came_to_nothing_is_looked_at_again(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.due()
        claim = await stage.claim()
        assert claim.schedules
        assert claim.wake == pytest.approx(OFFER_AGAIN, abs=1e-3)

    async def test_nobody_wakes_for_one_that_is_paused_over_or_gone(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        for id in ("paused", "gone"):
            await timetable.add(id)
        await timetable.fire(new_tick(await timetable.due("over"), last=True))
        await timetable.control(Command.PAUSE, "paused")
        await timetable.control(Command.DROP, "gone")
        assert await timetable.idle("ada") == [None]

    async def test_a_full_worker_wakes_where_there_is_no_idle_one(self, stage: Stage) -> None:
        await Timetable(stage).add(delay=600)
        assert await self.fill(stage, "ada") == pytest.approx(600, abs=30)

    async def test_a_full_worker_leaves_it_to_an_idle_one(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.add(delay=600)
        assert (await stage.claim("idle", tasks=["elsewhere"])).wake == pytest.approx(600, abs=30)
        assert await self.fill(stage, "ada") is None
        stage.wait(IDLE_MEMORY + 1)
        assert await self.fill(stage, "bob") == pytest.approx(600 - IDLE_MEMORY, abs=30)

    async def test_who_was_to_wake_for_a_tick_and_is_full_now_still_does(self, stage: Stage) -> None:
        """The other idle worker sleeps longer, because this one was to wake for the tick."""
        timetable = Timetable(stage)
        await timetable.add(delay=600)
        assert (await stage.claim("ada", tasks=[GREET, "b"])).wake == pytest.approx(600, abs=30)
        assert (await stage.claim("bob", tasks=["b"])).wake is None
        assert await self.fill(stage, "ada") == pytest.approx(600, abs=30)


class ScheduleHintContract(Staged):
    async def test_an_earlier_schedule_hints_the_idle_worker_that_would_sleep_longest(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.add("later", 600)
        await timetable.idle("ada", "bob")
        async with stage.listening() as ear:
            await timetable.add("sooner", 60)
            assert await ear.workers() == {"bob"}

    async def test_a_worker_of_any_task_is_hinted_for_a_schedule(self, stage: Stage) -> None:
        await stage.claim(tasks=["elsewhere"])
        async with stage.listening() as ear:
            await Timetable(stage).add()
            assert await ear.workers() == {"ada"}

    async def test_many_new_schedules_hint_one_worker(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.idle("ada", "bob", "cyd")
        now = await stage.now()
        async with stage.listening() as ear:
            await timetable.declare(*(new_schedule(f"s{place}", now + place) for place in range(9)))
            assert len(await ear.workers()) == 1

    async def test_a_later_schedule_and_a_paused_one_hint_nobody(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.add("first", 60)
        await timetable.add("held", 30)
        await timetable.control(Command.PAUSE, "held")
        await timetable.idle("ada", "bob")
        async with stage.listening() as ear:
            await timetable.add("later", 600)
            await timetable.declare(new_schedule("held", priority=4))
            assert await ear.workers() == set()

    async def test_a_resumed_schedule_hints_an_idle_worker(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.add()
        await timetable.control(Command.PAUSE)
        await timetable.idle("ada")
        async with stage.listening() as ear:
            await timetable.control(Command.RESUME)
            assert await ear.workers() == {"ada"}

    async def test_a_schedule_that_is_moved_to_the_front_hints_an_idle_worker(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.add(delay=600)
        await timetable.idle("ada")
        async with stage.listening() as ear:
            await timetable.declare(new_schedule(at=await stage.now() + 60, trigger="every 9m"))
            assert await ear.workers() == {"ada"}

    async def test_a_fired_tick_hints_for_the_next(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        schedule = await timetable.due()
        (wake,) = await timetable.idle("ada")  # ada claims again in case nobody fires the offered schedule
        assert wake == pytest.approx(OFFER_AGAIN, abs=1e-3)
        async with stage.listening() as ear:
            await timetable.fire(new_tick(schedule, then=await stage.now() + 1))
            assert await ear.workers() == {"ada"}

    async def test_a_fired_tick_hints_for_its_run(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        schedule = await timetable.due()
        await stage.claim("eve", tasks=["elsewhere"])
        await stage.claim("bob")
        async with stage.listening() as ear:
            await timetable.fire(new_tick(schedule, tick_run()))
            assert "bob" in await ear.workers()

    async def test_after_a_tick_somebody_wakes_in_time_for_the_next(self, stage: Stage) -> None:
        """The run of the tick fills the only seat of one worker, and the worker that fired it would sleep too long."""
        timetable = Timetable(stage)
        schedule = await timetable.due()
        assert await timetable.offered("ada") == [REPORT]
        await stage.claim("bob")
        await timetable.fire(new_tick(schedule, tick_run(), then=await stage.now() + 1))
        claim = await stage.claim("bob")
        assert len(claim.runs) == 1
        assert claim.wake == pytest.approx(1, abs=0.95)

    async def test_a_tick_that_is_refused_hints_nobody(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        schedule = await timetable.due()
        tick = new_tick(schedule, then=await stage.now() + 1)
        await timetable.fire(tick)
        await self.settle_down(stage, schedule)
        async with stage.listening() as ear:
            assert await timetable.fired(tick) == [False]
            assert await ear.workers() == set()

    async def settle_down(self, stage: Stage, schedule: Schedule) -> None:
        """Leave one worker that wakes for the next tick and one that does not."""
        assert await Timetable(stage).idle("ada", "bob") == [pytest.approx(1, abs=0.95), None]
        assert (await Timetable(stage).see(schedule.id)).recent == ()
