"""Callbacks: runs that the store puts in the very transaction that makes a run final, once."""

import pytest
from msgspec.structs import replace

from rota.domain.ended import Ended, ending_of, with_callbacks
from rota.domain.lifecycle import Discarded, Failed, Lost, Outcome, Released, Succeeded, settlement_of
from rota.domain.policy import Limit, Policy
from rota.domain.run import Callback, NewRun, Run, State
from rota.domain.settlement import Verdict
from rota.domain.spec import TaskSpec
from rota.store import ID_MEMORY, Command, EventQuery, Retention, RunQuery, Scope
from storekit.contract.stage import BOOM, GREET, Stage, Staged, new_run

GOOD, BAD, GONE = "good", "bad", "gone"
ON_END = (
    Callback(State.SUCCEEDED, GOOD, Policy(timeout=7)),
    Callback(State.FAILED, BAD, priority=5),
    Callback(State.CANCELLED, GONE, queue="aside"),
)


def calling(**more: object) -> NewRun:
    """Return a run with a callback for every final state."""
    return with_callbacks(new_run(headers={"tenant": "acme"}, **more), ON_END)  # type: ignore[arg-type]


class CallbackContract(Staged):
    async def called(self, stage: Stage) -> dict[str, Run]:
        """Return the runs of the callbacks by their tasks."""
        found = (await stage.store.runs(RunQuery(task=[GOOD, BAD, GONE]))).runs
        assert len({run.task for run in found}) == len(found)
        return {run.task: run for run in found}

    @pytest.mark.parametrize(
        ("outcome", "task"),
        [(Succeeded(b"7"), GOOD), (Failed(BOOM), BAD), (Discarded(BOOM), BAD)],
    )
    async def test_the_end_of_a_call_puts_its_callback(self, stage: Stage, outcome: Outcome, task: str) -> None:
        run = await stage.running(calling(policy=Policy()))
        assert await self.called(stage) == {}
        settlement = settlement_of(run, outcome)
        assert await stage.settle(settlement) is Verdict.APPLIED
        found = await self.called(stage)
        assert list(found) == [task]
        made, ended = found[task], await stage.see(run)
        assert (made.state, made.due_at, made.headers) == (State.QUEUED, ended.finished_at, {"tenant": "acme"})
        assert (made.origin.kind, made.origin.of) == ("ended", run.id)
        result = 7 if ended.state is State.SUCCEEDED else None
        ending = ending_of(made.args, ended)
        assert ending == Ended(run.id, GREET, None, ended.state, ended.reason, ended.error, result)
        assert ending_of(made.args, None) == Ended(run.id, GREET, None, ended.state)
        assert await stage.settle(settlement) is Verdict.ALREADY
        assert await self.called(stage) == found

    async def test_events_tell_of_the_run_of_a_callback(self, stage: Stage) -> None:
        cursor = (await stage.store.events(EventQuery())).cursor
        run = await stage.ended(calling())
        made = (await self.called(stage))[GOOD]
        found = (await stage.store.events(EventQuery(after=cursor))).events
        assert [(each.name, each.reason, each.state) for each in found if each.id == made.id] == [
            ("queued", "accepted", "queued")
        ]
        assert [each.name for each in found if each.id == run.id] == ["queued", "started", "succeeded"]

    async def test_a_worker_of_all_queues_takes_a_callback_of_any_queue(self, stage: Stage) -> None:
        await stage.put(run := calling())
        await stage.store.control(Command.CANCEL, [run.id])
        assert [run.queue for run in (await stage.claim("ada", 1, tasks=[GONE])).runs] == ["aside"]

    async def test_the_claim_that_ends_an_expired_run_may_take_its_callback(self, stage: Stage) -> None:
        """Also if a limit decides when runs of that task start."""
        await stage.store.declare([TaskSpec(GONE, limit=Limit(1))])
        await stage.put(replace(calling(), expires_after=5.0))
        stage.wait(6)
        assert [run.task for run in (await stage.claim("ada", 1, tasks=[GREET, GONE])).runs] == [GONE]

    async def test_a_callback_is_claimed_and_ended_like_any_run(self, stage: Stage) -> None:
        await stage.ended(calling())
        claim = await stage.claim("bob", 5, tasks=[GOOD, BAD])
        assert [(run.task, run.policy.timeout) for run in claim.runs] == [(GOOD, 7)]
        assert await stage.end(claim.runs[0], Succeeded()) is Verdict.APPLIED
        assert [depth.task for depth in (await stage.store.depths()).items] == []

    async def test_a_callback_has_its_priority_and_its_queue(self, stage: Stage) -> None:
        await stage.ended(calling(policy=Policy()), Failed(BOOM))
        await stage.put(waiting := calling())
        await stage.cancel(waiting)
        found = await self.called(stage)
        assert (found[BAD].priority, found[BAD].queue) == (5, "default")
        assert (found[GONE].priority, found[GONE].queue) == (0, "aside")

    async def test_a_run_that_is_queued_again_puts_no_callback(self, stage: Stage) -> None:
        run = await stage.running(calling())
        await stage.end(run, Failed(BOOM))
        await stage.end(await self.retaken(stage), Released())
        assert await self.called(stage) == {}
        await stage.end(await self.retaken(stage), Succeeded())
        assert list(await self.called(stage)) == [GOOD]

    async def retaken(self, stage: Stage) -> Run:
        stage.wait(3600)
        return await stage.take()

    async def test_a_lost_run_puts_the_callback_of_a_failure(self, stage: Stage) -> None:
        run = await stage.lapsed(calling(policy=Policy(lost="fail")))
        assert await stage.end(run, Lost()) is Verdict.APPLIED
        assert await stage.end(run, Succeeded()) is Verdict.STALE
        assert list(await self.called(stage)) == [BAD]

    async def test_a_cancel_puts_the_callback_whether_the_run_waits_or_runs(self, stage: Stage) -> None:
        await stage.put(waiting := calling())
        assert await stage.cancel(waiting, "no")
        assert not await stage.cancel(waiting, "no")
        assert list(await self.called(stage)) == [GONE]
        running = await stage.running(calling())
        await stage.cancel(running)
        await stage.end(running, Released())
        assert len((await stage.store.runs(RunQuery(task=GONE))).runs) == 2

    async def test_a_drop_of_the_task_puts_a_callback_for_each_run(self, stage: Stage) -> None:
        await stage.put(*(calling() for _ in range(3)), new_run())
        assert (await stage.store.control(Command.DROP, [GREET], of=Scope.TASKS)).items == [4]
        assert len((await stage.store.runs(RunQuery(task=GONE))).runs) == 3

    @pytest.mark.parametrize("verb", ["sweep", "claim"])
    async def test_a_run_that_expires_puts_its_callback(self, stage: Stage, verb: str) -> None:
        await stage.put(calling(expires_after=5))
        stage.wait(6)
        for _ in range(2):
            await (stage.store.sweep(Retention()) if verb == "sweep" else stage.claim())
        assert list(await self.called(stage)) == [GONE]

    async def test_a_put_that_is_sent_again_brings_no_callback_back(self, stage: Stage) -> None:
        new = calling()
        await stage.put(new)
        await stage.put(new)
        await stage.cancel(new)
        await stage.put(new)
        assert list(await self.called(stage)) == [GONE]
        (made,) = (await self.called(stage)).values()
        await stage.cancel(made)
        stage.wait(ID_MEMORY + 1)
        await stage.store.sweep(Retention(succeeded=0, failed=0, most=0, least=0))
        assert (await stage.store.runs(RunQuery())).runs == []

    async def test_callbacks_go_with_marks_needs_and_limits(self, stage: Stage) -> None:
        first = with_callbacks(new_run(key="k", unique="done"), ON_END)
        behind = with_callbacks(new_run(needs=[first.id]), ON_END)
        await stage.put(first, behind)
        await stage.end(await stage.take(), Succeeded())
        assert list(await self.called(stage)) == [GOOD]
        await stage.end(await stage.take(), Succeeded())
        assert len((await stage.store.runs(RunQuery(task=GOOD))).runs) == 2

    async def test_an_idle_worker_hears_of_a_callback(self, stage: Stage) -> None:
        run = await stage.running(calling())
        await stage.claim("idle", tasks=[GOOD])
        async with stage.listening() as ear:
            await stage.end(run, Succeeded())
            assert "idle" in await ear.workers()
