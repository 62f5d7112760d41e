"""Steps that wait for names: any run may meet them, at any time, and each step starts once."""

import pytest
from msgspec.structs import replace

from rota.domain import needs
from rota.domain.decision import DecisionCount, Reason
from rota.domain.guards import Mark
from rota.domain.lifecycle import Discarded, Failed, Outcome, Released, Skipped, Succeeded, settlement_of
from rota.domain.policy import Policy
from rota.domain.run import Member, NewRun, Run, State
from rota.store import Command, MarkRow, RowQuery, RunQuery
from storekit.contract.stage import BOOM, GREET, STUBBORN, Stage, Staged, ids, new_run

DAY = "race_day@2026-11-15"
ONCE = Policy(max_losses=1)


def step(
    name: str,
    *after: str,
    any_end: bool = False,
    stops: bool = False,
    group: str = DAY,
    policy: Policy = ONCE,
) -> NewRun:
    """Return the run of a step of the day, done once, that waits for the steps `after`."""
    spell = needs.ended if any_end else needs.done
    return new_run(
        key=f"{name}@day",
        unique="done",
        policy=policy,
        needs=[spell(GREET, f"{parent}@day") for parent in after],
        member=Member(group, name, stops),
    )


class FlowContract(Staged):
    async def finish(self, stage: Stage, new: NewRun, outcome: Outcome | None = None) -> Run:
        run = await stage.take()
        assert run.key == new.key
        await stage.end(run, outcome or Succeeded())
        return run

    async def test_a_step_starts_when_the_last_of_those_before_it_is_done(self, stage: Stage) -> None:
        one, two, last = step("one"), step("two"), step("last", "one", "two")
        await stage.put(last, one, two)
        assert set((await stage.see(last)).needs) == {needs.done(GREET, "one@day"), needs.done(GREET, "two@day")}
        first, second = (await stage.claim(free=9)).runs
        await stage.end(first, Succeeded())
        assert (await stage.claim("bob")).runs == []
        await stage.end(second, Succeeded())
        assert (await stage.take("bob")).id == last.id

    async def test_both_may_end_in_one_call(self, stage: Stage) -> None:
        await stage.put(step("one"), step("two"), last := step("last", "one", "two"))
        runs = (await stage.claim(free=9)).runs
        await stage.store.settle([settlement_of(run, Succeeded()) for run in runs])
        assert ids((await stage.claim("bob", 9)).runs) == [last.id]
        await stage.store.settle([settlement_of(run, Succeeded()) for run in runs])
        assert (await stage.claim("eve", 9)).runs == []

    async def test_the_end_of_a_step_hints_an_idle_worker_of_the_next(self, stage: Stage) -> None:
        await stage.put(step("one"), step("two", "one"))
        run = await stage.take()
        await stage.claim("bob")
        async with stage.listening() as ear:
            await stage.end(run, Succeeded())
            assert "bob" in await ear.workers()

    async def test_a_failure_blocks_those_behind_it(self, stage: Stage) -> None:
        await stage.put(one := step("one"), two := step("two", "one"))
        await self.finish(stage, one, Discarded(BOOM))
        blocked = await stage.see(two)
        assert (blocked.state, blocked.needs) == (State.QUEUED, (needs.done(GREET, "one@day"),))
        assert (await stage.claim()).runs == []

    async def test_another_run_of_the_failed_step_lets_them_go(self, stage: Stage) -> None:
        await stage.put(one := step("one"), two := step("two", "one"))
        await self.finish(stage, one, Discarded(BOOM))
        await stage.put(again := step("one"))
        await self.finish(stage, again)
        assert (await stage.take()).id == two.id

    async def test_any_end_is_enough_where_failures_are_passed_over(self, stage: Stage) -> None:
        await stage.put(one := step("one"), two := step("two", "one", any_end=True))
        await self.finish(stage, one, Discarded(BOOM))
        assert (await stage.take()).id == two.id

    async def test_a_cancel_is_an_end_too(self, stage: Stage) -> None:
        await stage.put(one := step("one"), two := step("two", "one", any_end=True), three := step("three", "one"))
        await stage.cancel(one)
        assert ids((await stage.claim(free=9)).runs) == [two.id]
        assert (await stage.see(three)).needs == (needs.done(GREET, "one@day"),)

    async def test_who_has_seen_a_cancel_is_not_held_by_it_again(self, stage: Stage) -> None:
        await stage.put(one := step("one"), two := step("two", "one", any_end=True))
        await stage.cancel(one)
        assert (await stage.admit(step("two", "one", any_end=True))).reason is Reason.JOINED
        run = await stage.take()
        assert (run.id, run.needs) == (two.id, ())
        await stage.end(run, Discarded(BOOM))
        await stage.put(again := step("two", "one", any_end=True))
        assert (await stage.take()).id == again.id

    async def test_a_retry_is_no_end(self, stage: Stage) -> None:
        await stage.put(step("one", policy=STUBBORN), step("two", "one", any_end=True))
        run = await stage.take()
        await stage.end(run, Failed(BOOM))
        assert (await stage.claim()).runs == []

    async def test_one_that_is_done_again_lets_nobody_go_twice(self, stage: Stage) -> None:
        await stage.put(one := step("one"), two := step("two", "one", any_end=True))
        await self.finish(stage, one, Discarded(BOOM))
        child = await stage.take()
        await stage.put(again := step("one"))
        retried = await stage.take("bob")
        assert retried.id == again.id
        await stage.end(retried, Succeeded())
        assert (await stage.claim("eve", 9)).runs == []
        assert (await stage.see(two)).fence == child.fence == 1

    async def test_what_is_done_already_is_waited_for_by_nobody(self, stage: Stage) -> None:
        await stage.put(one := step("one"))
        await self.finish(stage, one)
        await stage.put(two := step("two", "one"), three := step("three", "one", any_end=True))
        assert ids((await stage.claim(free=9)).runs) == [two.id, three.id]

    async def test_a_skipped_step_counts_as_done(self, stage: Stage) -> None:
        await stage.put(one := step("one"), two := step("two", "one"))
        await self.finish(stage, one, Skipped("a day without races"))
        assert (await stage.admit(step("one"))).reason is Reason.ALREADY_DONE
        assert (await stage.take()).id == two.id

    async def test_a_mark_that_is_set_lets_those_behind_it_go(self, stage: Stage) -> None:
        await stage.put(step("two", "one"), step("three", "one", any_end=True))
        now = await stage.now()
        assert (await stage.store.mark([MarkRow(GREET, "one@day", Mark(None, now, 1))])).items == [True]
        assert [run.key for run in (await stage.claim(free=9)).runs] == ["three@day"]
        assert (await stage.store.mark([MarkRow(GREET, "one@day", Mark(now, now, 0))])).items == [True]
        assert [run.key for run in (await stage.claim(free=9)).runs] == ["two@day"]

    async def test_a_cleared_mark_holds_those_that_come_later(self, stage: Stage) -> None:
        await stage.put(one := step("one"))
        await self.finish(stage, one)
        await stage.store.mark([MarkRow(GREET, "one@day", None)])
        await stage.put(step("two", "one"))
        assert (await stage.claim()).runs == []

    async def test_a_step_put_again_is_refused_joined_or_made_anew(self, stage: Stage) -> None:
        await stage.put(one := step("one"), two := step("two", "one"))
        again = (await stage.store.put([step("one"), step("two", "one")])).items
        assert [(decision.run, decision.reason) for decision in again] == [
            (one.id, Reason.JOINED),
            (two.id, Reason.JOINED),
        ]
        run = await stage.take()
        assert (await stage.admit(step("one"))).reason is Reason.ALREADY_RUNNING
        await stage.end(run, Succeeded())
        assert (await stage.admit(step("one"))).reason is Reason.ALREADY_DONE
        assert (await stage.take()).id == two.id

    async def test_a_waiting_step_put_again_waits_for_what_is_said_now(self, stage: Stage) -> None:
        await stage.put(step("one"), step("two"), last := step("last", "one"))
        await stage.admit(step("last", "two"))
        assert (await stage.see(last)).needs == (needs.done(GREET, "two@day"),)
        one = await stage.take()
        await stage.end(one, Succeeded())
        two = await stage.take()
        assert two.key == "two@day"
        await stage.end(two, Succeeded())
        assert (await stage.take()).id == last.id

    async def test_a_ready_step_put_again_may_have_to_wait(self, stage: Stage) -> None:
        await stage.put(last := step("last"))
        await stage.put(one := step("one"))
        await stage.admit(step("last", "one"))
        (first,) = (await stage.claim(free=9)).runs
        assert first.id == one.id
        await stage.end(first, Succeeded())
        assert (await stage.take()).id == last.id

    async def test_a_waiting_step_put_again_goes_when_all_is_done(self, stage: Stage) -> None:
        await stage.put(last := step("last", "never"))
        await stage.claim("bob")
        async with stage.listening() as ear:
            await stage.admit(step("last"))
            assert "bob" in await ear.workers()
        assert (await stage.take()).id == last.id

    async def test_a_paused_step_waits_for_both(self, stage: Stage) -> None:
        await stage.put(one := step("one"), two := step("two", "one"))
        await stage.pause(two)
        await self.finish(stage, one)
        assert (await stage.claim()).runs == []
        await stage.resume(two)
        assert (await stage.take()).id == two.id

    async def test_names_are_told_apart_whatever_is_in_them(self, stage: Stage) -> None:
        odd = new_run(key="a b@day", unique="done", member=Member(DAY, "odd"))
        await stage.put(odd, wide := new_run("elsewhere", needs=[needs.done(GREET, "a b@day")]))
        await stage.put(new_run("elsewhere", needs=[needs.done(GREET, "b@day"), needs.ended(GREET, "a")]))
        await self.finish(stage, odd)
        assert ids((await stage.claim(free=9, tasks=["elsewhere"])).runs) == [wide.id]


class GroupContract(Staged):
    async def test_a_group_is_read_as_such(self, stage: Stage) -> None:
        day = [step("one"), step("two", "one"), step("three", "two")]
        await stage.put(*day, new_run(), step("other", group="race_day@2026-11-16"))
        page = await stage.store.runs(RunQuery(group=DAY, limit=2))
        assert ids(page.runs) == [day[2].id, day[1].id]
        second = await stage.store.runs(RunQuery(group=DAY, limit=2, cursor=page.cursor))
        assert (ids(second.runs), second.cursor) == ([day[0].id], None)
        assert second.runs[0].member == Member(DAY, "one")
        run = await stage.take()
        await stage.end(run, Succeeded())
        done = await stage.store.runs(RunQuery(group=DAY, state=[State.SUCCEEDED]))
        assert ids(done.runs) == [day[0].id]
        assert (await stage.store.runs(RunQuery(group="nobody"))).runs == []

    async def test_a_member_stays_one_through_its_life(self, stage: Stage) -> None:
        new = step("one", policy=STUBBORN)
        await stage.put(new)
        run = await stage.take()
        await stage.end(run, Failed(BOOM))
        stage.wait(600)
        assert (await stage.take()).member == Member(DAY, "one")
        assert ids((await stage.store.runs(RunQuery(group=DAY))).runs) == [new.id]

    async def test_a_failure_may_stop_its_group(self, stage: Stage) -> None:
        one, two, three = step("one", stops=True), step("two", "one"), step("three")
        await stage.put(one, two, three, other := step("other", group="another"))
        assert (await stage.see(other)).state is State.QUEUED
        run = await stage.take()
        assert run.id == one.id
        await stage.pause(three)
        settled = await stage.store.settle([settlement_of(run, Discarded(BOOM))])
        for gone in await stage.find(two, three):
            assert (gone.state, gone.reason, gone.note) == (State.CANCELLED, Reason.STOPPED, f"{GREET} failed")
            assert gone.finished_at == settled.now, "by that, whoever settled it knows what it ended"
        assert (await stage.see(other)).state is State.QUEUED
        rows = (await stage.store.rows(DecisionCount, RowQuery(task=GREET))).items
        assert {(row.key, row.reason) for row in rows} >= {("two@day", Reason.STOPPED), ("three@day", Reason.STOPPED)}

    async def test_what_runs_goes_on_when_its_group_is_stopped(self, stage: Stage) -> None:
        await stage.put(step("one", stops=True), two := step("two"))
        first, second = (await stage.claim(free=2)).runs
        await stage.end(first, Discarded(BOOM))
        assert (await stage.see(two)).state is State.RUNNING
        await stage.end(second, Succeeded())
        assert (await stage.see(two)).state is State.SUCCEEDED

    @pytest.mark.parametrize("first", ["stop", "release"])
    async def test_a_stop_meets_a_release_in_one_batch_in_their_order(self, stage: Stage, first: str) -> None:
        await stage.put(step("one", stops=True), two := step("two"))
        one, released = (await stage.claim(free=2)).runs
        batch = [settlement_of(one, Discarded(BOOM)), settlement_of(released, Released())]
        await stage.store.settle(batch if first == "stop" else batch[::-1])
        assert (await stage.see(two)).state is (State.QUEUED if first == "stop" else State.CANCELLED)

    async def test_a_success_stops_nothing(self, stage: Stage) -> None:
        await stage.put(step("one", stops=True), two := step("two", "one"))
        run = await stage.take()
        await stage.end(run, Succeeded())
        assert (await stage.take()).id == two.id

    async def test_the_stop_of_a_stale_ending_stops_nothing(self, stage: Stage) -> None:
        await stage.put(step("one", stops=True), two := step("two", "one"))
        run = await stage.take()
        await stage.end(replace(run, fence=7), Discarded(BOOM))
        assert (await stage.see(two)).state is State.QUEUED

    async def test_a_command_about_a_member_is_about_it_alone(self, stage: Stage) -> None:
        await stage.put(one := step("one"), two := step("two", "one"))
        assert (await stage.store.control(Command.CANCEL, [one.id])).items == [1]
        assert (await stage.see(two)).state is State.QUEUED
