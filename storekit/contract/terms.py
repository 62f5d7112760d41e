"""declare with terms: all of a declaration is carried out, or nothing."""

from msgspec.structs import replace

from rota.domain.decision import DecisionCount, Reason
from rota.domain.schedule import Schedule
from rota.store import Declared, Terms
from storekit.contract.stage import Stage, Staged, new_run
from storekit.contract.timetable import MINUTE, OWNER, Timetable, new_schedule, new_tick


class TermsContract(Staged):
    async def declare(self, stage: Stage, *schedules: Schedule, **terms: object) -> list[Declared]:
        return (await stage.store.declare(schedules, Terms(**terms))).items  # type: ignore[arg-type]

    async def test_a_schedule_is_added_if_there_is_none(self, stage: Stage) -> None:
        timetable, now = Timetable(stage), await stage.now()
        first, second = new_schedule(at=now + MINUTE), new_schedule(at=now + 2 * MINUTE, trigger="every 2m")
        assert await self.declare(stage, first, versions={first.id: 0}) == [Declared.ADDED]
        assert await self.declare(stage, second, versions={first.id: 0}) == [Declared.CONFLICT]
        assert (await timetable.see()).trigger == "every 1m"

    async def test_a_schedule_that_is_declared_twice_at_once_has_the_last_word(self, stage: Stage) -> None:
        timetable, now = Timetable(stage), await stage.now()
        first = new_schedule(at=now + MINUTE)
        answers = await self.declare(stage, first, replace(first, grace=5.0), versions={first.id: 0})
        assert answers == [Declared.ADDED, Declared.CHANGED]
        assert (await timetable.see()).grace == 5.0

    async def test_a_schedule_is_changed_if_it_has_the_version(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        known = await timetable.add()
        changed = replace(new_schedule(at=known.next_at), grace=5.0)
        assert await self.declare(stage, changed, versions={known.id: known.version + 1}) == [Declared.CONFLICT]
        assert await timetable.see() == known
        assert await self.declare(stage, changed, versions={known.id: known.version}) == [Declared.CHANGED]
        assert (await timetable.see()).version == known.version + 1

    async def test_the_same_declaration_again_is_no_conflict(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        known, other = await timetable.add(), await timetable.add("other")
        changed = replace(new_schedule(at=known.next_at), grace=5.0)
        terms = {"versions": {known.id: known.version, other.id: other.version}, "drop": (other.id,)}
        assert await self.declare(stage, changed, **terms) == [Declared.CHANGED, Declared.DROPPED]
        before = await timetable.see()
        assert await self.declare(stage, changed, **terms) == [Declared.UNCHANGED, Declared.UNCHANGED]
        assert await timetable.see() == before

    async def test_all_is_carried_out_or_nothing(self, stage: Stage) -> None:
        timetable, now = Timetable(stage), await stage.now()
        kept, gone = await timetable.add("kept"), await timetable.add("gone")
        news = [new_schedule("new", now), replace(new_schedule("kept", kept.next_at), grace=5.0)]
        wrong = {"new": 0, "kept": kept.version, "gone": gone.version + 1}
        assert await self.declare(stage, *news, versions=wrong, drop=("gone",)) == [Declared.CONFLICT] * 3
        assert await timetable.find("new", "kept", "gone") == [gone, kept]
        right = wrong | {"gone": gone.version}
        answers = await self.declare(stage, *news, versions=right, drop=("gone",))
        assert answers == [Declared.ADDED, Declared.CHANGED, Declared.DROPPED]
        assert [each.id for each in await timetable.find("new", "kept", "gone")] == ["kept", "new"]
        (row,) = (await stage.store.rows(DecisionCount)).items
        assert (row.key, row.reason, row.count) == (gone.key, Reason.DROPPED, 1)

    async def test_a_schedule_of_another_owner_keeps_all_from_changing(self, stage: Stage) -> None:
        timetable, now = Timetable(stage), await stage.now()
        known = await timetable.add("taken", owner=OWNER)
        news = [new_schedule("new", now, owner=""), new_schedule("taken", now, owner="")]
        assert await self.declare(stage, *news, versions={"new": 0}) == [Declared.TAKEN] * 2
        assert await timetable.find("new", "taken") == [known]

    async def test_a_tick_is_no_change(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        known = await timetable.due()
        await timetable.fire(new_tick(known, new_run()))
        changed = replace(new_schedule(at=known.next_at), grace=5.0)
        assert await self.declare(stage, changed, versions={known.id: known.version}) == [Declared.CHANGED]

    async def test_a_schedule_that_is_gone_is_dropped_already(self, stage: Stage) -> None:
        known = await Timetable(stage).add()
        changed = replace(new_schedule(at=known.next_at), grace=5.0)
        assert await self.declare(stage, changed, drop=("unknown",)) == [Declared.CHANGED, Declared.UNCHANGED]
