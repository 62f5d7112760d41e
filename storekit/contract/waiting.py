"""What may happen to a run that waits for another: several holds at once, each removed on its own."""

from msgspec.structs import replace

from rota.domain.decision import Reason
from rota.domain.lifecycle import Cancelled, Lost, Released, Succeeded
from rota.domain.policy import Limit, Rate
from rota.domain.run import NewRun, State
from rota.store import Command, Retention, Scope
from storekit.contract.needing import PARENT, take_parent
from storekit.contract.stage import GREET, LEASE, Stage, Staged, ids, new_run


class WaitingRunContract(Staged):
    async def test_what_waited_for_one_that_came_too_late_starts_in_the_same_claim(self, stage: Stage) -> None:
        """Also for a limited task: the claim that expires the late run unparks the next one."""
        await stage.declare(Limit(total=5), task="limited")
        late = new_run(unique="queued", key="k")
        child = new_run("limited", needs=[late.id])
        await stage.put(late, child)
        await stage.admit(new_run(unique="queued", key="k", join="push", expires_after=0))
        assert ids((await stage.claim(free=4, tasks=[GREET, "limited"])).runs) == [child.id]

    async def wait_for(self, stage: Stage, *children: NewRun, parent: NewRun | None = None) -> NewRun:
        parent = parent or new_run(PARENT)
        await stage.put(parent, *(replace(child, needs=(parent.id,)) for child in children))
        return parent

    async def test_pause_and_wait_hold_a_run_each_by_itself(self, stage: Stage) -> None:
        for order in ("resumed first", "released first"):
            child = new_run()
            parent = await self.wait_for(stage, child)
            assert await stage.pause(child) == 1
            if order == "resumed first":
                await stage.resume(child)
                assert (await stage.see(child)).state is State.QUEUED
                assert (await stage.claim()).runs == []
                await stage.cancel(parent)
            else:
                await stage.cancel(parent)
                assert (await stage.see(child)).state is State.PAUSED
                assert (await stage.claim()).runs == []
                await stage.resume(child)
            assert (await stage.take()).id == child.id

    async def test_a_cancelled_one_ends_at_once_and_its_parents_end_leaves_it_alone(self, stage: Stage) -> None:
        child, grandchild = new_run(), new_run()
        parent = await self.wait_for(stage, child)
        await self.wait_for(stage, grandchild, parent=replace(child, needs=(parent.id,)))
        assert await stage.cancel(child, "not needed")
        ended = await stage.see(child)
        assert (ended.state, ended.reason) == (State.CANCELLED, Reason.CANCELLED)
        assert (await stage.take()).id == grandchild.id
        await stage.cancel(parent)
        assert await stage.see(child) == ended

    async def test_a_dropped_task_drops_those_that_wait(self, stage: Stage) -> None:
        first, outside = new_run(), new_run("outside")
        await stage.put(first)
        second = new_run(needs=[first.id])
        await stage.put(second, third := new_run(needs=[second.id]), replace(outside, needs=(third.id,)))
        async with stage.listening() as ear:
            assert (await stage.store.control(Command.DROP, [GREET], of=Scope.TASKS)).items == [3]
            assert await ear.runs() >= {*ids([first, second, third])}
        assert {run.reason for run in await stage.find(first, second, third)} == {Reason.DROPPED}
        assert ids((await stage.claim(free=9, tasks=[GREET, "outside"])).runs) == [outside.id]

    async def test_one_that_waits_too_long_expires(self, stage: Stage) -> None:
        child, grandchild = new_run(expires_after=60), new_run()
        parent = await self.wait_for(stage, child)
        await stage.put(replace(grandchild, needs=(child.id,)))
        stage.wait(61)
        assert (await stage.take()).id == grandchild.id
        assert (await stage.see(child)).reason is Reason.EXPIRED
        await stage.cancel(parent)
        assert (await stage.see(child)).state is State.CANCELLED

    async def test_parent_and_child_expire_together(self, stage: Stage) -> None:
        child, grandchild = new_run(expires_after=60), new_run()
        await self.wait_for(stage, child, parent=new_run(PARENT, expires_after=60))
        await stage.put(replace(grandchild, needs=(child.id,)))
        stage.wait(61)
        assert (await stage.store.sweep(Retention())).expired == 2
        assert ids((await stage.claim(free=9)).runs) == [grandchild.id]

    async def test_one_that_is_let_go_is_held_by_its_limit(self, stage: Stage) -> None:
        await stage.declare(Limit(per_key=1))
        busy = await stage.running(new_run(key="k"))
        children = [new_run(key="k"), new_run(key="k")]
        parent = await self.wait_for(stage, *children)
        assert [run.parked for run in await stage.find(*children)] == [False, False]
        await stage.end(busy, Succeeded())
        assert (await stage.claim()).runs == []
        busy = await stage.running(new_run(key="k"))
        await stage.cancel(parent)
        assert (await stage.claim(free=9)).runs == []
        for child in children:
            await stage.end(busy, Succeeded())
            (busy,) = (await stage.claim(free=9)).runs
            assert busy.id == child.id

    async def test_one_that_waits_takes_no_room_from_those_that_do_not(self, stage: Stage) -> None:
        """A raised limit and the end of another run unpark runs; they never release runs that wait."""
        await stage.declare(Limit(per_key=1))
        busy, child = await stage.running(new_run(key="k")), new_run(key="k", priority=9)
        parent = await self.wait_for(stage, child)
        parked = [new_run(key="k") for _ in range(3)]
        await stage.put(*parked)
        assert (await stage.claim("bob")).runs == []
        await stage.end(busy, Succeeded())
        assert ids((await stage.claim("bob", free=9)).runs) == ids(parked[:1])
        await stage.declare(Limit(per_key=9))
        assert ids((await stage.claim("bob", free=9)).runs) == ids(parked[1:])
        assert (await stage.see(child)).needs == (parent.id,)
        await stage.cancel(parent)
        assert ids((await stage.claim("bob", free=9)).runs) == [child.id]

    async def test_one_that_is_let_go_is_held_by_its_rate(self, stage: Stage) -> None:
        await stage.declare(rate=Rate(1, per=60, per_key=True))
        await stage.running(new_run(key="k"))
        child = new_run(key="k")
        parent = await self.wait_for(stage, child)
        await stage.cancel(parent)
        assert (await stage.claim()).runs == []
        stage.wait(61)
        assert (await stage.take()).id == child.id

    async def test_one_that_waits_can_be_joined_and_waits_on(self, stage: Stage) -> None:
        child = new_run(key="k", unique="queued", delay=600)
        parent = await self.wait_for(stage, child)
        assert (
            await stage.admit(new_run(key="k", unique="queued", join="set", args=b'{"name":"Bob"}'))
        ).run == child.id
        assert (await stage.claim()).runs == []
        await stage.cancel(parent)
        run = await stage.take()
        assert (run.id, run.args) == (child.id, b'{"name":"Bob"}')

    async def test_nobody_gives_way_to_one_that_waits_for_his_end(self, stage: Stage) -> None:
        parent, child = new_run(key="k", unique="queued"), new_run(key="k", unique="queued")
        await stage.put(parent)
        run = await stage.take()
        await stage.put(replace(child, needs=(parent.id,)))
        await stage.end(run, Released())
        run = await stage.take()
        assert (run.id, run.fence) == (parent.id, 2)
        await stage.end(run, Succeeded())
        assert (await stage.take()).id == child.id

    async def test_a_paused_task_keeps_those_that_were_let_go(self, stage: Stage) -> None:
        child = new_run()
        parent = await self.wait_for(stage, child)
        await stage.store.control(Command.PAUSE, [GREET], of=Scope.TASKS)
        await stage.cancel(parent)
        assert (await stage.claim()).runs == []
        await stage.store.control(Command.RESUME, [GREET], of=Scope.TASKS)
        assert (await stage.take()).id == child.id

    async def test_a_suspect_that_was_waited_for_lets_go_only_at_its_end(self, stage: Stage) -> None:
        child = new_run()
        parent = await self.wait_for(stage, child, parent=new_run(PARENT))
        for _ in range(3):
            run = await take_parent(stage, parent)
            stage.wait(LEASE + 1)
            await stage.end(run, Lost())
            assert (await stage.claim()).runs == []
        await stage.end(await take_parent(stage, parent), Cancelled())
        assert (await stage.take()).id == child.id
