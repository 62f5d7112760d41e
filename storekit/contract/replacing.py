"""replace: the run of a tick takes the place of the runs before it. Schedules that count their runs."""

import pytest
from msgspec.structs import replace

from rota.domain.decision import Decision, DecisionCount, Reason
from rota.domain.lifecycle import Cancelled, Failed, Lost, Outcome, Released, Snoozed, Succeeded
from rota.domain.run import NewRun, State
from storekit.contract.stage import ARGS, BOOM, LEASE, Stage, Staged, new_run
from storekit.contract.timetable import MINUTE, Timetable, new_tick

NEWER = b'{"name":"Bob"}'


def replacing(args: bytes = ARGS) -> NewRun:
    """Return a run as a schedule with overlap="replace" makes it."""
    return new_run(unique="queued", key="k", join="replace", behind=True, args=args)


class ReplaceContract(Staged):
    """A tick asks the run before it to stop, and starts when that run has ended."""

    async def test_the_running_run_is_asked_to_stop_and_the_new_run_waits_for_its_end(self, stage: Stage) -> None:
        first, second = replacing(), replacing(NEWER)
        run = await stage.running(first)
        assert await stage.admit(second) == Decision(second.id, Reason.ACCEPTED)
        seen = await stage.see(first)
        assert (seen.state, seen.cancel_requested, seen.note) == (State.RUNNING, True, f"replaced by {second.id}")
        assert (await stage.see(second)).needs == (first.id,)
        assert (await stage.claim("bob", free=5)).runs == []
        await stage.end(run, Cancelled())
        assert (await stage.see(first)).state is State.CANCELLED
        assert (await stage.take("bob")).id == second.id

    async def test_a_put_that_is_sent_twice_asks_once(self, stage: Stage) -> None:
        first, second = replacing(), replacing(NEWER)
        await stage.running(first)
        await stage.put(second)
        assert await stage.admit(second) == Decision(second.id, Reason.ACCEPTED)
        (row,) = (await stage.store.rows(DecisionCount)).items
        assert (row.reason, row.count, row.run) == (Reason.CANCELLED, 1, first.id)

    async def test_the_newest_replaces_the_one_that_waits(self, stage: Stage) -> None:
        first, second, third = replacing(), replacing(NEWER), replacing(b"3")
        run = await stage.running(first)
        await stage.put(second)
        assert await stage.admit(third) == Decision(second.id, Reason.JOINED)
        assert (await stage.see(second)).args == b"3"
        assert (await stage.see(first)).note == f"replaced by {second.id}", "the first request stays"
        await stage.end(run, Succeeded())
        assert (await stage.take()).id == second.id

    @pytest.mark.parametrize("outcome", [Failed(BOOM), Lost(), Released()], ids=lambda outcome: type(outcome).__name__)
    async def test_a_run_that_was_asked_to_stop_does_not_come_back(self, stage: Stage, outcome: Outcome) -> None:
        """Not by a retry, nor by a rescue, nor by a worker that gives it back."""
        first, second = replacing(), replacing(NEWER)
        run = await stage.running(first)
        await stage.put(second)
        if isinstance(outcome, Lost):
            stage.wait(LEASE + 1)
        await stage.end(run, outcome)
        seen = await stage.see(first)
        assert (seen.state, seen.reason) == (State.CANCELLED, Reason.CANCELLED)
        assert (await stage.take()).id == second.id

    @pytest.mark.parametrize("outcome", [Failed(BOOM), Lost(), Snoozed(60)], ids=lambda outcome: type(outcome).__name__)
    async def test_a_run_that_waits_for_its_retry_is_cancelled(self, stage: Stage, outcome: Outcome) -> None:
        first, second = replacing(), replacing(NEWER)
        run = await stage.running(first)
        if isinstance(outcome, Lost):
            stage.wait(LEASE + 1)
        await stage.end(run, outcome)
        await stage.put(second)
        seen = await stage.see(first)
        assert (seen.state, seen.reason, seen.note) == (State.CANCELLED, Reason.CANCELLED, f"replaced by {second.id}")
        assert (await stage.see(second)).needs == ()
        assert (await stage.take()).id == second.id

    async def test_nothing_is_cancelled_for_a_run_that_is_refused(self, stage: Stage) -> None:
        first = replacing()
        await stage.running(first)
        await stage.declare(enabled=False)
        assert (await stage.admit(replacing(NEWER))).reason is Reason.DISABLED
        assert not (await stage.see(first)).cancel_requested

    async def test_runs_of_another_key_go_on(self, stage: Stage) -> None:
        other = new_run(unique="queued", key="other", behind=True)
        await stage.running(other)
        await stage.put(replacing())
        assert not (await stage.see(other)).cancel_requested

    async def test_all_that_run_are_asked_and_all_are_waited_for(self, stage: Stage) -> None:
        one = await stage.running(new_run(unique="queued", key="k"))
        await stage.put(new_run(unique="queued", key="k", args=NEWER))
        two = await stage.take("bob")
        third = replacing(b"3")
        await stage.put(third)
        assert set((await stage.see(third)).needs) == {one.id, two.id}
        await stage.end(one, Cancelled())
        assert (await stage.claim(free=5)).runs == []
        await stage.end(two, Cancelled())
        assert (await stage.take()).id == third.id


class CountedScheduleContract(Staged):
    """Ticks with `left` count the runs that are accepted. When none is left, the schedule ends."""

    async def test_a_tick_that_nobody_counts_leaves_the_count_alone(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        await timetable.fire(new_tick(await timetable.due(), new_run()))
        assert (await timetable.see()).made == 0

    async def test_a_schedule_ends_with_its_last_run(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        schedule = await timetable.due()
        await timetable.fire(new_tick(schedule, new_run(), left=2))
        seen = await timetable.see()
        assert (seen.made, seen.next_at) == (1, (schedule.next_at or 0) + MINUTE)
        await timetable.fire(new_tick(seen, new_run(), left=1))
        seen = await timetable.see()
        assert (seen.made, seen.next_at, seen.fires_at) == (2, None, None)
        stage.wait(3600)
        assert await timetable.offered() == []

    async def test_a_tick_that_is_sent_twice_counts_once(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        tick = new_tick(await timetable.due(), new_run(), left=5)
        assert await timetable.fired(tick, tick) == [True, False]
        assert await timetable.fired(tick) == [False]
        assert (await timetable.see()).made == 1

    async def test_a_refused_run_does_not_count(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        schedule = await timetable.due()
        await stage.put(new_run(key="k", unique="active"))
        await timetable.fire(new_tick(schedule, new_run(key="k", unique="active", join="refuse"), left=1))
        seen = await timetable.see()
        assert (seen.made, seen.next_at) == (0, (schedule.next_at or 0) + MINUTE)

    async def test_the_count_stays_while_the_times_stay(self, stage: Stage) -> None:
        timetable = Timetable(stage)
        schedule = await timetable.due()
        await timetable.fire(new_tick(schedule, new_run(), left=5))
        await timetable.declare(replace(schedule, grace=5.0))
        assert (await timetable.see()).made == 1
        await timetable.declare(replace(schedule, times=7))
        assert (await timetable.see()).made == 0

    async def test_a_place_in_a_buffer_is_taken_until_its_run_has_ended(self, stage: Stage) -> None:
        first, second = (new_run(key="k", unique="active", join="full") for _ in range(2))
        await stage.put(first)
        assert await stage.admit(second) == Decision(first.id, Reason.BUFFER_FULL)
        run = await stage.take()
        assert await stage.admit(second) == Decision(first.id, Reason.BUFFER_FULL)
        await stage.end(run, Succeeded())
        assert await stage.admit(second) == Decision(second.id, Reason.ACCEPTED)
        (row,) = (await stage.store.rows(DecisionCount)).items
        assert (row.reason, row.count, row.run) == (Reason.BUFFER_FULL, 2, first.id)
