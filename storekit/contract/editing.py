"""edit, and control with delete: people change queued runs, and delete ended ones."""

import asyncio

from msgspec.structs import replace

from rota.domain import codec
from rota.domain.decision import DecisionCount, Reason
from rota.domain.joins import REPLACED
from rota.domain.lifecycle import Failed, Succeeded
from rota.domain.policy import Limit, Policy
from rota.domain.run import Member, Origin, Run, State, after
from rota.store import ID_MEMORY, Command, Edited, MarkRow, Retention, RowQuery, RunEdit, RunQuery, Scope
from storekit.contract.stage import BOOM, STUBBORN, Stage, Staged, ids, new_run

OTHER = codec.encode(b'{"name":"Bob"}', Origin(), STUBBORN)
LONG = codec.encode(b'{"name":"' + b"x" * 5000 + b'"}', Origin(), STUBBORN)


async def edit(stage: Stage, *edits: RunEdit) -> list[Edited]:
    return (await stage.store.edit(edits, "because", "eve")).items


class EditContract(Staged):
    async def test_a_queued_run_gets_another_due_time(self, stage: Stage) -> None:
        new = new_run(delay=600, expires_after=60)
        await stage.put(new)
        before = await stage.see(new)
        now = await stage.now()
        assert (await stage.claim()).runs == []
        assert await edit(stage, RunEdit(run=new.id, due_at=now)) == [Edited.CHANGED]
        seen = await stage.see(new)
        assert seen == replace(before, due_at=after(now, 0), expires_at=after(now, 60))
        assert (await stage.take()).id == new.id

    async def test_a_due_run_is_put_off(self, stage: Stage) -> None:
        first, second = new_run(), new_run()
        await stage.put(first, second)
        later = await stage.now() + 100
        assert await edit(stage, RunEdit(run=first.id, due_at=later)) == [Edited.CHANGED]
        assert ids((await stage.claim(free=5)).runs) == [second.id]
        stage.wait(101)
        assert ids((await stage.claim(free=5)).runs) == [first.id]

    async def test_priority_moves_a_run_in_line(self, stage: Stage) -> None:
        news = [new_run(priority=5), new_run(), new_run(priority=9)]
        await stage.put(*news)
        assert await edit(stage, RunEdit(run=news[1].id, priority=7), RunEdit(run=news[2].id, priority=-3)) == [
            Edited.CHANGED,
            Edited.CHANGED,
        ]
        runs = [await stage.take() for _ in news]
        assert ids(runs) == [news[1].id, news[0].id, news[2].id]
        assert [run.priority for run in runs] == [7, 5, -3]

    async def test_a_run_expires_when_the_edit_says(self, stage: Stage) -> None:
        new = new_run()
        await stage.put(new)
        at = await stage.now() + 50
        assert await edit(stage, RunEdit(run=new.id, expires_at=at)) == [Edited.CHANGED]
        assert (await stage.see(new)).expires_at == after(at, 0)
        stage.wait(51)
        assert (await stage.claim()).runs == []
        await stage.store.sweep(Retention())
        assert (await stage.see(new)).reason is Reason.EXPIRED

    async def test_other_arguments_begin_afresh(self, stage: Stage) -> None:
        run = await stage.running()
        await stage.end(run, Failed(BOOM))
        tried = await stage.see(run)
        assert tried.failures == 1
        for body in (OTHER, LONG, OTHER):
            old = (await stage.see(run)).body
            assert await edit(stage, RunEdit(run=run.id, body=body, replaces=old)) == [Edited.CHANGED]
            seen = await stage.see(run)
            assert (seen.body, seen.failures, seen.error, seen.due_at) == (body, 0, None, tried.due_at)
            assert seen.attempts[-1].outcome == REPLACED
            assert (seen.touches, len(seen.attempts)) == (1, 2)
        stage.wait(601)
        assert (await stage.take()).args == b'{"name":"Bob"}'

    async def test_an_edit_of_arguments_that_have_changed_since_is_stale(self, stage: Stage) -> None:
        new = new_run()
        await stage.put(new)
        assert await edit(stage, RunEdit(run=new.id, body=LONG, replaces=OTHER, priority=3)) == [Edited.STALE]
        assert (await stage.see(new)).priority == 0
        assert await edit(stage, RunEdit(run=new.id, body=OTHER, replaces=new.body)) == [Edited.CHANGED]
        assert await edit(stage, RunEdit(run=new.id, body=OTHER, replaces=new.body)) == [Edited.UNCHANGED]

    async def test_the_same_edit_again_changes_nothing_more(self, stage: Stage) -> None:
        new = new_run()
        await stage.put(new)
        again = RunEdit(run=new.id, due_at=await stage.now() + 5, priority=2, body=OTHER, replaces=new.body)
        assert await edit(stage, again) == [Edited.CHANGED]
        seen = await stage.see(new)
        assert await edit(stage, again) == [Edited.UNCHANGED]
        assert await stage.see(new) == seen
        (row,) = (await stage.store.rows(DecisionCount, RowQuery(task="greet"))).items
        assert (row.reason, row.count, row.run, row.note, row.by) == (Reason.EDITED, 1, new.id, "because", "eve")

    async def test_only_queued_runs_are_edited(self, stage: Stage) -> None:
        ended, running = await stage.ended(), await stage.running()
        paused, late = new_run(), new_run(expires_after=5)
        await stage.put(paused, late)
        await stage.pause(paused)
        stage.wait(6)
        names = [ended.id, running.id, paused.id, late.id, "never", "a\x00b"]
        assert await edit(stage, *(RunEdit(run=id, priority=5) for id in names)) == [Edited.STALE] * len(names)
        assert (await stage.see(running)).priority == 0
        assert await edit(stage) == []

    async def test_a_run_that_waits_for_another_keeps_waiting(self, stage: Stage) -> None:
        first = new_run(id="first")
        second = new_run(id="second", needs=["first"])
        await stage.put(first, second)
        later = await stage.now() + 100
        assert await edit(stage, RunEdit(run="second", due_at=later, priority=3)) == [Edited.CHANGED]
        await stage.end(await stage.take(), Succeeded())
        assert (await stage.claim()).runs == []
        stage.wait(101)
        assert (await stage.take()).id == "second"

    async def test_a_run_that_is_put_off_lets_a_parked_run_of_its_key_start(self, stage: Stage) -> None:
        await stage.declare(limit=Limit(per_key=1))
        one, two, three = (new_run(key="k") for _ in range(3))
        await stage.put(one, two, three)
        running = await stage.take()
        assert (await stage.claim(free=5)).runs == []  # parks the others
        assert await edit(stage, RunEdit(run=three.id, priority=9)) == [Edited.CHANGED]
        assert await edit(stage, RunEdit(run=two.id, due_at=await stage.now() + 500)) == [Edited.CHANGED]
        await stage.end(running, Succeeded())
        assert ids((await stage.claim(free=5)).runs) == [three.id]

    async def test_an_earlier_time_wakes_an_idle_worker(self, stage: Stage) -> None:
        new = new_run(delay=600)
        await stage.put(new)
        await stage.claim("ada")
        async with stage.listening() as ear:
            await edit(stage, RunEdit(run=new.id, due_at=await stage.now()))
            hint = await ear.all()
        assert "ada" in hint.workers
        assert new.id in hint.runs

    async def test_an_edit_and_a_claim_at_once_agree(self, stage: Stage) -> None:
        for _ in range(5):
            new = new_run()
            await stage.put(new)
            later = await stage.now() + 500
            claim, answers = await asyncio.gather(
                stage.claim(free=1), edit(stage, RunEdit(run=new.id, due_at=later, priority=4))
            )
            seen = await stage.see(new)
            if answers == [Edited.CHANGED]:
                assert (ids(claim.runs), seen.state, seen.priority) == ([], State.QUEUED, 4)
                await stage.cancel(new)
            else:
                assert (ids(claim.runs), seen.state, seen.priority) == ([new.id], State.RUNNING, 0)
                await stage.end(claim.runs[0], Succeeded())


class DeleteContract(Staged):
    async def delete(self, stage: Stage, *names: str) -> list[int]:
        return (await stage.store.control(Command.DELETE, names, "old", "eve")).items

    async def test_an_ended_run_is_deleted_and_its_mark_stays(self, stage: Stage) -> None:
        group = Member("race@1", "today")
        run = await stage.ended(new_run(key="k", unique="done", member=group))
        failed = await stage.running(new_run(policy=Policy()))
        await stage.end(failed, Failed(BOOM))
        stage.wait(ID_MEMORY + 1)
        assert await self.delete(stage, run.id, failed.id) == [1, 1]
        assert await self.delete(stage, run.id, failed.id) == [0, 0]
        assert await self.left(stage) == []
        assert (await stage.store.runs(RunQuery(group="race@1"))).runs == []
        assert (await stage.store.runs(RunQuery(order="finished"))).runs == []
        (mark,) = (await stage.store.rows(MarkRow)).items
        assert (mark.task, mark.key) == ("greet", "k")
        counts = {(row.key, row.reason): row.count for row in (await stage.store.rows(DecisionCount)).items}
        assert counts["k", Reason.DELETED] == 1

    async def test_a_run_that_is_not_ended_or_ended_just_now_stays(self, stage: Stage) -> None:
        ended, running = await stage.ended(), await stage.running()
        queued, paused = new_run(), new_run()
        await stage.put(queued, paused)
        await stage.pause(paused)
        names = [ended.id, running.id, queued.id, paused.id]
        assert await self.delete(stage, *names, "never") == [0] * 5
        assert sorted(ids(await self.left(stage))) == sorted(names)

    async def test_what_is_left_is_swept_as_before(self, stage: Stage) -> None:
        runs = [await stage.ended() for _ in range(4)]
        stage.wait(ID_MEMORY + 1)
        assert await self.delete(stage, runs[0].id, runs[2].id) == [1, 1]
        await stage.store.sweep(Retention(most=1, least=1, succeeded=1, failed=1))
        assert ids(await self.left(stage)) == [runs[3].id]
        stage.wait(ID_MEMORY + 1)
        assert await self.delete(stage, runs[3].id) == [1]
        await stage.store.sweep(Retention(most=1, least=0, succeeded=1, failed=1))
        await stage.put(new_run(id=runs[3].id))
        assert ids(await self.left(stage)) == [runs[3].id]

    async def test_tasks_and_schedules_are_not_deleted(self, stage: Stage) -> None:
        await stage.put(new_run())
        for scope in (Scope.TASKS, Scope.SCHEDULES):
            assert (await stage.store.control(Command.DELETE, ["greet"], of=scope)).items == [0]
        assert len(await self.left(stage)) == 1

    async def left(self, stage: Stage) -> list[Run]:
        return (await stage.store.runs(RunQuery())).runs
