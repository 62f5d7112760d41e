"""fire: advance a schedule and admit its runs in one transaction. The same tick from another worker changes nothing."""

import asyncio

import pytest
from msgspec.structs import replace

from rota.domain.decision import Decision, DecisionCount, Reason
from rota.domain.guards import Cooldown, Guards, Unique
from rota.domain.lifecycle import Cancelled
from rota.domain.run import Origin, State
from rota.domain.schedule import FIRINGS_KEPT, Firing, Missed, Schedule
from rota.domain.ticks import due_tick, tick_id, with_first_tick
from rota.store import Backend, Command, Declared, Depth, Fired, RowQuery
from storekit.contract.stage import GREET, Stage, Staged, ids, new_run
from storekit.contract.timetable import MINUTE, REPORT, Timetable, new_schedule, new_tick, tick_run

REFUSED = Fired(False)


class FireContract(Staged):
    async def test_a_tick_advances_its_schedule_and_admits_its_run(self, stage: Stage) -> None:
        timetable, run = Timetable(stage), tick_run()
        schedule = await timetable.due()
        tick = replace(new_tick(schedule, run), fires_at=(schedule.next_at or 0) + MINUTE + 7.5)
        assert await timetable.fire(tick) == [Fired(True, (Decision(run.id, Reason.ACCEPTED),))]
        after = replace(
            schedule,
            next_at=tick.then,
            fires_at=tick.fires_at,
            recent=(Firing(schedule.next_at or 0, Reason.ACCEPTED),),
        )
        assert await timetable.see() == after
        assert (await stage.take()).id == run.id

    async def test_a_tick_gives_its_schedule_a_note_and_takes_it_away(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        schedule = await timetable.due()
        for note, kept in (("until Monday", "until Monday"), (None, "until Monday"), ("", None)):
            tick = replace(new_tick(schedule), note=note)
            assert await timetable.fired(tick) == [True]
            schedule = await timetable.see()
            assert (schedule.note, schedule.next_at) == (kept, tick.then)

    async def test_the_same_tick_again_changes_nothing(self, stage: Stage) -> None:
        """The reply was lost, or another worker has fired the tick; even after the run is forgotten."""
        timetable, run = Timetable(stage), tick_run()
        tick = new_tick(await timetable.due(), run)
        assert await timetable.fired(tick, tick) == [True, False]
        after, admitted = await timetable.see(), await stage.see(run)
        assert await timetable.fire(tick, replace(tick, runs=(tick_run(),))) == [REFUSED, REFUSED]
        assert await timetable.see() == after
        assert await stage.see(run) == admitted
        assert (await stage.store.depths()).items == [Depth(GREET, 1, 0)]

    async def test_two_who_plan_the_same_tick_make_one_run(self, stage: Stage, backend: Backend) -> None:
        timetable = Timetable(stage)
        now = await stage.now()
        assert await timetable.declare(with_first_tick(new_schedule(trigger="every 1m"), now)) == [Declared.ADDED]
        for turn in range(1, 6):
            stage.wait(MINUTE)
            schedule = await timetable.see()
            async with backend.open() as other:
                ticks = [due_tick(schedule, await stage.now()) for _ in range(2)]
                answers = await asyncio.gather(stage.store.fire(ticks[:1]), other.fire(ticks[1:]))
            assert sorted(fired.applied for reply in answers for fired in reply.items) == [False, True]
            (depth,) = (await stage.store.depths()).items
            assert depth.queued == turn
        assert len((await timetable.see()).recent) == 5

    async def test_a_run_says_which_tick_made_it(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.declare(with_first_tick(new_schedule(trigger="every 1m"), await stage.now()))
        stage.wait(MINUTE + 1)
        schedule = await timetable.see()
        await timetable.fire(due_tick(schedule, await stage.now()))
        run = await stage.take()
        nominal = schedule.next_at or 0.0
        assert (run.id, run.origin) == (tick_id(REPORT, nominal), Origin("schedule", REPORT, nominal))
        assert (run.due_at, run.key, run.args) == (nominal, schedule.key, b'{"name":"Ada"}')

    async def test_a_tick_that_was_planned_before_a_word_about_its_schedule_is_refused(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        for change in (new_schedule(priority=9), new_schedule(priority=9, trigger="every 2m", at=5.0)):
            tick = new_tick(
                await timetable.see() if await timetable.find(REPORT) else await timetable.due(), tick_run()
            )
            assert await timetable.declare(change) == [Declared.CHANGED]
            changed = await timetable.see()
            assert await timetable.fire(tick) == [REFUSED]
            assert await timetable.see() == changed
        assert (await stage.claim()).runs == []

    async def test_a_paused_schedule_refuses_a_tick_even_one_of_its_version(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        tick = new_tick(await timetable.due(), tick_run())
        await timetable.control(Command.PAUSE)
        paused = await timetable.see()
        assert await timetable.fire(tick, new_tick(paused, tick_run())) == [REFUSED, REFUSED]
        assert await timetable.see() == paused
        await timetable.control(Command.RESUME)
        assert await timetable.fire(tick) == [REFUSED]
        assert (await stage.claim()).runs == []

    async def test_a_schedule_that_is_gone_refuses_its_ticks(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        tick = new_tick(await timetable.due(), tick_run())
        await timetable.control(Command.DROP)
        assert await timetable.fire(tick, new_tick(new_schedule("never"), tick_run())) == [REFUSED, REFUSED]
        assert await timetable.find(REPORT) == []
        assert (await stage.claim()).runs == []

    async def test_the_last_tick_ends_a_schedule(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        schedule = await timetable.due()
        assert await timetable.fired(new_tick(schedule, tick_run(), last=True)) == [True]
        over = await timetable.see()
        assert (over.next_at, over.fires_at, len(over.recent)) == (None, None, 1)
        assert await timetable.fired(new_tick(schedule, tick_run(), last=True)) == [False]

    async def test_a_tick_without_a_run_only_moves_its_schedule(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        schedule = await timetable.add()
        at = (schedule.next_at or 0) - 30
        assert await timetable.fire(new_tick(schedule, then=at)) == [Fired(True)]
        assert await timetable.see() == replace(schedule, next_at=at, fires_at=at)
        assert (await stage.store.rows(DecisionCount)).items == []

    async def test_a_tick_is_remembered_with_the_run_that_was_there_already(self, stage: Stage) -> None:
        """A firing names the run that the tick joined, or because of which it was refused. It does not name the run of
        the tick itself: that id derives from the nominal time."""
        timetable = Timetable(stage)
        schedule = await timetable.due()
        first, joins = tick_run(unique="queued"), tick_run(unique="queued")
        refused = tick_run(unique="queued", join="refuse")
        tick = new_tick(schedule, first, joins, refused)
        assert await timetable.fired(tick) == [True]
        assert (await timetable.see()).recent == (
            Firing(tick.nominals[0], Reason.ACCEPTED),
            Firing(tick.nominals[1], Reason.JOINED, first.id),
            Firing(tick.nominals[2], Reason.ALREADY_QUEUED, first.id),
        )

    async def test_the_last_thirty_outcomes_are_kept(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        schedule, nominals = await timetable.due(), list[float]()
        for _ in range(4):
            runs = [tick_run() for _ in range(10)]
            tick = new_tick(schedule, *runs)
            nominals += tick.nominals
            assert await timetable.fired(tick) == [True]
            schedule = await timetable.see()
        assert [firing.nominal for firing in schedule.recent] == nominals[-FIRINGS_KEPT:]
        assert len(schedule.recent) == FIRINGS_KEPT == 30

    async def test_several_steps_of_one_schedule_go_in_one_call(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        first = await timetable.due()
        steps = [new_tick(first, tick_run())]
        for _ in range(2):
            steps.append(new_tick(replace(first, next_at=steps[-1].then), tick_run()))
        assert await timetable.fired(*steps) == [True, True, True]
        assert (await timetable.see()).next_at == steps[-1].then
        assert len((await stage.claim(free=9)).runs) == 3

    async def test_thousands_of_ticks_go_in_one_call(self, stage: Stage) -> None:
        timetable, now = Timetable(stage), await stage.now()
        news = [new_schedule(f"s{place:04}", now, guards=Guards("active")) for place in range(3000)]
        assert set(await timetable.declare(*news)) == {Declared.ADDED}
        (twin,) = [new_run(key="schedule:s0007", unique="active")]
        await stage.put(twin)
        kept = (await stage.store.rows(Schedule)).items
        ticks = [new_tick(schedule, new_run(key=schedule.key, unique="active", join="refuse")) for schedule in kept]
        fired = await timetable.fire(*ticks)
        assert all(each.applied for each in fired)
        refused = [each.decisions for each in fired if not each.decisions[0]]
        assert refused == [(Decision(twin.id, Reason.ALREADY_QUEUED),)]
        assert (await stage.store.depths()).items == [Depth(GREET, 3000, 0)]
        assert not any(await timetable.fired(*ticks))


class FireGuardContract(Staged):
    @pytest.mark.parametrize("unique", ["queued", "active"])
    async def test_overlap_is_judged_in_the_step_that_admits(self, stage: Stage, unique: Unique) -> None:
        """While a run is queued, a tick makes no run; while a run is running, only with unique="queued"."""
        timetable = Timetable(stage)
        first, second, third = (tick_run(unique=unique, join="refuse") for _ in range(3))
        schedule = await timetable.due()
        await timetable.fire(new_tick(schedule, first))
        answers = [await timetable.fire(new_tick(await timetable.see(), second))]
        assert (await stage.take()).id == first.id
        answers.append(await timetable.fire(new_tick(await timetable.see(), third)))
        behind = (
            Decision(third.id, Reason.ACCEPTED) if unique == "queued" else Decision(first.id, Reason.ALREADY_RUNNING)
        )
        assert answers == [[Fired(True, (Decision(first.id, Reason.ALREADY_QUEUED),))], [Fired(True, (behind,))]]
        reasons = [firing.reason for firing in (await timetable.see()).recent]
        assert reasons == [Reason.ACCEPTED, Reason.ALREADY_QUEUED, behind.reason]

    async def test_two_schedules_of_one_key_in_one_call_make_one_run(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        one, other = await timetable.due("one"), await timetable.due("other")
        first, second = new_run(key="k", unique="active", join="refuse"), new_run(key="k", unique="active", join="set")
        fired = await timetable.fire(new_tick(one, first), new_tick(other, second))
        assert [each.decisions for each in fired] == [
            (Decision(first.id, Reason.ACCEPTED),),
            (Decision(first.id, Reason.JOINED),),
        ]
        assert ids((await stage.claim(free=9)).runs) == [first.id]

    async def test_a_refused_run_still_advances_and_is_recorded(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        schedule = await timetable.due()
        await stage.declare(enabled=False)
        run = tick_run()
        assert await timetable.fire(new_tick(schedule, run)) == [Fired(True, (Decision(run.id, Reason.DISABLED),))]
        after = await timetable.see()
        assert after.next_at == (schedule.next_at or 0) + MINUTE
        assert after.recent == (Firing(schedule.next_at or 0, Reason.DISABLED),)
        (row,) = (await stage.store.rows(DecisionCount)).items
        assert (row.task, row.key, row.reason, row.count, row.run) == (GREET, run.key, Reason.DISABLED, 1, run.id)
        assert await stage.find(run) == []

    async def test_every_guard_is_judged_for_a_tick(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await stage.ended(new_run(key="k", unique="done"))
        await stage.put(new_run("full", delay=60))
        cases = [
            (new_run(key="k", unique="done"), Reason.ALREADY_DONE),
            (new_run(key="k", cooldowns=(Cooldown(0, 6000.0),)), Reason.RESTING),
            (new_run("full", max_pending=1), Reason.QUEUE_FULL),
            (new_run("full", max_pending=2), Reason.ACCEPTED),
        ]
        for place, (run, _) in enumerate(cases):
            assert await timetable.fired(new_tick(await timetable.due(f"s{place}"), run)) == [True]
        seen = await timetable.find(*(f"s{place}" for place in range(len(cases))))
        assert [schedule.recent[-1].reason for schedule in seen] == [reason for _, reason in cases]

    async def test_one_bad_neighbour_fails_nobody(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        first, bad, last = await timetable.due("a"), await timetable.due("b"), await timetable.due("c")
        fine, odd, also = new_run(), replace(new_run(), body=b"not json at all"), new_run()
        await stage.declare(task="off", enabled=False)
        ticks = [
            new_tick(replace(first, version=99), new_run()),
            new_tick(first, fine),
            new_tick(bad, odd, new_run("off")),
            new_tick(new_schedule("never"), new_run()),
            new_tick(last, also),
        ]
        assert await timetable.fired(*ticks) == [False, True, True, False, True]
        assert sorted(ids((await stage.claim(free=9)).runs)) == sorted(ids([fine, odd, also]))

    async def test_the_runs_of_one_tick_can_wait_for_each_other(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        first = tick_run()
        second = tick_run(needs=[first.id])
        third = tick_run(needs=[second.id])
        await timetable.fire(new_tick(await timetable.due(), first, second, third))
        claimed: list[str] = []
        for _ in range(3):
            run = await stage.take()
            assert (await stage.claim("bob")).runs == []
            claimed.append(run.id)
            await stage.cancel(run)
            await stage.end(run, Cancelled())
        assert claimed == ids([first, second, third])


class MissedContract(Staged):
    async def missed(self, stage: Stage) -> list[DecisionCount]:
        return (await stage.store.rows(DecisionCount, RowQuery(task=GREET, key=f"schedule:{REPORT}"))).items

    async def test_a_missed_range_is_one_decision_with_its_count(self, stage: Stage) -> None:
        timetable, run = Timetable(stage), tick_run()
        schedule = await timetable.due()
        missed = Missed(1_700_000_000.0, 1_700_000_060.0, 7)
        reply = await stage.store.fire([new_tick(schedule, run, missed=missed)])
        note = "7 from 2023-11-14 22:13:20 to 2023-11-14 22:14:20 UTC"
        decided = DecisionCount(GREET, schedule.key, Reason.MISSED, 7, reply.now, reply.now, note=note)
        assert await self.missed(stage) == [decided]
        assert (await timetable.see()).recent == (
            Firing(missed.last, Reason.MISSED),
            Firing(schedule.next_at or 0, Reason.ACCEPTED),
        )
        stage.wait(10)
        later = await stage.store.fire([new_tick(await timetable.see(), missed=Missed(5.0, 5.0, 1))])
        folded = replace(decided, count=8, last_at=later.now, note="1970-01-01 00:00:05 UTC")
        assert await self.missed(stage) == [folded]

    async def test_a_deadline_that_passed_is_a_decision_of_its_own(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        schedule = await timetable.due()
        late = Missed(9.0, 9.0, 1, reason=Reason.LATE, note="not done by 07:00")
        assert (await stage.store.fire([new_tick(schedule, missed=late)])).items == [Fired(True)]
        (row,) = (await stage.store.rows(DecisionCount, RowQuery(task=schedule.task))).items
        assert (row.reason, row.key, row.count, row.note) == (Reason.LATE, schedule.key, 1, "not done by 07:00")
        assert (await timetable.see()).recent == (Firing(9.0, Reason.LATE),)

    async def test_a_refused_tick_has_missed_nothing(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        tick = new_tick(await timetable.due(), missed=Missed(5.0, 6.0, 2))
        assert await timetable.fired(tick, tick) == [True, False]
        assert [row.count for row in await self.missed(stage)] == [2]

    async def test_all_that_was_missed_while_nobody_was_there_is_told_once(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.declare(with_first_tick(new_schedule(), await stage.now()))
        stage.wait(30 * 86_400)
        await timetable.fire(due_tick(await timetable.see(), await stage.now()))
        (row,) = await self.missed(stage)
        assert 30 * 1440 - 2 <= row.count <= 30 * 1440
        (depth,) = (await stage.store.depths()).items
        assert depth == Depth(GREET, 1, 0)
        assert (await stage.take()).state is State.RUNNING
