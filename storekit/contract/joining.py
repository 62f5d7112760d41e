"""join: what a queued run keeps, and what it takes from the run that joins it."""

import pytest
from msgspec.structs import replace

from rota.domain.decision import Reason
from rota.domain.guards import Cooldown, Join
from rota.domain.joins import REPLACED
from rota.domain.lifecycle import Failed, Lost, Outcome, Paused, Released, Snoozed, Succeeded, settlement_of
from rota.domain.policy import Limit, Policy, Retry
from rota.domain.run import Attempt, Member, NewRun, Note, Progress, Run, State, after
from rota.domain.settlement import Verdict
from rota.store import Plan, RunQuery
from storekit.contract.stage import ARGS, BOOM, GREET, LEASE, Stage, Staged, ids, new_run

NEWER = b'{"name":"Bob"}'
HALF = Note(Progress(0.5, "halfway"), b'{"page":3}')
LONG = b'{"name":"' + b"x" * 5000 + b'"}'
"""Arguments so large that a store may keep them elsewhere."""

JOINS: tuple[Join, ...] = ("keep", "push", "set")


def equal(args: bytes = ARGS, join: Join = "keep", **more: float) -> NewRun:
    return new_run(unique="queued", key="k", args=args, join=join, **more)  # type: ignore[arg-type]


class FreshStartContract(Staged):
    async def tried(self, stage: Stage, outcome: Outcome, new: NewRun | None = None) -> Run:
        """Return a run that was called once, left a checkpoint, and is queued again."""
        run = await stage.running(new or equal())
        if isinstance(outcome, Lost):
            await stage.store.renew([run.lease], LEASE, {run.id: HALF})
            stage.wait(LEASE + 1)
        if isinstance(outcome, Paused):
            await stage.pause(run)
        assert await stage.settle(settlement_of(run, outcome, note=HALF)) is Verdict.APPLIED
        waiting = await stage.see(run)
        assert (waiting.saved, waiting.progress) == (HALF.saved, HALF.progress)
        return waiting

    @pytest.mark.parametrize("join", JOINS)
    @pytest.mark.parametrize(
        "outcome", [Failed(BOOM), Lost(), Paused(), Released(), Snoozed(60)], ids=lambda outcome: type(outcome).__name__
    )
    async def test_other_arguments_start_afresh(self, stage: Stage, join: Join, outcome: Outcome) -> None:
        before = await self.tried(stage, outcome)
        assert (await stage.admit(equal(NEWER, join, delay=700))).run == before.id
        run = await stage.see(before)
        assert (run.args, run.fence, run.state) == (NEWER, before.fence, before.state)
        assert (run.failures, run.losses, run.saved, run.progress, run.error) == (0, 0, None, None, None)
        assert [attempt.outcome for attempt in run.attempts] == [before.attempts[0].outcome, REPLACED]
        await stage.resume(run)
        stage.wait(701)
        again = await stage.take("bob")
        assert (again.args, again.fence, again.saved, again.failures) == (NEWER, 2, None, 0)

    @pytest.mark.parametrize("join", JOINS)
    @pytest.mark.parametrize("outcome", [Failed(BOOM), Lost(), Paused()], ids=lambda outcome: type(outcome).__name__)
    async def test_the_same_arguments_go_on_where_they_were(self, stage: Stage, join: Join, outcome: Outcome) -> None:
        before = await self.tried(stage, outcome)
        assert (await stage.admit(equal(ARGS, join))).run == before.id
        run = await stage.see(before)
        assert (run.failures, run.losses, run.error) == (before.failures, before.losses, before.error)
        assert (run.saved, run.progress, run.attempts) == (before.saved, before.progress, before.attempts)

    @pytest.mark.parametrize(("first", "second"), [(LONG, LONG + b" "), (LONG, NEWER), (NEWER, LONG), (LONG, LONG)])
    async def test_long_arguments_are_compared_as_short_ones_are(
        self, stage: Stage, first: bytes, second: bytes
    ) -> None:
        before = await self.tried(stage, Failed(BOOM), equal(first))
        await stage.admit(equal(second, "set"))
        run = await stage.take()
        assert (run.args, run.failures) == (second.strip(), 1 if first == second else 0)
        assert run.saved == (before.saved if first == second else None)

    async def test_replacing_work_has_all_its_retries(self, stage: Stage) -> None:
        once = Policy(retry=Retry(1, delay=5, jitter=0))
        first = new_run(unique="queued", key="k", policy=once)
        await self.tried(stage, Failed(BOOM), first)
        await stage.admit(new_run(unique="queued", key="k", args=NEWER, policy=once, join="set"))
        for state in (State.QUEUED, State.FAILED):
            await stage.end(await stage.take(), Failed(BOOM))
            assert (await stage.see(first)).state is state
            stage.wait(6)

    async def test_a_suspect_that_is_given_other_work_is_none_any_more(self, stage: Stage) -> None:
        (suspect,) = await stage.suspects(equal())
        other = new_run()
        await stage.put(other)
        await stage.admit(equal(NEWER))
        assert ids((await stage.claim(free=2)).runs) == ids([suspect, other])

    async def test_a_resent_ending_is_known_after_a_join(self, stage: Stage) -> None:
        run = await stage.running(equal())
        ending = settlement_of(run, Failed(BOOM))
        await stage.settle(ending)
        await stage.admit(equal(NEWER))
        assert await stage.settle(ending) is Verdict.ALREADY

    async def test_a_plan_that_moves_a_run_gives_it_the_work_of_now(self, stage: Stage) -> None:
        member = Member("group")
        first = new_run(unique="done", key="k", join="set", member=member)
        before = await self.tried(stage, Failed(BOOM), first)
        again = new_run(unique="done", key="k", join="set", args=NEWER, member=member, delay=5)
        assert [d.reason for d in (await stage.store.put([again], Plan("group"))).items] == [Reason.JOINED]
        run = await stage.see(before)
        assert (run.args, run.saved, run.failures, run.error) == (NEWER, None, 0, None)

    async def test_a_joined_run_that_was_never_called_has_no_attempts(self, stage: Stage) -> None:
        first = equal()
        await stage.put(first)
        await stage.admit(equal(NEWER))
        assert (await stage.see(first)).attempts == ()

    async def test_work_that_is_replaced_many_times_keeps_its_attempts(self, stage: Stage) -> None:
        run = await stage.running(equal())
        ending = settlement_of(run, Failed(BOOM))
        await stage.settle(ending)
        (failed,) = (await stage.see(run)).attempts
        for number in range(25):
            stage.wait(1)
            await stage.admit(equal(b'{"n":%d}' % number))
        joined = await stage.see(run)
        assert joined.attempts == (failed, Attempt(1, "", REPLACED, joined.touched_at, joined.touched_at))
        assert await stage.settle(ending) is Verdict.ALREADY, "a resend finds its attempt after any number of joins"

    async def test_every_work_that_was_called_and_replaced_has_its_row(self, stage: Stage) -> None:
        run = await stage.running(equal())
        for number in range(2):
            await stage.end(run, Released())
            for again in range(3):
                await stage.admit(equal(b'{"n":%d}' % (10 * number + again)))
            run = await stage.take()
        rows = [(attempt.fence, attempt.outcome) for attempt in run.attempts]
        assert rows == [(1, "released"), (1, REPLACED), (2, "released"), (2, REPLACED)]

    async def test_attempts_are_bounded(self, stage: Stage) -> None:
        run = await stage.running(equal())
        for number in range(25):
            await stage.end(run, Released())
            await stage.admit(equal(b'{"n":%d}' % number))
            run = await stage.take()
        assert len(run.attempts) == 20
        assert run.attempts[-1].outcome == REPLACED
        assert run.fence == 26


def tick(args: bytes = ARGS, **more: float) -> NewRun:
    """Return a run as a schedule with overlap="queue" makes it."""
    return new_run(unique="queued", key="k", join="wait", behind=True, args=args, **more)  # type: ignore[arg-type]


class OwnNeedContract(Staged):
    async def test_a_run_that_is_joined_does_not_wait_for_itself(self, stage: Stage) -> None:
        member = Member("group")
        first = new_run(unique="queued", key="k", member=member)
        await stage.put(first)
        again = new_run(unique="queued", key="k", member=member, needs=[first.id])
        assert (await stage.admit(again)).run == first.id
        assert (await stage.see(first)).needs == ()
        assert (await stage.take()).id == first.id


class StandBehindContract(Staged):
    """Ticks join a queued run that was never called; they wait for the end of one that was called."""

    @pytest.mark.parametrize(
        "outcome", [Failed(BOOM), Lost(), Paused(), Released(), Snoozed(60)], ids=lambda outcome: type(outcome).__name__
    )
    async def test_a_tick_waits_behind_one_that_was_tried(self, stage: Stage, outcome: Outcome) -> None:
        first, second, third = tick(), tick(NEWER), tick(b"3")
        run = await stage.running(first)
        if isinstance(outcome, Lost):
            stage.wait(LEASE + 1)
        if isinstance(outcome, Paused):
            await stage.pause(run)
        await stage.end(run, outcome)
        before = await stage.see(first)
        await stage.put(second)
        assert await stage.see(first) == replace(before, awaited=True)
        assert (await stage.see(second)).needs == (first.id,)
        assert (await stage.admit(third)).run == second.id, "the newest of those that were never called"
        await stage.resume(first)
        stage.wait(601)
        again = (await stage.claim("bob", free=5)).runs
        assert [(one.id, one.fence, one.args) for one in again] == [(first.id, 2, ARGS)]
        await stage.end(again[0], Succeeded())
        assert [(one.id, one.args) for one in (await stage.claim(free=5)).runs] == [(second.id, b"3")]

    async def test_a_tick_that_fails_does_not_give_way_to_the_one_behind_it(self, stage: Stage) -> None:
        first, second = tick(), tick(NEWER)
        run = await stage.running(first)
        await stage.put(second)
        for failures in (1, 2, 3):
            await stage.end(run, Failed(BOOM))
            seen = await stage.see(first)
            assert (seen.state, seen.failures, seen.args) == (State.QUEUED, failures, ARGS)
            stage.wait(601)
            (run,) = (await stage.claim(free=5)).runs
            assert run.id == first.id
        await stage.end(run, Succeeded())
        assert (await stage.take()).id == second.id

    async def test_a_submit_joins_the_one_that_stands_behind(self, stage: Stage) -> None:
        first, second = tick(), tick()
        await stage.end(await stage.running(first), Failed(BOOM))
        await stage.put(second)
        before = await stage.see(first)
        assert (await stage.admit(equal(NEWER))).run == second.id
        assert await stage.see(first) == before
        assert (await stage.see(second)).args == NEWER

    async def test_a_submit_joins_the_tried_one_when_nobody_stands_behind_it(self, stage: Stage) -> None:
        first, second = tick(), tick()
        await stage.end(await stage.running(first), Failed(BOOM))
        await stage.put(second)
        await stage.cancel(second)
        assert (await stage.admit(equal(NEWER))).run == first.id
        assert (await stage.see(first)).args == NEWER
        third = tick()
        await stage.put(third)
        assert (await stage.see(third)).needs == (first.id,)

    async def test_of_two_that_were_tried_one_goes_on(self, stage: Stage) -> None:
        """Two runs of the unique key run, and the run of a tick waits for both."""
        first, second, third = equal(), equal(NEWER), tick(b"3")
        one = await stage.running(first)
        await stage.put(second)
        two = await stage.take("bob")
        await stage.put(third)
        assert set((await stage.see(third)).needs) == {first.id, second.id}
        await stage.end(one, Failed(BOOM))
        await stage.end(two, Failed(BOOM))
        assert [run.state for run in await stage.find(first, second)] == [State.QUEUED, State.CANCELLED]
        assert (await stage.see(second)).reason is Reason.SUPERSEDED
        stage.wait(601)
        (run,) = (await stage.claim(free=5)).runs
        assert run.id == first.id
        await stage.end(run, Succeeded())
        assert (await stage.take()).id == third.id

    async def test_of_two_that_were_tried_one_goes_on_when_nobody_waits_behind_them(self, stage: Stage) -> None:
        first, second, third = equal(), equal(NEWER), tick(b"3")
        one = await stage.running(first)
        await stage.put(second)
        two = await stage.take("bob")
        await stage.put(third)
        await stage.end(one, Failed(BOOM))
        await stage.cancel(third)
        await stage.end(two, Failed(BOOM))
        assert (await stage.see(second)).reason is Reason.SUPERSEDED
        stage.wait(601)
        assert ids((await stage.claim(free=5)).runs) == [first.id]


class JoinedExpiryContract(Staged):
    @pytest.mark.parametrize(("join", "due_in"), [("keep", 100), ("push", 300), ("set", 300)])
    async def test_a_joining_expiry_counts_from_when_the_run_is_due(
        self, stage: Stage, join: Join, due_in: float
    ) -> None:
        first = equal(delay=100)
        await stage.put(first)
        await stage.admit(equal(NEWER, join, delay=300, expires_after=50))
        run = await stage.see(first)
        assert run.due_at == pytest.approx(run.created_at + due_in, abs=30)
        assert run.expires_at == after(run.due_at, 50)
        stage.wait(due_in + 1)
        assert (await stage.take()).id == first.id

    async def test_an_expiry_of_a_run_that_is_due_counts_from_now(self, stage: Stage) -> None:
        first = equal()
        await stage.put(first)
        stage.wait(1000)
        reply = await stage.store.put([equal(expires_after=50)])
        assert (await stage.see(first)).expires_at == after(reply.now, 50)

    async def test_an_instant_before_the_run_is_due_is_left_aside(self, stage: Stage) -> None:
        first = equal(delay=100, expires_after=900)
        await stage.put(first)
        before = await stage.see(first)
        await stage.admit(equal(NEWER, expires_at=before.due_at - 50))
        assert (await stage.see(first)).expires_at == before.expires_at
        await stage.admit(equal(NEWER, expires_at=before.due_at + 50))
        assert (await stage.see(first)).expires_at == before.due_at + 50

    @pytest.mark.parametrize(("join", "delay"), [("push", 500), ("set", 500), ("set", 5)])
    async def test_one_without_an_expiry_keeps_the_time_that_the_run_had(
        self, stage: Stage, join: Join, delay: float
    ) -> None:
        first = equal(delay=100, expires_after=50)
        await stage.put(first)
        await stage.admit(equal(NEWER, join, delay=delay))
        run = await stage.see(first)
        assert run.expires_at == pytest.approx(run.due_at + 50, abs=0.001)
        stage.wait(delay + 40)
        assert (await stage.take()).id == first.id

    async def test_who_rests_longer_expires_later(self, stage: Stage) -> None:
        """A run that waits behind another is due after the cooldown of its key, and its expiry moves with it."""
        touch = new_run(
            unique="queued", key="k", cooldowns=(Cooldown(0, 600),), behind=True, delay=100, expires_after=50
        )
        busy = await stage.running(new_run(unique="queued", key="k", cooldowns=(Cooldown(0, 600),)))
        await stage.put(touch)
        await stage.end(busy, Succeeded())
        run = await stage.see(touch)
        assert run.due_at == pytest.approx(await stage.now() + 600, abs=30)
        assert run.expires_at == pytest.approx(run.due_at + 50, abs=0.001)
        stage.wait(601)
        assert (await stage.take()).id == touch.id


class JoinedPriorityContract(Staged):
    @pytest.mark.parametrize(("first", "second", "wins"), [(0, 5, 5), (5, 0, 5), (-5, 0, 0), (-5, -9, -5)])
    @pytest.mark.parametrize("delay", [0, 100])
    async def test_the_higher_priority_wins(
        self, stage: Stage, first: int, second: int, wins: int, delay: float
    ) -> None:
        run, between = equal(priority=first, delay=delay), new_run(priority=3, delay=delay)
        await stage.put(between, run)
        await stage.admit(equal(NEWER, priority=second))
        assert (await stage.see(run)).priority == wins
        stage.wait(delay + 1)
        found = (await stage.claim(free=5)).runs
        assert ids(found) == (ids([run, between]) if wins > 3 else ids([between, run]))
        assert [one.priority for one in found if one.id == run.id] == [wins]

    async def test_a_paused_one_and_one_that_waits_take_it_too(self, stage: Stage) -> None:
        parent, paused = new_run("parent"), equal()
        waiting = replace(new_run(unique="queued", key="l"), needs=(parent.id,))
        await stage.put(parent, paused, waiting)
        await stage.pause(paused)
        await stage.admit(equal(NEWER, priority=7))
        await stage.admit(new_run(unique="queued", key="l", priority=8))
        assert [run.priority for run in await stage.find(paused, waiting)] == [7, 8]
        await stage.resume(paused)
        await stage.cancel(parent)
        other = new_run(priority=5)
        await stage.put(other)
        assert ids((await stage.claim(free=5)).runs) == ids([waiting, paused, other])

    async def test_a_parked_one_overtakes_those_of_its_key(self, stage: Stage) -> None:
        await stage.declare(Limit(per_key=1))
        busy = await stage.running(new_run(key="k"))
        first, second = new_run(key="k"), equal()
        await stage.put(first, second)
        assert (await stage.claim("bob", free=5)).runs == []
        await stage.admit(equal(NEWER, priority=5))
        assert (await stage.claim("bob", free=5)).runs == []
        await stage.end(busy, Succeeded())
        assert ids((await stage.claim("bob", free=5)).runs) == [second.id]
        assert len((await stage.store.runs(RunQuery(state=[State.QUEUED], task=GREET))).runs) == 1


class TouchesContract(Staged):
    async def test_a_run_knows_how_often_and_when_it_was_asked_for(self, stage: Stage) -> None:
        first = equal(delay=100)
        await stage.put(first)
        made = await stage.see(first)
        assert (made.touches, made.touched_at) == (1, made.created_at)
        for touches, args in ((2, ARGS), (3, NEWER), (4, LONG)):
            stage.wait(5)
            reply = await stage.store.put([equal(args)])
            run = await stage.see(first)
            assert (run.touches, run.touched_at, run.args) == (touches, reply.now, args)
        stage.wait(100)
        before, run = run, await stage.take()
        for _ in range(2):
            assert (run.touches, run.touched_at) == (before.touches, before.touched_at)
            await stage.end(run, Failed(BOOM))
            stage.wait(601)
            run = await stage.take()
        await stage.end(run, Succeeded(b"1"))
        ended = await stage.see(first)
        assert (ended.touches, ended.touched_at, ended.result) == (4, before.touched_at, b"1")

    async def test_one_that_never_starts_keeps_them(self, stage: Stage) -> None:
        first = equal()
        await stage.put(first)
        await stage.admit(equal(NEWER))
        await stage.pause(first)
        assert (await stage.see(first)).touches == 2
        await stage.resume(first)
        await stage.cancel(first)
        assert ((await stage.see(first)).touches, (await stage.see(first)).state) == (2, State.CANCELLED)

    async def test_a_refusal_and_a_resend_are_no_touches(self, stage: Stage) -> None:
        first = equal()
        for _ in range(2):
            await stage.put(first)
        await stage.admit(equal(NEWER, "refuse"))
        assert (await stage.see(first)).touches == 1
