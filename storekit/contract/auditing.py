"""audit: a verb keeps an entry about the person who asked for it, in the step that makes the change."""

from msgspec.structs import replace

from rota.domain.edits import RunEdit
from rota.domain.guards import Mark
from rota.domain.run import Member
from rota.domain.schedule import Schedule
from rota.domain.ticks import next_from
from rota.store import ALL_ROWS, AUDIT_KEPT, AuditEntry, Command, MarkRow, Plan, RowQuery, Scope, Terms
from storekit.contract.stage import Stage, Staged, new_run
from storekit.contract.timetable import new_schedule

EVE = AuditEntry(id="1", by="eve", via="cli", action="test", subjects=("a", "b"), count=2, note="why", request="r-1")


def entry(id: str) -> AuditEntry:
    return replace(EVE, id=id)


class AuditContract(Staged):
    async def audited(self, stage: Stage, query: RowQuery = ALL_ROWS) -> list[AuditEntry]:
        return (await stage.store.rows(AuditEntry, query)).items

    async def changes(self, stage: Stage) -> dict[str, int]:
        return {one.id: one.changed for one in await self.audited(stage)}

    async def test_every_verb_of_people_keeps_its_entry_with_what_it_changed(self, stage: Stage) -> None:
        store, run, schedule = stage.store, new_run(), new_schedule("s")
        await stage.put(run)
        await store.edit([RunEdit(run=run.id, priority=3), RunEdit(run="nobody", priority=1)], audit=entry("edit"))
        await store.control(Command.PAUSE, [run.id, "nobody"], audit=entry("runs"))
        await store.control(Command.PAUSE, ["greet"], of=Scope.TASKS, audit=entry("tasks"))
        await store.control(Command.PAUSE, ["greet"], of=Scope.TASKS, audit=entry("tasks again"))
        await store.declare([schedule], audit=entry("put"))
        await store.declare([], Terms(drop=(schedule.id,)), audit=entry("drop"))
        await store.declare([schedule], Terms({schedule.id: 7}), audit=entry("conflict"))
        await store.mark([MarkRow("greet", "ada", Mark(1.0, 1.0))], audit=entry("mark"))
        await store.freeze(True, audit=entry("freeze"))
        await store.direct(["nobody"], quiet=True, audit=entry("direct"))
        assert await self.changes(stage) == {
            "direct": 0,
            "freeze": 1,
            "mark": 1,
            "conflict": 0,
            "drop": 1,
            "put": 1,
            "tasks again": 0,
            "tasks": 1,
            "runs": 1,
            "edit": 1,
        }

    async def test_a_put_and_a_tick_keep_their_entry_too(self, stage: Stage) -> None:
        store, run, other, schedule = stage.store, new_run(), new_run(), new_schedule("s")
        for _ in range(2):
            await store.put([run, other], audit=entry("runs"))
        await store.put([new_run(key="k", unique="queued", join="refuse")], audit=entry("unique"))
        await store.put([new_run(key="k", unique="queued", join="refuse")], audit=entry("refused"))
        await store.put([new_run(member=Member("day", "step"))], Plan("day"), audit=entry("plan"))
        await store.put([new_run(member=Member("day", "step"))], Plan("day"), audit=entry("replaced"))
        await store.declare([replace(schedule, trigger="cron 0 * * * * UTC", next_at=await stage.now() + 60)])
        (stored,) = (await store.rows(Schedule)).items
        tick = next_from(stored, (await stage.now()) + 7200, "later")
        assert tick is not None
        await store.fire([tick], entry("moved"))
        await store.fire([tick], entry("late"))
        expected = {"runs": 2, "unique": 1, "refused": 0, "plan": 1, "replaced": 2, "moved": 1, "late": 0}
        assert dict(reversed((await self.changes(stage)).items())) == expected

    async def test_a_long_put_is_audited_whole(self, stage: Stage) -> None:
        runs = [new_run() for _ in range(2500)]
        await stage.store.put(runs, audit=entry("many"))
        found = await self.audited(stage)
        assert sum(one.changed for one in found) == 2500
        assert found[-1].id == "many"

    async def test_an_entry_is_kept_as_it_was_given_with_the_time_of_the_store(self, stage: Stage) -> None:
        odd = replace(EVE, by="\ud800", note="\x00 'quoted' ☃", address="::1", result="403")
        (made,) = (await stage.store.audit([odd])).items
        (kept,) = await self.audited(stage)
        assert made is True
        assert 0 <= await stage.now() - kept.at < 60
        assert replace(kept, at=0.0) == replace(odd, by="?")

    async def test_what_is_sent_twice_is_kept_once_and_nobody_asked_is_not_kept(self, stage: Stage) -> None:
        run = new_run()
        await stage.put(run)
        await stage.store.control(Command.CANCEL, [run.id], by="eve")
        assert await self.audited(stage) == []
        for _ in range(2):
            await stage.store.control(Command.CANCEL, [run.id], audit=EVE)
        assert [(one.id, one.changed) for one in await self.audited(stage)] == [("1", 0)]
        assert (await stage.store.audit([EVE, entry("2")])).items == [False, True]

    async def test_the_latest_come_first_and_the_oldest_go(self, stage: Stage) -> None:
        for start in range(0, AUDIT_KEPT + 30, 1000):
            await stage.store.audit([entry(f"{n:06}") for n in range(start, min(start + 1000, AUDIT_KEPT + 30))])
        found = [one.id for one in await self.audited(stage)]
        assert found == [f"{n:06}" for n in reversed(range(30, AUDIT_KEPT + 30))]
        assert [one.id for one in await self.audited(stage, RowQuery(limit=2))] == found[:2]
