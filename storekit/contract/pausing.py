"""pause, resume and drop of runs and of tasks; and which of several commands wins."""

import pytest
from msgspec.structs import replace

from rota.domain.decision import DecisionCount, Reason
from rota.domain.lifecycle import Cancelled, Failed, Interrupted, Lost, Outcome, Paused, Released, Snoozed, Succeeded
from rota.domain.policy import Limit
from rota.domain.run import State
from rota.domain.settlement import Verdict
from rota.domain.spec import TaskSpec
from rota.store import Command, Depth, Renewal, RowQuery, Scope
from storekit.contract.stage import BOOM, GREET, LEASE, Stage, Staged, ids, new_run


class PauseContract(Staged):
    async def test_a_queued_run_is_held_at_once_and_keeps_its_time(self, stage: Stage) -> None:
        new = new_run(delay=60)
        await stage.put(new)
        queued = await stage.see(new)
        assert await stage.pause(new, "wait a little") == 1
        assert await stage.see(new) == replace(queued, state=State.PAUSED, note="wait a little")
        assert (await stage.store.depths()).items == [Depth(GREET, 0, 0, 1)]
        stage.wait(61)
        claim = await stage.claim()
        assert (claim.runs, claim.wake) == ([], None)
        assert await stage.resume(new, "go on") == 1
        assert await stage.see(new) == replace(queued, note="go on")
        assert (await stage.take()).id == new.id

    async def test_a_resumed_run_hints_an_idle_worker(self, stage: Stage) -> None:
        new = new_run()
        await stage.put(new)
        await stage.pause(new)
        await stage.claim()
        async with stage.listening() as ear:
            await stage.resume(new)
            heard = await ear.all()
        assert "ada" in heard.workers
        assert new.id in heard.runs

    async def test_a_running_run_is_told_and_hinted(self, stage: Stage) -> None:
        run = await stage.running()
        async with stage.listening() as ear:
            assert await stage.pause(run, "later") == 1
            assert run.id in await ear.runs()
        assert await stage.see(run) == replace(run, pause_requested=True, note="later")
        for _ in range(2):
            assert await stage.renew(run) is Renewal.PAUSE
        assert await stage.end(run, Paused()) is Verdict.APPLIED
        paused = await stage.see(run)
        assert (paused.state, paused.pause_requested, paused.due_at, paused.worker) == (
            State.PAUSED,
            False,
            run.due_at,
            None,
        )
        assert (paused.failures, paused.losses, paused.finished_at) == (0, 0, None)
        assert paused.attempts[-1].outcome == "paused"
        assert (await stage.claim()).runs == []
        await stage.resume(run)
        again = await stage.take()
        assert (again.fence, again.pause_requested) == (2, False)

    async def test_a_finish_beats_the_command_to_pause(self, stage: Stage) -> None:
        run = await stage.running()
        await stage.pause(run)
        await stage.end(run, Succeeded(b"1"))
        ended = await stage.see(run)
        assert ended.state is State.SUCCEEDED
        assert [await stage.pause(run), await stage.resume(run)] == [0, 0]
        assert await stage.see(run) == ended

    @pytest.mark.parametrize("outcome", [Released(), Failed(BOOM), Snoozed(60), Interrupted(), Lost()])
    async def test_a_requeue_honours_the_command_to_pause(self, stage: Stage, outcome: Outcome) -> None:
        run = await stage.running()
        stage.wait(LEASE + 1)
        await stage.pause(run)
        assert await stage.end(run, outcome) is Verdict.APPLIED
        assert (await stage.see(run)).state is State.PAUSED
        assert await stage.end(run, outcome) is Verdict.ALREADY
        stage.wait(3600)
        assert (await stage.claim()).runs == []

    async def test_a_resume_before_the_worker_notices_takes_the_command_back(self, stage: Stage) -> None:
        run = await stage.running()
        await stage.pause(run)
        assert await stage.resume(run) == 1
        assert await stage.renew(run) is Renewal.OK
        assert await stage.end(run, Released()) is Verdict.APPLIED
        assert (await stage.see(run)).state is State.QUEUED

    async def test_a_resume_after_the_worker_noticed_is_not_lost(self, stage: Stage) -> None:
        """The handler is stopping, and the last command was resume."""
        run = await stage.running()
        await stage.pause(run)
        assert await stage.renew(run) is Renewal.PAUSE
        assert await stage.resume(run) == 1
        await stage.end(run, Paused())
        assert (await stage.take()).id == run.id

    async def test_a_cancel_beats_a_pause_whichever_came_first(self, stage: Stage) -> None:
        for commands in ((Command.PAUSE, Command.CANCEL), (Command.CANCEL, Command.PAUSE)):
            run = await stage.running()
            for command in commands:
                await stage.store.control(command, [run.id])
            assert await stage.renew(run) is Renewal.CANCEL
            await stage.end(run, Released())
            assert (await stage.see(run)).state is State.CANCELLED

    async def test_a_cancel_ends_a_paused_run(self, stage: Stage) -> None:
        new = new_run()
        await stage.put(new)
        await stage.pause(new)
        assert await stage.cancel(new, "no more")
        ended = await stage.see(new)
        assert (ended.state, ended.reason, ended.note) == (State.CANCELLED, Reason.CANCELLED, "no more")
        assert await stage.resume(new) == 0
        assert (await stage.claim()).runs == []

    async def test_commands_that_change_nothing_are_answered_so(self, stage: Stage) -> None:
        queued, paused, ended = new_run(delay=60), new_run(delay=60), await stage.ended()
        await stage.put(queued, paused)
        await stage.pause(paused, "first")
        before = await stage.find(queued, paused, ended)
        everyone = [queued.id, "never-put", paused.id, ended.id]
        assert (await stage.store.control(Command.RESUME, [queued.id, "never-put", ended.id])).items == [0, 0, 0]
        assert (await stage.store.control(Command.PAUSE, ["never-put", paused.id, ended.id], "second")).items == [
            0,
            0,
            0,
        ]
        assert await stage.find(queued, paused, ended) == before
        assert (await stage.store.control(Command.PAUSE, everyone)).items == [1, 0, 0, 0]

    async def test_a_paused_run_does_not_expire_until_it_is_resumed(self, stage: Stage) -> None:
        new = new_run(expires_after=60)
        await stage.put(new)
        await stage.pause(new)
        stage.wait(61)
        await stage.claim()
        assert (await stage.see(new)).state is State.PAUSED
        await stage.resume(new)
        assert (await stage.claim()).runs == []
        assert (await stage.see(new)).reason is Reason.EXPIRED

    async def test_a_drop_ends_what_waits_and_leaves_alone_what_runs(self, stage: Stage) -> None:
        run, queued, paused = await stage.running(), new_run(), new_run()
        await stage.put(queued, paused)
        await stage.pause(paused)
        reply = await stage.store.control(Command.DROP, [run.id, queued.id, paused.id, "never-put"], "tidy")
        assert reply.items == [0, 1, 1, 0]
        assert await stage.see(run) == run
        for seen in await stage.find(queued, paused):
            assert (seen.state, seen.reason, seen.note) == (State.CANCELLED, Reason.DROPPED, "tidy")
            assert seen.finished_at == reply.now


class KeyPauseContract(Staged):
    """Runs of a paused key do not start; the task goes on with its other keys."""

    async def control_keys(self, stage: Stage, command: Command, *keys: str) -> list[int]:
        subjects = [f"{GREET} {key}" for key in keys]
        return (await stage.store.control(command, subjects, "a note", "eve", Scope.KEYS)).items

    async def spec_of_greet(self, stage: Stage) -> TaskSpec:
        (spec,) = (await stage.store.rows(TaskSpec, RowQuery(names=[GREET]))).items
        return spec

    @pytest.mark.parametrize("limit", [None, Limit(per_key=2), Limit(2)])
    async def test_a_paused_key_waits_and_the_others_go_on(self, stage: Stage, limit: Limit | None) -> None:
        await stage.store.declare([TaskSpec(GREET, limit=limit)])
        bad, good, plain = new_run(key="bad key"), new_run(key="good"), new_run()
        await stage.put(bad)
        assert await self.control_keys(stage, Command.PAUSE, "bad key", "other") == [1, 1]
        assert await self.control_keys(stage, Command.PAUSE, "bad key") == [0]
        await stage.put(good, plain, later := new_run(key="bad key"))
        claim = await stage.claim(free=9)
        assert (sorted(ids(claim.runs)), claim.wake) == (sorted([good.id, plain.id]), None)
        for run in claim.runs:
            await stage.end(run, Succeeded())
        assert (await stage.claim(free=9)).runs == []
        assert (await stage.see(bad)).state is State.QUEUED
        assert await self.control_keys(stage, Command.RESUME, "bad key", "never") == [1, 0]
        assert (await self.spec_of_greet(stage)).paused_keys == ("other",)
        assert ids((await stage.claim(free=9)).runs) == ids([bad, later])
        assert await self.control_keys(stage, Command.RESUME, "other") == [1]
        assert (await self.spec_of_greet(stage)) == TaskSpec(GREET, limit=limit)

    async def test_a_pause_of_a_key_outlives_a_declare_and_needs_none(self, stage: Stage) -> None:
        assert await self.control_keys(stage, Command.PAUSE, "k") == [1]
        await stage.store.declare([TaskSpec(GREET, description="new")])
        assert await self.spec_of_greet(stage) == TaskSpec(GREET, description="new", paused_keys=("k",))
        await stage.put(new_run(key="k"))
        assert (await stage.claim()).runs == []
        await self.control_keys(stage, Command.RESUME, "k")
        assert len((await stage.claim()).runs) == 1

    async def test_a_resumed_key_wakes_a_worker(self, stage: Stage) -> None:
        await self.control_keys(stage, Command.PAUSE, "k")
        await stage.put(new_run(key="k"))
        await stage.claim()
        async with stage.listening() as ear:
            await self.control_keys(stage, Command.RESUME, "k")
            heard = await ear.all()
        assert "ada" in heard.workers

    async def test_a_lone_run_of_a_paused_key_is_handed_to_nobody(self, stage: Stage) -> None:
        await self.control_keys(stage, Command.PAUSE, "k")
        await stage.claim()
        await stage.put(new := new_run(key="k"))
        assert (await stage.see(new)).state is State.QUEUED

    async def test_the_decision_names_the_key_and_who_paused_it(self, stage: Stage) -> None:
        await self.control_keys(stage, Command.PAUSE, "k")
        (row,) = (await stage.store.rows(DecisionCount, RowQuery(task=GREET, key="k"))).items
        assert (row.reason, row.note, row.by, row.run) == (Reason.PAUSED, "a note", "eve", None)

    async def test_a_thousand_keys_are_the_most(self, stage: Stage) -> None:
        assert sum(await self.control_keys(stage, Command.PAUSE, *map(str, range(1001)))) == 1000
        assert await self.control_keys(stage, Command.PAUSE, "more") == [0]


class TaskCommandContract(Staged):
    async def control(self, stage: Stage, command: Command, *tasks: str) -> list[int]:
        return (await stage.store.control(command, tasks or [GREET], of=Scope.TASKS)).items

    async def test_a_paused_task_is_passed_over_and_still_takes_runs(self, stage: Stage) -> None:
        first, other = new_run(), new_run("other")
        await stage.put(first, other)
        assert await self.control(stage, Command.PAUSE) == [1]
        second = new_run()
        await stage.put(second, new_run(delay=60))
        claim = await stage.claim(free=9, tasks=[GREET, "other"])
        assert ids(claim.runs) == [other.id]
        assert claim.wake is None
        assert (await stage.see(first)).state is State.QUEUED
        assert await self.control(stage, Command.RESUME) == [1]
        assert ids((await stage.claim(free=9)).runs) == ids([first, second])

    async def test_what_runs_of_a_paused_task_runs_on(self, stage: Stage) -> None:
        run = await stage.running()
        await self.control(stage, Command.PAUSE)
        assert await stage.renew(run) is Renewal.OK
        await stage.end(run, Released())
        assert (await stage.see(run)).state is State.QUEUED
        assert (await stage.claim()).runs == []

    async def test_the_pause_of_a_task_is_asked_for_once(self, stage: Stage) -> None:
        assert await self.control(stage, Command.RESUME) == [0]
        assert await self.control(stage, Command.PAUSE, GREET, "other", GREET) == [1, 1, 0]
        assert await self.control(stage, Command.RESUME, "other", "never") == [1, 0]

    async def test_a_pause_outlives_a_new_declare(self, stage: Stage) -> None:
        await self.control(stage, Command.PAUSE)
        await stage.declare(Limit(5))
        assert (await stage.store.rows(TaskSpec)).items == [TaskSpec(GREET, limit=Limit(5), paused=True)]
        await stage.put(new_run())
        assert (await stage.claim()).runs == []
        assert not await stage.declare(Limit(5))
        await self.control(stage, Command.RESUME)
        assert (await stage.store.rows(TaskSpec)).items == [TaskSpec(GREET, limit=Limit(5))]
        assert len((await stage.claim()).runs) == 1

    async def test_a_declare_cannot_pause_a_task(self, stage: Stage) -> None:
        await stage.store.declare([TaskSpec(GREET, paused=True)])
        await stage.put(new_run())
        assert len((await stage.claim()).runs) == 1

    async def test_a_resumed_task_hints_an_idle_worker(self, stage: Stage) -> None:
        await self.control(stage, Command.PAUSE)
        await stage.put(new_run())
        await stage.claim()
        async with stage.listening() as ear:
            await self.control(stage, Command.RESUME)
            assert await ear.workers() == {"ada"}

    async def test_a_run_and_its_task_are_paused_and_resumed_each_by_itself(self, stage: Stage) -> None:
        new = new_run()
        await stage.put(new)
        await stage.pause(new)
        await self.control(stage, Command.PAUSE)
        await stage.resume(new)
        assert (await stage.claim()).runs == []
        await stage.pause(new)
        await self.control(stage, Command.RESUME)
        assert (await stage.claim()).runs == []
        await stage.resume(new)
        assert (await stage.take()).id == new.id

    @pytest.mark.parametrize("command", [Command.DROP, Command.CANCEL])
    async def test_the_waiting_runs_of_a_task_are_dropped_and_what_runs_is_left_alone(
        self, stage: Stage, command: Command
    ) -> None:
        await stage.declare(Limit(per_key=1))
        run, other = await stage.running(new_run(key="k")), new_run("other")
        paused = new_run()
        waiting = [new_run(key="k"), new_run(delay=60), new_run(priority=5, key="l"), paused]
        await stage.put(*waiting, other)
        await stage.pause(paused)
        reply = await stage.store.control(command, [GREET], "tidy", of=Scope.TASKS)
        assert reply.items == [4]
        for seen in await stage.find(*waiting):
            assert (seen.state, seen.reason, seen.note) == (State.CANCELLED, Reason.DROPPED, "tidy")
        assert await stage.see(run) == run
        assert (await stage.see(other)).state is State.QUEUED
        assert await self.control(stage, command) == [0]
        await stage.end(run, Cancelled())
        assert (await stage.claim(free=9)).runs == []

    async def test_a_large_task_is_dropped_in_steps_until_nothing_waits(self, stage: Stage) -> None:
        total = 0
        for _ in range(3):
            await stage.put(*(new_run(delay=3600) for _ in range(4000)))
        for _ in range(100):
            (dropped,) = await self.control(stage, Command.DROP)
            total += dropped
            assert sum(depth.queued for depth in (await stage.store.depths()).items) == 12_000 - total
            if not dropped:
                break
        assert total == 12_000
        assert (await stage.store.depths()).items == []


class PauseEndContract(Staged):
    """The pause of a task may end by itself, by the store's clock."""

    async def pause(self, stage: Stage, until: float | None) -> int:
        (changed,) = (await stage.store.control(Command.PAUSE, [GREET], "disk", of=Scope.TASKS, until=until)).items
        return changed

    async def spec(self, stage: Stage) -> TaskSpec:
        (spec,) = (await stage.store.rows(TaskSpec, RowQuery(names=[GREET]))).items
        return spec

    async def test_a_pause_ends_by_the_clock_of_the_store(self, stage: Stage) -> None:
        end = await stage.now() + 60
        assert await self.pause(stage, end) == 1
        new = new_run()
        await stage.put(new)
        claim = await stage.claim()
        assert claim.runs == []
        assert claim.wake == pytest.approx(60, abs=30), "the worker sleeps until then"
        assert await self.spec(stage) == TaskSpec(GREET, paused=True, paused_until=end)
        stage.wait(61)
        assert await self.spec(stage) == TaskSpec(GREET)
        assert ids((await stage.claim()).runs) == [new.id]
        (unpaused,) = (await stage.store.control(Command.RESUME, [GREET], of=Scope.TASKS)).items
        assert unpaused == 0, "it was over"

    async def test_a_later_pause_moves_the_end_or_takes_it_away(self, stage: Stage) -> None:
        end = await stage.now() + 60
        assert [await self.pause(stage, end), await self.pause(stage, end)] == [1, 0]
        assert await self.pause(stage, end + 60) == 1
        stage.wait(61)
        assert (await self.spec(stage)).paused_until == end + 60
        assert await self.pause(stage, None) == 1
        assert await self.pause(stage, None) == 0
        stage.wait(120)
        assert await self.spec(stage) == TaskSpec(GREET, paused=True)

    async def test_a_pause_that_would_be_over_changes_nothing(self, stage: Stage) -> None:
        assert await self.pause(stage, await stage.now() - 1) == 0
        assert await self.pause(stage, None) == 1
        assert await self.pause(stage, await stage.now() - 1) == 0
        assert (await self.spec(stage)).paused

    async def test_a_resume_forgets_the_end_and_a_declare_keeps_it(self, stage: Stage) -> None:
        end = await stage.now() + 60
        await self.pause(stage, end)
        await stage.declare(Limit(5))
        assert await self.spec(stage) == TaskSpec(GREET, limit=Limit(5), paused=True, paused_until=end)
        assert (await stage.store.control(Command.RESUME, [GREET], of=Scope.TASKS)).items == [1]
        assert await self.pause(stage, None) == 1
        stage.wait(61)
        assert (await self.spec(stage)).paused

    async def test_no_run_is_handed_over_until_the_end(self, stage: Stage) -> None:
        await self.pause(stage, await stage.now() + 60)
        await stage.claim("ada", ready=True)
        new = new_run()
        await stage.put(new)
        assert (await stage.see(new)).state is State.QUEUED
