"""put with a plan: all that a group is to have waiting, in one transaction."""

from msgspec.structs import replace

from rota.domain.decision import Decision, DecisionCount, Reason
from rota.domain.guards import Guards
from rota.domain.lifecycle import Succeeded
from rota.domain.run import Member, NewRun, State
from rota.store import Command, Plan, RowQuery
from storekit.contract.stage import GREET, Stage, Staged, ids, new_run

DAY = "watch@2026-11-15"
START = 2_000_000_000.0


def race(name: str, at: float = START, group: str = DAY) -> NewRun:
    return new_run(key=name, unique="done", join="set", at=at, member=Member(group))


class PlanContract(Staged):
    async def plan(self, stage: Stage, *runs: NewRun, keep: frozenset[str] = frozenset()) -> list[Decision]:
        return (await stage.store.put(runs, Plan(DAY, keep))).items

    async def test_what_is_planned_again_moves(self, stage: Stage) -> None:
        first = race("r1")
        assert await self.plan(stage, first) == [Decision(first.id, Reason.ACCEPTED)]
        for at in (START + 600, START - 600):
            assert await self.plan(stage, race("r1", at)) == [Decision(first.id, Reason.JOINED)]
            assert (await stage.see(first)).due_at == at

    async def test_what_has_vanished_is_cancelled(self, stage: Stage) -> None:
        one, two = race("r1"), race("r2")
        await self.plan(stage, one, two)
        assert await self.plan(stage, race("r2")) == [
            Decision(two.id, Reason.JOINED),
            Decision(one.id, Reason.CANCELLED),
        ]
        gone = await stage.see(one)
        assert (gone.state, gone.reason, gone.note) == (State.CANCELLED, Reason.CANCELLED, "no longer in the plan")
        (row,) = (await stage.store.rows(DecisionCount, RowQuery(task=GREET, key="r1"))).items
        assert (row.reason, row.run, row.note) == (Reason.CANCELLED, one.id, "no longer in the plan")

    async def test_an_empty_plan_cancels_all_that_waits(self, stage: Stage) -> None:
        runs = [race(f"r{n}") for n in range(5)]
        await self.plan(stage, *runs)
        await stage.pause(runs[0])
        assert {decision.run for decision in await self.plan(stage)} == set(ids(runs))
        assert {run.state for run in await stage.find(*runs)} == {State.CANCELLED}
        assert await self.plan(stage) == []

    async def test_what_is_cancelled_may_be_planned_again(self, stage: Stage) -> None:
        await self.plan(stage, race("r1"))
        await self.plan(stage)
        back = race("r1")
        assert await self.plan(stage, back) == [Decision(back.id, Reason.ACCEPTED)]

    async def test_what_is_put_too_late_never_starts_and_is_recorded_once(self, stage: Stage) -> None:
        """An item that is already over expires. An item that is done is refused. An item that waits with another time
        is not changed."""
        done, waits = race("done", at=1.0), race("waits")
        await self.plan(stage, done, waits)
        await stage.end(await stage.take(), Succeeded())
        late = [
            replace(race(name, at=1.0), expires_at=2.0, guards=Guards(unique="done", join="refuse"))
            for name in ("late", "done", "waits")
        ]
        answers = (await stage.store.put(late, Plan(DAY, frozenset({"waits"})))).items
        assert [answer.reason for answer in answers] == [
            Reason.ACCEPTED,
            Reason.ALREADY_DONE,
            Reason.ALREADY_QUEUED,
        ]
        assert not (await stage.claim()).runs
        missed = await stage.see(late[0])
        assert (missed.state, missed.reason, missed.attempts) == (State.CANCELLED, Reason.EXPIRED, ())
        assert (await stage.see(waits)).due_at == START
        (row,) = (await stage.store.rows(DecisionCount, RowQuery(task=GREET, key="late"))).items
        assert (row.reason, row.run, row.count) == (Reason.EXPIRED, late[0].id, 1)

    async def test_some_are_left_as_they_are(self, stage: Stage) -> None:
        one, two = race("r1"), race("r2")
        await self.plan(stage, one, two)
        assert await self.plan(stage, keep=frozenset({"r1"})) == [Decision(two.id, Reason.CANCELLED)]
        assert (await stage.see(one)).state is State.QUEUED

    async def test_what_runs_or_ran_is_left_alone(self, stage: Stage) -> None:
        await self.plan(stage, race("r1", at=1.0), race("r2", at=2.0))
        ended = await stage.take()
        await stage.end(ended, Succeeded())
        running = await stage.take()
        answers = await self.plan(stage, race("r1"), race("r2"))
        assert [answer.reason for answer in answers] == [Reason.ALREADY_DONE, Reason.ALREADY_RUNNING]
        assert await self.plan(stage) == []
        assert (await stage.see(running)).cancel_requested is False

    async def test_other_groups_and_runs_are_left_alone(self, stage: Stage) -> None:
        await stage.put(lone := new_run(key="lone", at=START), other := race("r9", group="watch@2026-11-16"))
        await self.plan(stage, race("r1"))
        await self.plan(stage)
        assert {run.state for run in await stage.find(lone, other)} == {State.QUEUED}

    async def test_a_plan_sent_again_changes_nothing(self, stage: Stage) -> None:
        one, two = race("r1"), race("r2")
        await self.plan(stage, one, two)
        assert await self.plan(stage, one, two) == [Decision(run.id, Reason.ACCEPTED) for run in (one, two)]
        assert {run.state for run in await stage.find(one, two)} == {State.QUEUED}

    THOUSANDS = 2500
    """A number of runs that one transaction must be able to take."""

    async def test_thousands_are_one_step(self, stage: Stage) -> None:
        number = self.THOUSANDS
        runs = [race(f"r{n}", START + n) for n in range(number)]
        assert {decision.reason for decision in await self.plan(stage, *runs)} == {Reason.ACCEPTED}
        later = [race(f"r{n}", START + n + 60) for n in range(5, number)]
        answers = await self.plan(stage, *later)
        assert [answer.reason for answer in answers] == [Reason.JOINED] * (number - 5) + [Reason.CANCELLED] * 5
        assert [run.due_at for run in await stage.find(runs[5], runs[-1])] == [later[0].at, later[-1].at]
        assert (await stage.store.depths()).items[0].queued == number - 5

    async def test_a_planned_run_that_is_due_is_claimed(self, stage: Stage) -> None:
        await stage.claim("bob")
        async with stage.listening() as ear:
            await self.plan(stage, due := race("r1", at=1.0))
            assert "bob" in await ear.workers()
        assert (await stage.take()).id == due.id

    async def test_a_command_holds_for_planned_runs(self, stage: Stage) -> None:
        await self.plan(stage, one := race("r1"))
        assert (await stage.store.control(Command.DROP, [one.id])).items == [1]
        assert (await stage.see(one)).state is State.CANCELLED
