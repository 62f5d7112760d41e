"""declare of schedules: added, changed, unchanged, or taken by another app."""

from typing import Any

import pytest
from msgspec.structs import replace

from rota.domain.decision import Reason
from rota.domain.guards import Cooldown, Guards
from rota.domain.schedule import Firing, Schedule
from rota.domain.spec import TaskSpec
from rota.store import Command, Declared
from storekit.contract.stage import GREET, Stage, Staged
from storekit.contract.timetable import MINUTE, OWNER, REPORT, Timetable, new_schedule, new_tick, tick_run

ADDED, CHANGED, UNCHANGED, TAKEN = Declared.ADDED, Declared.CHANGED, Declared.UNCHANGED, Declared.TAKEN
FULL = new_schedule(
    'odd "id" 🦉',
    trigger="every 15m jitter 30s",
    priority=-7,
    guards=Guards("active", cooldowns=(Cooldown(3, 60.0),), max_pending=9, marks=True),
    overlap="queue",
    catch_up="all",
    grace=12.34567,
    start=1_700_000_000.12345,
    end=4_000_000_000.0,
    anchor=1_700_000_000.0,
)


class ScheduleDeclareContract(Staged):
    async def used(self, stage: Stage) -> Schedule:
        """Return a schedule that has fired and is paused now."""
        timetable = Timetable(stage)
        await timetable.fire(new_tick(await timetable.due(), tick_run()))
        await timetable.control(Command.PAUSE, note="holiday")
        return await timetable.see()

    async def test_a_new_schedule_is_kept_whole_and_owed_from_now_on(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        at = await stage.now() + 900
        new = replace(FULL, next_at=at, fires_at=at + 7.25)
        reply = await stage.store.declare([new])
        assert reply.items == [ADDED]
        assert await timetable.find(FULL.id) == [replace(new, version=1, since=reply.now)]

    async def test_a_declaration_cannot_say_where_a_new_schedule_stands(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        stood = new_schedule(at=5.0, since=1.0, paused=True, note="no", recent=(Firing(1.0, Reason.ACCEPTED),))
        reply = await stage.store.declare([stood])
        assert await timetable.see() == new_schedule(at=5.0, version=1, since=reply.now)

    async def test_one_that_comes_from_another_store_stands_where_it_stood(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        stood = new_schedule(
            at=5.0, version=9, since=1.0, paused=True, note="no", recent=(Firing(1.0, Reason.ACCEPTED),)
        )
        assert await timetable.declare(stood) == [ADDED]
        assert await timetable.see() == stood

    async def test_what_has_not_changed_keeps_everything_that_a_store_knows_of_it(self, stage: Stage) -> None:
        used, timetable = await self.used(stage), Timetable(stage)
        assert (used.version, used.paused, used.note, len(used.recent)) == (2, True, "holiday", 1)
        stage.wait(3600)
        again = new_schedule(at=await stage.now() + 5, anchor=77.0)
        assert await timetable.declare(again, again) == [UNCHANGED, UNCHANGED]
        assert await timetable.see() == used

    @pytest.mark.parametrize(
        "change",
        [
            {"task": "other"},
            {"body": "{}"},
            {"key": "k"},
            {"priority": 3},
            {"guards": Guards("queued")},
            {"overlap": "allow"},
            {"catch_up": "all"},
            {"grace": 30.0},
        ],
        ids=lambda change: next(iter(change)),
    )
    async def test_a_changed_policy_moves_no_tick(self, stage: Stage, change: dict[str, Any]) -> None:
        used, timetable = await self.used(stage), Timetable(stage)
        stage.wait(3600)
        assert await timetable.declare(new_schedule(at=await stage.now() + 5, **change)) == [CHANGED]
        assert await timetable.see() == replace(used, version=used.version + 1, **change)

    @pytest.mark.parametrize(
        "change", [{"trigger": "every 2m"}, {"start": 5.0}, {"end": 4e9}], ids=lambda change: next(iter(change))
    )
    async def test_changed_times_move_the_next_tick_and_owe_nothing_of_the_past(
        self, stage: Stage, change: dict[str, Any]
    ) -> None:
        used, timetable = await self.used(stage), Timetable(stage)
        stage.wait(3600)
        at = await stage.now() + 5
        moved = new_schedule(at=at, anchor=99.0, **change)
        reply = await stage.store.declare([moved])
        assert reply.items == [CHANGED]
        kept: dict[str, Any] = {"version": used.version + 1, "paused": True, "note": used.note, "recent": used.recent}
        assert await timetable.see() == replace(moved, since=reply.now, **kept)

    async def test_a_schedule_of_another_owner_is_not_touched(self, stage: Stage) -> None:
        used, timetable = await self.used(stage), Timetable(stage)
        for owner in ("other", ""):
            theirs = new_schedule(trigger="every 9h", at=5.0, owner=owner)
            assert await timetable.declare(theirs, new_schedule("mine" + owner)) == [TAKEN, ADDED]
        assert await timetable.see() == used

    async def test_nothing_is_ever_removed_by_a_declaration(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        first, second = await timetable.add("first"), await timetable.add("second")
        assert await timetable.declare(new_schedule("third")) == [ADDED]
        assert await timetable.declare() == []
        assert await timetable.find("first", "second") == [first, second]

    async def test_tasks_and_schedules_are_declared_together_and_answered_in_order(self, stage: Stage) -> None:
        one, other = new_schedule("one"), new_schedule("other", priority=1)
        items: list[TaskSpec | Schedule] = [
            one,
            TaskSpec(GREET),
            one,
            TaskSpec(GREET),
            other,
            replace(other, priority=2),
        ]
        assert (await stage.store.declare(items)).items == [ADDED, ADDED, UNCHANGED, UNCHANGED, ADDED, CHANGED]
        assert [schedule.priority for schedule in await Timetable(stage).find("one", "other")] == [0, 2]

    async def test_one_that_has_had_its_last_tick_is_not_woken_by_the_same_declaration(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.fire(new_tick(await timetable.due(), last=True))
        assert await timetable.declare(new_schedule(at=await stage.now())) == [UNCHANGED]
        assert (await timetable.see()).next_at is None
        assert await timetable.offered() == []

    async def test_two_declare_the_same_at_once_and_one_of_them_adds_it(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        at = await stage.now() + MINUTE
        assert await timetable.declare(new_schedule(at=at)) == [ADDED]
        assert await timetable.declare(new_schedule(at=at + 1)) == [UNCHANGED]
        kept = await timetable.see()
        assert (kept.id, kept.owner, kept.next_at, kept.version) == (REPORT, OWNER, at, 1)
