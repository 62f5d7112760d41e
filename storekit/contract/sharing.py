"""Shares: waiting runs of a task start by weighted round robin over their shares."""

from collections import Counter

import pytest

from rota.domain.lifecycle import Failed, Succeeded
from rota.domain.policy import Limit, Share
from rota.domain.run import NewRun
from rota.domain.spec import TaskSpec
from rota.store import Edited, RunEdit
from storekit.contract.editing import OTHER
from storekit.contract.stage import BOOM, GREET, Stage, Staged, ids, new_run

IN_TURN = Share("{tenant}")


def of(share: str, **options: object) -> NewRun:
    return new_run(share=share, **options)  # type: ignore[arg-type]


class ShareContract(Staged):
    async def share_out(self, stage: Stage, share: Share = IN_TURN, limit: Limit | None = None) -> None:
        await stage.store.declare([TaskSpec(GREET, share=share, limit=limit)])

    async def started_shares(self, stage: Stage, count: int, free: int = 1) -> list[str | None]:
        """Return the shares of the next runs, each of which ends at once."""
        found: list[str | None] = []
        while len(found) < count:
            runs = (await stage.claim(free=free)).runs
            assert runs
            found += [run.share for run in runs]
            for run in runs:
                await stage.end(run, Succeeded())
        return found

    async def test_shares_take_turns_however_many_runs_one_of_them_has(self, stage: Stage) -> None:
        await self.share_out(stage)
        await stage.put(*(of("a") for _ in range(40)))
        await stage.put(of("b"), of("b"), of("c"))
        assert await self.started_shares(stage, 8) == ["a", "b", "c", "a", "b", "a", "a", "a"]

    async def test_one_claim_for_many_seats_takes_turns_too(self, stage: Stage) -> None:
        await self.share_out(stage)
        await stage.put(*(of("a") for _ in range(40)), of("b"), of("b"), of("c"))
        found = Counter(run.share for run in (await stage.claim(free=6)).runs)
        assert found == {"a": 3, "b": 2, "c": 1}

    @pytest.mark.parametrize("free", [1, 3, 10])
    async def test_a_weight_says_how_many_runs_start_in_a_turn(self, stage: Stage, free: int) -> None:
        await self.share_out(stage, Share("{tenant}", {"gold": 3}))
        await stage.put(*(of(share) for share in ("iron", "gold") for _ in range(60)))
        found = await self.started_shares(stage, 60, free)
        assert Counter(found) == {"gold": 45, "iron": 15}

    async def test_a_lone_share_gets_everything(self, stage: Stage) -> None:
        await self.share_out(stage, Share("{tenant}", {"a": 2}))
        await stage.put(*(of("a") for _ in range(9)))
        assert await self.started_shares(stage, 9, free=4) == ["a"] * 9

    async def test_runs_of_one_share_start_in_the_order_of_their_due_times(self, stage: Stage) -> None:
        await self.share_out(stage)
        news = [of("a"), of("a"), of("b"), of("a")]
        await stage.put(*news)
        found = [(await stage.take()).id for _ in news]
        assert [id for id in found if id != news[2].id] == ids([news[0], news[1], news[3]])

    async def test_priority_goes_before_the_turn(self, stage: Stage) -> None:
        await self.share_out(stage)
        await stage.put(of("a"), of("b"), first := of("a", priority=5), second := of("a", priority=5))
        assert [(await stage.take()).id for _ in range(2)] == ids([first, second])

    async def test_one_claim_takes_turns_in_each_priority(self, stage: Stage) -> None:
        await self.share_out(stage)
        high = [of(share, priority=5) for share in ("b", "b", "a")]
        low = [of(share) for share in ("a", "a", "c")]
        await stage.put(*high, *low, alone := new_run())
        runs = (await stage.claim(free=9)).runs
        assert sorted(ids(runs)) == sorted(ids([*high, *low, alone])), "each once"
        assert {run.id for run in runs if run.priority} == set(ids(high))

    async def test_a_claim_goes_on_behind_the_last_turn_and_round(self, stage: Stage) -> None:
        await self.share_out(stage, Share("{tenant}", {"b": 3}))
        await stage.put(*(of(share) for share in "abcd" for _ in range(8)))
        assert await self.started_shares(stage, 2) == ["a", "b"]
        found = Counter(run.share for run in (await stage.claim(free=7)).runs)
        assert found == {"b": 4, "c": 1, "d": 1, "a": 1}, "two that are left of its turn, and two of the next"
        assert await self.started_shares(stage, 2) == ["b", "c"]

    async def test_each_queue_has_turns_of_its_own(self, stage: Stage) -> None:
        await self.share_out(stage)
        await stage.put(*(of(share, queue=queue) for queue in ("q", "r") for share in ("a", "a", "b")))
        for queue in ("q", "r"):
            found = [(await stage.claim(queue, queues=[queue])).runs[0].share for _ in range(3)]
            assert found == ["a", "b", "a"]

    async def test_a_run_that_is_not_due_yet_takes_no_turn(self, stage: Stage) -> None:
        await self.share_out(stage)
        await stage.put(of("a"), of("b", delay=600), of("c"), of("a"))
        assert await self.started_shares(stage, 3) == ["a", "c", "a"]
        assert (await stage.claim()).runs == []
        stage.wait(601)
        await stage.put(of("a"))
        assert await self.started_shares(stage, 2) == ["b", "a"]

    async def test_a_retry_waits_for_the_turn_of_its_share(self, stage: Stage) -> None:
        await self.share_out(stage)
        await stage.put(retried := of("b"))
        await stage.end(await stage.take(), Failed(BOOM))
        stage.wait(3600)
        await stage.put(*(of("a") for _ in range(3)), of("c"))
        assert await self.started_shares(stage, 5) == ["c", "a", "b", "a", "a"]
        assert ((await stage.see(retried)).share, (await stage.see(retried)).fence) == ("b", 2)

    async def test_cancelled_runs_take_no_turns(self, stage: Stage) -> None:
        """A share that cancels its backlog is not behind the others afterwards."""
        await self.share_out(stage)
        gone = [of("a") for _ in range(20)]
        await stage.put(*gone, *(of("b") for _ in range(20)))
        for new in gone:
            await stage.cancel(new)
        assert await self.started_shares(stage, 2) == ["b", "b"]
        await stage.put(of("a"), of("a"))
        assert await self.started_shares(stage, 4) == ["a", "b", "a", "b"]

    async def test_other_arguments_move_a_run_to_another_share(self, stage: Stage) -> None:
        await self.share_out(stage)
        moved, last = of("a"), of("b")
        await stage.put(of("a"), moved, last)
        edit = RunEdit(run=moved.id, body=OTHER, replaces=moved.body, share="c")
        for expected in (Edited.CHANGED, Edited.UNCHANGED):
            assert (await stage.store.edit([edit])).items == [expected]
        assert (await stage.see(moved)).share == "c"
        found = (await stage.claim(free=9)).runs
        assert [run.share for run in sorted(found, key=lambda run: run.share or "")] == ["a", "b", "c"]
        await stage.put(of("a"))
        assert await self.started_shares(stage, 1) == ["a"], "nothing is left in the share of before"

    async def test_a_limit_holds_beside_turns(self, stage: Stage) -> None:
        await self.share_out(stage, limit=Limit(2, per_key=1))
        await stage.put(*(of("a", key="k") for _ in range(3)), of("b", key="l"), of("b", key="k"))
        first = (await stage.claim(free=9)).runs
        assert [(run.share, run.key) for run in first] == [("a", "k"), ("b", "l")]
        await stage.end(first[0], Succeeded())
        assert len((await stage.claim(free=9)).runs) == 1

    async def test_a_paused_run_comes_back_to_its_share(self, stage: Stage) -> None:
        await self.share_out(stage)
        await stage.put(paused := of("a"), of("b"))
        await stage.pause(paused)
        assert await self.started_shares(stage, 1) == ["b"]
        await stage.resume(paused)
        assert await self.started_shares(stage, 1) == ["a"]

    async def test_a_backlog_delays_another_share_by_one_round(self, stage: Stage) -> None:
        await self.share_out(stage)
        keys, seats = [f"t{n}" for n in range(5)], 4
        for _ in range(4):
            await stage.put(*(of(key) for key in keys for _ in range(25)))
        await self.started_shares(stage, 8, free=seats)
        await stage.put(lone := of("lone"))
        started: list[str] = []
        while lone.id not in started:
            started += ids((await stage.claim("bob", free=seats)).runs)
        assert len(started) <= 2 * (seats + len(keys) + 1)

    async def test_other_tasks_are_not_held_up(self, stage: Stage) -> None:
        await self.share_out(stage)
        await stage.put(other := new_run("other"))
        await stage.put(*(of("a") for _ in range(3)), of("b"))
        stage.wait(1)
        assert other.id in ids((await stage.claim(free=1, tasks=[GREET, "other"])).runs), "it is due for longest"
