"""fan: the ends of the children of a fan are counted, and the last one lets the gather in."""

import asyncio

from msgspec.structs import replace

from rota.domain.fan import Fan, child_id, gather_id, need_of
from rota.domain.lifecycle import Discarded, Failed, Outcome, Succeeded, settlement_of
from rota.domain.policy import Limit, Retry
from rota.domain.run import NewRun, Run
from rota.store import Command, Retention, RowQuery, RunQuery
from storekit.contract.stage import BOOM, Stage, Staged, ids, new_run

FAN = "fan"
BROKEN = Discarded(BOOM)
NOTHING_KEPT = Retention(succeeded=0, failed=0, most=0, least=0)


class FanContract(Staged):
    async def spread(self, stage: Stage, total: int, allowed: int | None = None, known: bool = True) -> list[NewRun]:
        """Make a fan with its gather and its children; `known`: the store knows the total. Return the children."""
        await stage.store.fan(FAN, total if known else None, allowed)
        children = [new_run(id=child_id(FAN, index)) for index in range(total)]
        await stage.put(new_run("gather", id=gather_id(FAN), needs=(need_of(FAN),)), *children)
        return children

    async def end_all(self, stage: Stage, ends: list[tuple[Run, Outcome]]) -> None:
        await stage.store.settle([settlement_of(run, outcome) for run, outcome in ends])

    async def fan(self, stage: Stage) -> Fan:
        (fan,) = (await stage.store.rows(Fan, RowQuery(names=[FAN]))).items
        return fan

    async def counts(self, stage: Stage) -> tuple[int | None, int, int]:
        fan = await self.fan(stage)
        return fan.total, fan.ended, fan.failed

    async def gathered(self, stage: Stage) -> list[Run]:
        return (await stage.claim("gatherer", free=5, tasks=["gather"])).runs

    async def test_the_last_end_lets_the_gather_in(self, stage: Stage) -> None:
        await self.spread(stage, 3)
        assert await self.counts(stage) == (3, 0, 0)
        first, second, third = (await stage.claim(free=5)).runs
        await stage.end(first, Succeeded(b"1"))
        await stage.end(first, Succeeded(b"1"))  # the reply got lost
        assert await self.counts(stage) == (3, 1, 0)
        await stage.end(second, BROKEN)
        assert await self.gathered(stage) == []
        await stage.end(third, Succeeded(b"3"))
        assert await self.counts(stage) == (3, 3, 1)
        assert ids(await self.gathered(stage)) == [gather_id(FAN)]

    async def test_a_batch_of_ends_counts_each(self, stage: Stage) -> None:
        await self.spread(stage, 40)
        runs = (await stage.claim(free=40)).runs
        await self.end_all(stage, [(run, Succeeded(b"1")) for run in runs[:39]])
        assert await self.counts(stage) == (40, 39, 0)
        other = new_run("other")
        await stage.put(other)
        (plain,) = (await stage.claim("bob", free=1, tasks=["other"])).runs
        await self.end_all(stage, [(plain, Succeeded(b"1")), (runs[39], BROKEN)])
        assert await self.counts(stage) == (40, 40, 1)
        assert len(await self.gathered(stage)) == 1

    async def test_the_last_child_may_end_before_the_total_is_known(self, stage: Stage) -> None:
        await self.spread(stage, 2, known=False)
        for run in (await stage.claim(free=5)).runs:
            await stage.end(run, Succeeded(b"1"))
        assert await self.counts(stage) == (None, 2, 0)
        assert await self.gathered(stage) == []
        assert (await stage.store.fan(FAN, 2)).items == [True]
        assert (await stage.store.fan(FAN, 2)).items == [False]
        assert (await stage.store.fan(FAN, 7)).items == [False]  # the first total stays
        assert ids(await self.gathered(stage)) == [gather_id(FAN)]

    async def test_a_fan_of_nothing_is_over_at_once(self, stage: Stage) -> None:
        await self.spread(stage, 0, known=False)
        await stage.store.fan(FAN, 0)
        assert len(await self.gathered(stage)) == 1

    async def test_cancelled_and_expired_children_count_as_failed(self, stage: Stage) -> None:
        await stage.store.fan(FAN, 4)
        late, *others = [
            new_run(id=child_id(FAN, index), expires_after=0.5 if index == 0 else None) for index in range(4)
        ]
        await stage.put(new_run("gather", id=gather_id(FAN), needs=(need_of(FAN),)), late, *others)
        stage.wait(1)
        await stage.store.sweep(Retention())
        assert await self.counts(stage) == (4, 1, 1)
        await stage.store.control(Command.CANCEL, [others[0].id])
        await stage.store.control(Command.CANCEL, [others[0].id])
        assert await self.counts(stage) == (4, 2, 2)
        running, last = (await stage.claim(free=5)).runs
        await stage.store.control(Command.CANCEL, [running.id])  # it still runs
        assert await self.counts(stage) == (4, 2, 2)
        await stage.end(running, Succeeded(b"1"))
        await stage.end(last, Succeeded(b"1"))
        assert await self.counts(stage) == (4, 4, 2)
        assert len(await self.gathered(stage)) == 1

    async def test_a_claim_gives_the_gather_that_it_let_in(self, stage: Stage) -> None:
        await stage.declare(limit=Limit(1), task="gather")
        await stage.store.fan(FAN, 1)
        await stage.put(new_run("gather", id=gather_id(FAN), needs=(need_of(FAN),)))
        await stage.put(new_run(id=child_id(FAN, 0), expires_after=0.5))
        stage.wait(1)
        assert ids(await self.gathered(stage)) == [gather_id(FAN)], "the claim has ended the child, which had expired"

    async def test_too_many_failures_let_the_gather_in_early(self, stage: Stage) -> None:
        await self.spread(stage, 4, allowed=1)
        first, second, *_ = (await stage.claim(free=5)).runs
        await stage.end(first, BROKEN)
        assert not (await self.fan(stage)).stopped
        assert await self.gathered(stage) == []
        await stage.end(second, BROKEN)
        assert (await self.fan(stage)).stopped
        assert len(await self.gathered(stage)) == 1

    async def test_a_child_that_is_retried_or_put_again_counts_once(self, stage: Stage) -> None:
        children = await self.spread(stage, 1)
        (run,) = (await stage.claim(free=5)).runs
        await stage.end(run, Failed(BOOM, Retry(3, delay=0, jitter=0)))
        await stage.put(*children)
        assert await self.counts(stage) == (1, 0, 0)
        (run,) = (await stage.claim(free=5)).runs
        await stage.end(run, Succeeded(b"1"))
        await stage.put(*children)
        assert (await stage.claim(free=5)).runs == []
        assert await self.counts(stage) == (1, 1, 0)

    async def test_children_that_end_at_once_are_all_counted(self, stage: Stage) -> None:
        await self.spread(stage, 60)
        runs = (await stage.claim(free=60)).runs
        await asyncio.gather(*(stage.end(run, Succeeded(b"1")) for run in runs))
        assert await self.counts(stage) == (60, 60, 0)
        assert len(await self.gathered(stage)) == 1

    async def test_children_are_kept_until_the_gather_has_ended(self, stage: Stage) -> None:
        children = await self.spread(stage, 2)
        plain = new_run()
        await stage.put(plain)
        for run in (await stage.claim(free=5)).runs:
            await stage.end(run, Succeeded(b"1"))
        stage.wait(100)
        await stage.store.sweep(NOTHING_KEPT)
        known = (await stage.store.runs(RunQuery(ids=[*ids(children), plain.id]))).runs
        assert sorted(ids(known)) == sorted(ids(children))
        (gather,) = await self.gathered(stage)
        await stage.end(gather, Succeeded(b"2"))
        await stage.store.sweep(NOTHING_KEPT)
        assert (await stage.store.rows(Fan)).items == []
        assert (await stage.store.runs(RunQuery(ids=ids(children)))).runs == []

    async def test_a_fan_is_forgotten_whose_gather_and_child_end_in_one_sweep(self, stage: Stage) -> None:
        await stage.store.fan(FAN, None)
        child, gather = new_run(id=child_id(FAN, 0), expires_after=0.5), new_run("gather", id=gather_id(FAN))
        await stage.put(replace(gather, needs=[need_of(FAN)], expires_after=0.5), child)
        stage.wait(1)
        assert (await stage.store.sweep(Retention())).expired == 2
        assert (await stage.store.rows(Fan)).items == []
