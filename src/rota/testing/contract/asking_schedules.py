"""ask about schedules: pause, resume, drop; how many it changed, and who wanted it."""

import pytest
from msgspec.structs import replace

from rota.domain.decision import Decided, Reason
from rota.domain.planning import first_tick, plan_firing
from rota.store import Declared, Subject, Wish
from rota.testing.contract.stage import GREET, Stage, Staged
from rota.testing.contract.timetable import MINUTE, REPORT, Timetable, new_schedule, new_tick, tick_run


class ScheduleWishContract(Staged):
    async def test_a_pause_holds_a_schedule_where_it_stands(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        schedule = await timetable.add()
        assert await timetable.ask(Wish.PAUSE, note="holiday") == [1]
        paused = replace(schedule, paused=True, note="holiday", version=schedule.version + 1)
        assert await timetable.see() == paused
        assert await timetable.ask(Wish.PAUSE, note="again") == [0]
        assert await timetable.see() == paused

    async def test_a_resume_owes_nothing_of_the_time_before_it(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.add()
        await timetable.ask(Wish.PAUSE, note="holiday")
        paused = await timetable.see()
        stage.wait(3600)
        reply = await stage.store.ask(Wish.RESUME, [REPORT], "back", of=Subject.SCHEDULES)
        assert reply.items == [1]
        resumed = replace(paused, paused=False, note="back", since=reply.now, version=paused.version + 1)
        assert await timetable.see() == resumed
        assert await timetable.ask(Wish.RESUME) == [0]
        assert await timetable.see() == resumed

    async def test_what_fell_into_a_pause_is_neither_made_up_nor_missed(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.declare(first_tick(new_schedule(catch_up="all"), await stage.now()))
        await timetable.ask(Wish.PAUSE)
        stage.wait(10 * MINUTE)
        await timetable.ask(Wish.RESUME)
        (offered,) = (await stage.claim()).due
        tick = plan_firing(offered, await stage.now())
        assert (tick.runs, tick.missed) == ((), None)
        assert await timetable.fired(tick) == [True]
        stage.wait(MINUTE)
        (offered,) = (await stage.claim()).due
        assert len(plan_firing(offered, await stage.now()).runs) == 1

    @pytest.mark.parametrize("wish", [Wish.DROP, Wish.CANCEL])
    async def test_a_dropped_schedule_is_gone_and_its_runs_are_not(self, stage: Stage, wish: Wish) -> None:
        timetable, run = Timetable(stage), tick_run()
        await timetable.fire(new_tick(await timetable.due(), run))
        assert await timetable.ask(wish) == [1]
        assert await timetable.find(REPORT) == []
        assert await timetable.ask(wish) == [0]
        assert (await stage.take()).id == run.id

    async def test_one_that_is_declared_again_after_a_drop_is_new(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.fire(new_tick(await timetable.due(), tick_run()))
        await timetable.ask(Wish.PAUSE)
        await timetable.ask(Wish.DROP)
        stage.wait(10)
        at = await stage.now() + MINUTE
        reply = await stage.store.declare([new_schedule(at=at, owner="other")])
        assert reply.items == [Declared.ADDED]
        assert await timetable.see() == new_schedule(at=at, owner="other", version=1, since=reply.now)

    async def test_schedules_are_answered_one_by_one_and_in_order(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        for id in ("a", "b", "c"):
            await timetable.add(id)
        assert await timetable.ask(Wish.PAUSE, "b", "never", "b", "a") == [1, 0, 0, 1]
        assert await timetable.ask(Wish.RESUME, "c", "a") == [0, 1]
        assert await timetable.ask(Wish.DROP, "a", "a", "never") == [1, 0, 0]
        assert (await stage.store.ask(Wish.DROP, [], of=Subject.SCHEDULES)).items == []
        assert [(plan.id, plan.paused) for plan in await timetable.find("a", "b", "c")] == [("b", True), ("c", False)]

    async def test_a_wish_about_a_schedule_leaves_runs_and_tasks_of_that_name_alone(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        run = tick_run(id=GREET)
        await stage.put(run)
        await timetable.add(GREET)
        assert await timetable.ask(Wish.PAUSE, GREET) == [1]
        assert await timetable.ask(Wish.DROP, GREET) == [1]
        assert (await stage.take()).id == run.id

    async def test_every_wish_is_recorded_with_who_and_why(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        schedule = await timetable.add(key="k")
        wishes = [(Wish.PAUSE, Reason.PAUSED), (Wish.RESUME, Reason.RESUMED), (Wish.DROP, Reason.DROPPED)]
        for wish, reason in wishes:
            reply = await stage.store.ask(wish, [REPORT], f"why {wish}", "Ada", Subject.SCHEDULES)
            rows = (await stage.store.rows(Decided)).items
            decided = Decided(GREET, "k", reason, 1, reply.now, reply.now, None, f"why {wish}", "Ada")
            assert [row for row in rows if row.reason is reason] == [decided]
            stage.wait(1)
            await timetable.ask(wish, note="changes nothing")
        assert [row.reason for row in (await stage.store.rows(Decided)).items] == [reason for _, reason in wishes[::-1]]
        assert schedule.key == "k"
