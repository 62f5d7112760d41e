"""unique and join: which run refuses a new one, and how a new run changes a queued one."""

import asyncio

import pytest

from rota.domain.decision import Decision, Reason
from rota.domain.guards import Cooldown, Join, Unique
from rota.domain.lifecycle import Failed, Lost, Outcome, Paused, Released, Snoozed, Succeeded
from rota.domain.policy import Policy
from rota.domain.run import NewRun, State, after
from rota.store import Backend, RunQuery
from storekit.contract.stage import ARGS, BOOM, LEASE, Stage, Staged, ids, new_run

NEWER = b'{"name":"Bob"}'
ONCE = Policy()
SCALE: tuple[Unique, ...] = ("queued", "active", "done")


def equal(unique: Unique = "queued", join: Join = "keep", **more: float) -> NewRun:
    """Return a run with the key of all others made here, and with other arguments than the first run."""
    return new_run(unique=unique, join=join, key="k", args=NEWER, **more)  # type: ignore[arg-type]


class UniqueContract(Staged):
    async def first(self, stage: Stage, unique: Unique = "queued", delay: float = 100) -> NewRun:
        first = new_run(unique=unique, key="k", delay=delay)
        await stage.put(first)
        return first

    @pytest.mark.parametrize("unique", SCALE)
    @pytest.mark.parametrize("join", ["keep", "push", "set"])
    async def test_meeting_a_queued_equal_joins_it_with_the_newest_arguments(
        self, stage: Stage, unique: Unique, join: Join
    ) -> None:
        first = await self.first(stage, unique)
        before = await stage.see(first)
        newer = equal(unique, join, delay=500)
        assert await stage.admit(newer) == Decision(first.id, Reason.JOINED)
        assert await stage.find(newer) == []
        joined = await stage.see(first)
        assert (joined.args, joined.body) == (NEWER, newer.body)
        assert (joined.state, joined.fence, joined.created_at) == (State.QUEUED, 0, before.created_at)
        stage.wait(501)
        assert (await stage.take()).args == NEWER

    @pytest.mark.parametrize("unique", SCALE)
    async def test_who_asks_to_be_refused_is_refused(self, stage: Stage, unique: Unique) -> None:
        first = await self.first(stage, unique)
        before = await stage.see(first)
        assert await stage.admit(equal(unique, "refuse")) == Decision(first.id, Reason.ALREADY_QUEUED)
        assert await stage.see(first) == before

    @pytest.mark.parametrize(
        ("join", "delays", "moved_to"),
        [
            ("keep", (500,), 100),
            ("keep", (50,), 100),
            ("push", (500,), 500),
            ("push", (50,), 100),
            ("push", (300, 200), 300),
            ("set", (500,), 500),
            ("set", (50,), 50),
            ("set", (500, 50), 50),
        ],
    )
    async def test_the_due_time_moves_as_the_newcomer_asks(
        self, stage: Stage, join: Join, delays: tuple[float, ...], moved_to: float
    ) -> None:
        first = await self.first(stage)
        for delay in delays:
            assert (await stage.admit(equal(join=join, delay=delay))).run == first.id
        run = await stage.see(first)
        assert run.created_at + moved_to <= run.due_at <= after(await stage.now(), moved_to)
        stage.wait(moved_to - 40)
        assert (await stage.claim()).runs == []
        stage.wait(60)
        assert (await stage.take()).id == first.id

    async def test_a_push_ends_at_the_longest_wait_from_the_first_arrival(self, stage: Stage) -> None:
        first = await self.first(stage)
        for _ in range(6):
            stage.wait(50)
            newer = new_run(unique="queued", join="push", key="k", delay=100, max_wait=250)
            assert (await stage.admit(newer)).reason is Reason.JOINED
        run = await stage.see(first)
        assert run.due_at == run.created_at + 250

    async def test_a_run_that_is_set_to_now_is_due_at_once(self, stage: Stage) -> None:
        first = await self.first(stage, delay=3600)
        assert (await stage.claim()).runs == []
        async with stage.listening() as ear:
            assert await stage.admit(equal(join="set"))
            assert await ear.workers() == {"ada"}
        assert (await stage.take()).id == first.id

    async def test_a_newer_expiry_replaces_the_older_one(self, stage: Stage) -> None:
        first = await self.first(stage)
        await stage.admit(equal(delay=10, expires_after=30))
        run = await stage.see(first)
        expires_at = after(run.due_at, 30)
        assert run.expires_at == expires_at
        await stage.admit(equal())
        assert (await stage.see(first)).expires_at == expires_at

    @pytest.mark.parametrize("join", ["keep", "push", "set"])
    async def test_a_paused_run_is_joined_and_stays_paused(self, stage: Stage, join: Join) -> None:
        first = await self.first(stage)
        await stage.pause(first)
        assert await stage.admit(equal(join=join, delay=200)) == Decision(first.id, Reason.JOINED)
        stage.wait(201)
        assert (await stage.claim()).runs == []
        assert (await stage.see(first)).state is State.PAUSED
        await stage.resume(first)
        assert (await stage.take()).args == NEWER

    async def test_a_retry_that_waits_is_joined(self, stage: Stage) -> None:
        run = await stage.running(new_run(unique="queued", key="k"))
        await stage.end(run, Failed(BOOM))
        assert await stage.admit(equal(join="set")) == Decision(run.id, Reason.JOINED)
        again = await stage.take()
        assert (again.args, again.failures, again.fence) == (NEWER, 0, 2)

    async def test_queued_may_wait_beside_a_running_one_but_only_once(self, stage: Stage) -> None:
        run = await stage.running(new_run(unique="queued", key="k"))
        second = equal()
        assert await stage.admit(second) == Decision(second.id, Reason.ACCEPTED)
        assert await stage.admit(equal()) == Decision(second.id, Reason.JOINED)
        assert await stage.see(run) == run

    @pytest.mark.parametrize("unique", ["active", "done"])
    async def test_active_and_done_are_refused_beside_a_running_one(self, stage: Stage, unique: Unique) -> None:
        run = await stage.running(new_run(unique=unique, key="k"))
        refused = equal(unique)
        assert await stage.admit(refused) == Decision(run.id, Reason.ALREADY_RUNNING)
        assert await stage.find(refused) == []
        assert await stage.see(run) == run

    @pytest.mark.parametrize("unique", SCALE)
    async def test_a_success_is_only_in_the_way_of_done(self, stage: Stage, unique: Unique) -> None:
        await stage.ended(new_run(unique=unique, key="k"))
        answer = (await stage.admit(equal(unique))).reason
        assert answer is (Reason.ALREADY_DONE if unique == "done" else Reason.ACCEPTED)

    async def test_a_failure_does_not_count_as_done(self, stage: Stage) -> None:
        failed = await stage.ended(new_run(unique="done", key="k", policy=ONCE), Failed(BOOM))
        assert failed.state is State.FAILED
        again = await stage.ended(new_run(unique="done", key="k"))
        assert again.state is State.SUCCEEDED
        assert (await stage.admit(equal("done"))).reason is Reason.ALREADY_DONE

    async def test_what_is_done_stays_done_after_a_later_failure(self, stage: Stage) -> None:
        await stage.ended(new_run(unique="done", key="k"))
        await stage.ended(new_run(key="k", policy=ONCE, cooldowns=(Cooldown(9, 1),)), Failed(BOOM))
        assert (await stage.admit(equal("done"))).reason is Reason.ALREADY_DONE

    async def test_other_keys_and_other_tasks_are_not_in_the_way(self, stage: Stage) -> None:
        await stage.ended(new_run(unique="done", key="k"))
        await stage.put(new_run(unique="done", key="l"), new_run("other", unique="done", key="k"))

    async def test_without_unique_nothing_is_judged(self, stage: Stage) -> None:
        await self.first(stage)
        plain = [new_run(key="k") for _ in range(3)]
        await stage.put(*plain)
        assert len((await stage.claim(free=5)).runs) == 3

    @pytest.mark.parametrize("unique", SCALE)
    async def test_what_is_over_is_in_nobodys_way(self, stage: Stage, unique: Unique) -> None:
        first = await self.first(stage, unique)
        await stage.cancel(first)
        second = equal(unique)
        assert await stage.admit(second) == Decision(second.id, Reason.ACCEPTED)

    @pytest.mark.parametrize("join", ["keep", "push", "set", "refuse"])
    async def test_nobody_joins_a_run_that_is_too_late_to_start(self, stage: Stage, join: Join) -> None:
        late = new_run(unique="queued", key="k", expires_after=60)
        await stage.put(late)
        stage.wait(61)
        newer = equal(join=join)
        assert await stage.admit(newer) == Decision(newer.id, Reason.ACCEPTED)
        assert (await stage.see(late)).reason is Reason.EXPIRED
        assert (await stage.take()).id == newer.id

    @pytest.mark.parametrize("unique", SCALE)
    async def test_the_same_id_answers_the_same_when_its_guard_would_now_refuse(
        self, stage: Stage, unique: Unique
    ) -> None:
        new = new_run(unique=unique, join="refuse", key="k")
        for _ in range(2):
            assert await stage.admit(new) == Decision(new.id, Reason.ACCEPTED)
        run = await stage.take()
        assert await stage.admit(new) == Decision(new.id, Reason.ACCEPTED)
        assert await stage.see(run) == run
        await stage.end(run, Succeeded())
        ended = await stage.see(run)
        assert await stage.admit(new) == Decision(new.id, Reason.ACCEPTED)
        assert await stage.see(run) == ended

    async def test_equals_in_one_batch_make_one_run(self, stage: Stage) -> None:
        first, second, other = equal(), new_run(unique="queued", key="k", args=b"[]"), new_run(unique="queued", key="l")
        reply = await stage.store.put([first, second, other])
        assert reply.items == [
            Decision(first.id, Reason.ACCEPTED),
            Decision(first.id, Reason.JOINED),
            Decision(other.id, Reason.ACCEPTED),
        ]
        assert ids((await stage.store.runs(RunQuery())).runs) == [other.id, first.id]
        assert (await stage.see(first)).args == b"[]"

    @pytest.mark.parametrize("unique", SCALE)
    async def test_of_twenty_equals_at_once_one_becomes_a_run(
        self, stage: Stage, backend: Backend, unique: Unique
    ) -> None:
        news = [equal(unique) for _ in range(20)]
        async with backend.open() as other:
            replies = await asyncio.gather(*((stage.store, other)[i % 2].put([new]) for i, new in enumerate(news)))
        answers = [reply.items[0] for reply in replies]
        (winner,) = (answer.run for answer in answers if answer.reason is Reason.ACCEPTED)
        assert {answer.run for answer in answers} == {winner}
        assert ids((await stage.store.runs(RunQuery())).runs) == [winner]


class SupersedeContract(Staged):
    @pytest.mark.parametrize(
        ("outcome", "delay", "due_in", "failures"),
        [
            (Failed(BOOM), 3600.0, 600, 1),
            (Failed(BOOM), 60.0, 60, 1),
            (Released(), 3600.0, 0, 0),
            (Snoozed(90), 3600.0, 90, 0),
        ],
    )
    @pytest.mark.parametrize("args", [NEWER, ARGS])
    async def test_a_requeue_gives_way_to_the_one_that_waits(
        self, stage: Stage, outcome: Outcome, delay: float, due_in: float, failures: int, args: bytes
    ) -> None:
        """A queued run with the same work takes the earlier due time and the failures; one with other work keeps its
        time."""
        if args != NEWER:
            due_in, failures = delay, 0
        run = await stage.running(new_run(unique="queued", key="k", args=args))
        waiting = equal(delay=delay)
        await stage.put(waiting)
        assert await stage.end(run, outcome) == "applied"
        gone, heir = await stage.find(run, waiting)
        assert (gone.state, gone.reason) == (State.CANCELLED, Reason.SUPERSEDED)
        assert gone.finished_at == gone.attempts[-1].ended_at
        assert (heir.state, heir.failures, heir.args, heir.fence) == (State.QUEUED, failures, NEWER, 0)
        assert heir.due_at == pytest.approx(await stage.now() + due_in, abs=30)
        assert await stage.end(run, outcome) == "already"
        stage.wait(due_in + 1)
        assert ids((await stage.claim(free=5)).runs) == [waiting.id]

    async def test_failures_are_not_added_up_but_kept(self, stage: Stage) -> None:
        run = await stage.running(equal())
        for _ in range(2):
            await stage.end(run, Failed(BOOM))
            stage.wait(601)
            run = await stage.take()
        waiting = equal()
        await stage.put(waiting)
        await stage.end(run, Failed(BOOM))
        assert (await stage.see(waiting)).failures == 3

    async def test_a_run_that_would_be_held_gives_way_as_well(self, stage: Stage) -> None:
        run = await stage.running(new_run(unique="queued", key="k"))
        waiting = equal()
        await stage.put(waiting)
        await stage.pause(run)
        await stage.end(run, Paused())
        assert (await stage.see(run)).reason is Reason.SUPERSEDED
        assert (await stage.take()).id == waiting.id

    async def test_a_paused_one_inherits_and_stays_paused(self, stage: Stage) -> None:
        run = await stage.running(equal())
        waiting = equal()
        await stage.put(waiting)
        await stage.pause(waiting)
        await stage.end(run, Failed(BOOM))
        gone, heir = await stage.find(run, waiting)
        assert (gone.reason, heir.state, heir.failures) == (Reason.SUPERSEDED, State.PAUSED, 1)

    async def test_a_finish_gives_way_to_nobody(self, stage: Stage) -> None:
        run = await stage.running(new_run(unique="queued", key="k"))
        waiting = equal()
        await stage.put(waiting)
        before = await stage.see(waiting)
        await stage.end(run, Succeeded(b"1"))
        assert (await stage.see(run)).state is State.SUCCEEDED
        assert await stage.see(waiting) == before

    async def test_nobody_gives_way_to_a_run_that_is_too_late_to_start(self, stage: Stage) -> None:
        run = await stage.running(new_run(unique="queued", key="k"))
        late = equal(expires_after=60)
        await stage.put(late)
        stage.wait(61)
        await stage.end(run, Released())
        assert (await stage.see(late)).reason is Reason.EXPIRED
        assert (await stage.take()).id == run.id

    async def test_the_heir_of_an_earlier_time_is_hinted(self, stage: Stage) -> None:
        run = await stage.running(equal())
        await stage.put(equal(delay=3600))
        await stage.claim("bob")
        async with stage.listening() as ear:
            await stage.end(run, Released())
            assert "bob" in await ear.workers()

    async def test_a_rescued_run_gives_way_as_well(self, stage: Stage) -> None:
        run = await stage.running(equal())
        waiting = equal(delay=3600)
        await stage.put(waiting)
        stage.wait(LEASE + 1)
        await stage.end(run, Lost())
        gone, heir = await stage.find(run, waiting)
        assert (gone.reason, gone.losses, heir.losses) == (Reason.SUPERSEDED, 1, 0)
        assert (await stage.take()).id == waiting.id
