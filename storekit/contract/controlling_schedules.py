"""control of schedules: pause, resume and drop, the number of changes, and who asked for them."""

import pytest
from msgspec.structs import replace

from rota.domain.decision import DecisionCount, Reason
from rota.domain.ticks import due_tick, with_first_tick
from rota.store import Command, Declared, Scope
from storekit.contract.stage import GREET, Stage, Staged
from storekit.contract.timetable import MINUTE, REPORT, Timetable, new_schedule, new_tick, tick_run


class ScheduleControlContract(Staged):
    async def test_a_pause_holds_a_schedule_where_it_stands(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        schedule = await timetable.add()
        assert await timetable.control(Command.PAUSE, note="holiday") == [1]
        paused = replace(schedule, paused=True, note="holiday", version=schedule.version + 1)
        assert await timetable.see() == paused
        assert await timetable.control(Command.PAUSE, note="again") == [0]
        assert await timetable.see() == paused

    async def test_a_resume_owes_nothing_of_the_time_before_it(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.add()
        await timetable.control(Command.PAUSE, note="holiday")
        paused = await timetable.see()
        stage.wait(3600)
        reply = await stage.store.control(Command.RESUME, [REPORT], "back", of=Scope.SCHEDULES)
        assert reply.items == [1]
        resumed = replace(paused, paused=False, note="back", since=reply.now, version=paused.version + 1)
        assert await timetable.see() == resumed
        assert await timetable.control(Command.RESUME) == [0]
        assert await timetable.see() == resumed

    async def test_what_fell_into_a_pause_is_told_as_missed_and_not_made_up(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.declare(with_first_tick(new_schedule(catch_up="all"), await stage.now()))
        await timetable.control(Command.PAUSE)
        stage.wait(10 * MINUTE)
        await timetable.control(Command.RESUME)
        (offered,) = (await stage.claim()).schedules
        tick = due_tick(offered, await stage.now())
        assert (tick.runs, tick.missed.count if tick.missed else 0) == ((), 10)
        assert await timetable.fired(tick) == [True]
        stage.wait(MINUTE)
        (offered,) = (await stage.claim()).schedules
        assert len(due_tick(offered, await stage.now()).runs) == 1

    @pytest.mark.parametrize("command", [Command.DROP, Command.CANCEL])
    async def test_a_dropped_schedule_is_gone_and_its_runs_are_not(self, stage: Stage, command: Command) -> None:
        timetable, run = Timetable(stage), tick_run()
        await timetable.fire(new_tick(await timetable.due(), run))
        assert await timetable.control(command) == [1]
        assert await timetable.find(REPORT) == []
        assert await timetable.control(command) == [0]
        assert (await stage.take()).id == run.id

    async def test_one_that_is_declared_again_after_a_drop_is_new(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.fire(new_tick(await timetable.due(), tick_run()))
        await timetable.control(Command.PAUSE)
        await timetable.control(Command.DROP)
        stage.wait(10)
        at = await stage.now() + MINUTE
        reply = await stage.store.declare([new_schedule(at=at, owner="other")])
        assert reply.items == [Declared.ADDED]
        assert await timetable.see() == new_schedule(at=at, owner="other", version=1, since=reply.now)

    async def test_schedules_are_answered_one_by_one_and_in_order(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        for id in ("a", "b", "c"):
            await timetable.add(id)
        assert await timetable.control(Command.PAUSE, "b", "never", "b", "a") == [1, 0, 0, 1]
        assert await timetable.control(Command.RESUME, "c", "a") == [0, 1]
        assert await timetable.control(Command.DROP, "a", "a", "never") == [1, 0, 0]
        assert (await stage.store.control(Command.DROP, [], of=Scope.SCHEDULES)).items == []
        assert [(schedule.id, schedule.paused) for schedule in await timetable.find("a", "b", "c")] == [
            ("b", True),
            ("c", False),
        ]

    async def test_a_command_about_a_schedule_leaves_runs_and_tasks_of_that_name_alone(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        run = tick_run(id=GREET)
        await stage.put(run)
        await timetable.add(GREET)
        assert await timetable.control(Command.PAUSE, GREET) == [1]
        assert await timetable.control(Command.DROP, GREET) == [1]
        assert (await stage.take()).id == run.id

    async def test_every_command_is_recorded_with_who_and_why(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        schedule = await timetable.add(key="k")
        commands = [(Command.PAUSE, Reason.PAUSED), (Command.RESUME, Reason.RESUMED), (Command.DROP, Reason.DROPPED)]
        for command, reason in commands:
            reply = await stage.store.control(command, [REPORT], f"why {command}", "Ada", Scope.SCHEDULES)
            rows = (await stage.store.rows(DecisionCount)).items
            decided = DecisionCount(GREET, "k", reason, 1, reply.now, reply.now, None, f"why {command}", "Ada")
            assert [row for row in rows if row.reason is reason] == [decided]
            stage.wait(1)
            await timetable.control(command, note="changes nothing")
        assert [row.reason for row in (await stage.store.rows(DecisionCount)).items] == [
            reason for _, reason in commands[::-1]
        ]
        assert schedule.key == "k"
