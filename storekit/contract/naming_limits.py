"""Named limits: runs of several tasks count together, and a lease remembers what it counts against."""

import asyncio
import random

from rota.domain.lifecycle import Failed, Lost, Outcome, Released, Succeeded, settlement_of
from rota.domain.policy import Limit, Rate
from rota.domain.run import Run
from rota.domain.spec import TaskSpec, limit_row
from rota.store import Command, Declared, RowQuery, RunQuery, Scope
from storekit.contract.stage import BOOM, Stage, Staged, ids, new_run

TASKS = ("cut", "train", "paint")


async def share(stage: Stage, total: int, *tasks: str, name: str = "gpu", limit: Limit | None = None) -> None:
    """Declare tasks that share a named limit, and the number of the limit, as a worker does."""
    named = Limit(total, name=name)
    specs = [TaskSpec(task, limit=limit, limits=(named,)) for task in tasks or TASKS]
    await stage.store.declare([limit_row(named), *specs])


async def end(stage: Stage, run: Run) -> None:
    await stage.settle(settlement_of(run, Succeeded(b"1")))


class NamedLimitContract(Staged):
    async def test_runs_of_all_its_tasks_count_together(self, stage: Stage) -> None:
        await share(stage, 2)
        news = [new_run(task) for task in ("cut", "train", "paint", "cut")]
        await stage.put(*news, free := new_run("free"))
        claim = await stage.claim("ada", 9, tasks=[*TASKS, "free"])
        assert ids(claim.runs) == [news[0].id, news[1].id, free.id], "a full limit holds up no other task"
        assert (await stage.claim("bob", 9, tasks=TASKS)).runs == []
        await end(stage, claim.runs[0])
        assert ids((await stage.claim("bob", 9, tasks=TASKS)).runs) == [news[2].id]

    async def test_what_a_full_limit_passes_over_is_not_parked(self, stage: Stage) -> None:
        await share(stage, 1)
        await stage.put(new_run("cut"), behind := new_run("train"))
        await stage.claim("ada", 9, tasks=TASKS)
        await stage.claim("bob", 9, tasks=TASKS)
        (seen,) = (await stage.store.runs(RunQuery(ids=[behind.id]))).runs
        assert not seen.parked

    async def test_a_full_limit_leaves_no_seat_empty(self, stage: Stage) -> None:
        """A claim looks at more runs than it has seats once it has parked one. The runs of `few` are looked at behind a
        run that has no room: that there are too many of them does not keep the first one from its seat."""
        await share(stage, 1, "cut")
        await stage.store.declare([TaskSpec("few", limit=Limit(1))])
        await stage.store.control(Command.PAUSE, ["few k"], of=Scope.KEYS)
        await stage.put(cut := new_run("cut"), new_run("few", key="k"), new_run("cut"))
        await stage.put(few := new_run("few"), new_run("few"))
        assert ids((await stage.claim("ada", 2, tasks=["cut", "few"])).runs) == [cut.id, few.id]

    async def test_every_way_out_of_a_lease_makes_room(self, stage: Stage) -> None:
        await share(stage, 1)
        for outcome in (Succeeded(b"1"), Failed(BOOM), Released()):
            await stage.put(new_run("cut"))
            (run,) = (await stage.claim("ada", 9, tasks=["cut"])).runs
            assert (await stage.claim("bob", 9, tasks=TASKS)).runs == []
            await stage.settle(settlement_of(run, outcome))
            for left in (await stage.claim("ada", 9, tasks=["cut"])).runs:
                await end(stage, left)
        await stage.put(new_run("cut"))
        (run,) = (await stage.claim("ada", 9, tasks=["cut"], lease=1)).runs
        stage.wait(2)
        await stage.settle(settlement_of(run, Lost()))
        await stage.put(new_run("train"))
        assert len((await stage.claim("bob", 1, tasks=["train"])).runs) == 1

    async def test_an_end_hints_a_worker_of_another_task(self, stage: Stage) -> None:
        await share(stage, 1)
        await stage.put(new_run("cut"), new_run("train"))
        (run,) = (await stage.claim("ada", 1, tasks=["cut"])).runs
        assert (await stage.claim("bob", 1, tasks=["train"])).runs == []
        async with stage.listening() as ear:
            await end(stage, run)
            assert "bob" in await ear.workers()

    async def test_a_limit_that_nobody_declared_has_the_number_of_the_first_task_that_names_it(
        self, stage: Stage
    ) -> None:
        two, three = Limit(2, name="gpu"), Limit(3, name="gpu")
        answers = await stage.store.declare([TaskSpec("cut", limits=(two,)), TaskSpec("train", limits=(two,))])
        assert answers.items == [Declared.ADDED] * 2
        await stage.store.declare([TaskSpec("paint", limits=(three,))])
        await stage.put(*(new_run(task) for task in (*TASKS, *TASKS)))
        assert len((await stage.claim("ada", 9, tasks=TASKS)).runs) == 2
        rows = (await stage.store.rows(TaskSpec, RowQuery(names=["limit gpu"]))).items
        assert rows == [limit_row(two)]
        assert (await stage.store.declare([limit_row(three)])).items == [Declared.CHANGED]
        assert len((await stage.claim("ada", 9, tasks=TASKS)).runs) == 1

    async def test_several_limits_hold_at_once(self, stage: Stage) -> None:
        both = (Limit(2, name="gpu"), Limit(1, name="licence"))
        await stage.store.declare([limit_row(limit) for limit in both])
        await stage.store.declare([TaskSpec("cut", limits=both), TaskSpec("train", limits=both[:1])])
        cuts, trains = [new_run("cut") for _ in range(2)], [new_run("train") for _ in range(2)]
        await stage.put(*cuts, *trains)
        claim = await stage.claim("ada", 9, tasks=TASKS)
        assert ids(claim.runs) == [cuts[0].id, trains[0].id], "the second cut has no licence and takes no gpu"

    async def test_a_named_limit_holds_beside_one_of_the_task(self, stage: Stage) -> None:
        await share(stage, 3, "cut", limit=Limit(2, per_key=1))
        await stage.put(*(new_run("cut", key=key) for key in ("a", "a", "b", "c")))
        claim = await stage.claim("ada", 9, tasks=["cut"])
        assert [run.key for run in claim.runs] == ["a", "b"]
        for run in claim.runs:
            await end(stage, run)
        assert sorted(run.key or "" for run in (await stage.claim("ada", 9, tasks=["cut"])).runs) == ["a", "c"]

    async def test_a_lower_number_drains_and_a_higher_one_counts_at_once(self, stage: Stage) -> None:
        await share(stage, 3)
        await stage.put(*(new_run("cut") for _ in range(6)))
        runs = (await stage.claim("ada", 9, tasks=TASKS)).runs
        await share(stage, 1)
        for run, more in zip(runs, (0, 0, 1), strict=True):
            await end(stage, run)
            assert len((await stage.claim("ada", 9, tasks=TASKS)).runs) == more
        await share(stage, 3)
        assert len((await stage.claim("ada", 9, tasks=TASKS)).runs) == 2

    async def test_a_lease_counts_against_the_limits_of_its_claim(self, stage: Stage) -> None:
        await share(stage, 1)
        await stage.put(new_run("cut"), new_run("train"))
        (run,) = (await stage.claim("ada", 1, tasks=["cut"])).runs
        await stage.store.declare([TaskSpec("cut")])  # the code no longer names the limit
        assert (await stage.claim("bob", 1, tasks=["train"])).runs == []
        await end(stage, run)
        assert len((await stage.claim("bob", 1, tasks=["train"])).runs) == 1

    async def test_commands_and_rates_leave_the_count_right(self, stage: Stage) -> None:
        named = Limit(1, name="gpu")
        await stage.store.declare([limit_row(named), TaskSpec("cut", rate=Rate(1000), limits=(named,))])
        await stage.put(first := new_run("cut"), new_run("cut"))
        (run,) = (await stage.claim("ada", 9, tasks=["cut"])).runs
        await stage.store.control(Command.PAUSE, [first.id])
        await stage.settle(settlement_of(run, Released()))
        stage.wait(1)
        assert len((await stage.claim("ada", 9, tasks=["cut"])).runs) == 1

    async def test_a_named_limit_is_never_exceeded(self, stage: Stage) -> None:
        """Eight claimers, three tasks, a few hundred random steps; `make soak` makes it thousands."""
        await never_exceeded(stage, random.Random(7), 240)


async def never_exceeded(stage: Stage, dice: random.Random, steps: int) -> None:
    """Let eight claimers put, claim, end, lose and pause runs of three tasks that share a limit, several at once."""
    await share(stage, 3)
    hands: dict[str, list[Run]] = {f"w{number}": [] for number in range(8)}
    most = 0

    async def act(worker: str) -> None:
        hand, tasks = hands[worker], dice.sample(TASKS, dice.randint(1, 3))
        match dice.randint(0, 5):
            case 0 | 1:
                await stage.put(*(new_run(dice.choice(TASKS)) for _ in range(dice.randint(1, 3))))
            case 2 | 3:
                hand.extend((await stage.claim(worker, dice.randint(1, 4), tasks=tasks, lease=3600)).runs)
            case _:
                if hand:
                    outcomes: list[Outcome] = [Succeeded(b"1"), Failed(BOOM), Released()]
                    outcome = dice.choice(outcomes)
                    await stage.settle(settlement_of(hand.pop(dice.randrange(len(hand))), outcome))

    for _ in range(steps // len(hands)):
        await asyncio.gather(*(act(worker) for worker in hands))
        running = sum(depth.running for depth in (await stage.store.depths()).items if depth.task in TASKS)
        assert running == sum(map(len, hands.values())) <= 3
        most = max(most, running)
    assert most == 3, "the limit was reached, and never passed"
