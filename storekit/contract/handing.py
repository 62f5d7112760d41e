"""Hand-over: a put may lease its run to a worker that is ready. In a store without hand-over, a claim returns the run.

A hint may be lost: in these tests a worker takes the run of the hint, or acts as if it had heard nothing.
"""

import pytest

from rota.domain.guards import Join
from rota.domain.lifecycle import Lost, Succeeded
from rota.domain.policy import Limit
from rota.domain.run import Run, State
from rota.domain.settlement import Verdict
from rota.store import Command, Renewal, Scope
from storekit.contract.stage import GREET, LEASE, Ear, Stage, Staged, ids, new_run, token


async def taken(stage: Stage, ear: Ear, worker: str = "ada") -> Run:
    """Return the one run that the worker gets: by hand-over or by a claim."""
    handed = await ear.handed()
    if handed is None:
        return await stage.take(worker)
    assert (handed.worker, handed.token) == (worker, token(worker, stage.claims[worker]))
    assert (await stage.claim(worker, took=handed.run.id)).runs == []
    return handed.run


class HandContract(Staged):
    async def test_what_comes_to_a_ready_worker_is_leased_once(self, stage: Stage) -> None:
        async with stage.listening() as ear:
            await stage.claim("ada", ready=True)
            new = new_run(key="k", args=b'{"name":"' + b"x" * 5000 + b'"}')
            await stage.put(new)
            run = await taken(stage, ear)
        seen = await stage.see(new)
        assert (run.id, run.fence, run.worker, run.state, run.key) == (new.id, 1, "ada", State.RUNNING, "k")
        assert (run.args, run.lease, run.claimed_at) == (seen.args, seen.lease, seen.claimed_at)
        assert (seen.until or 0) >= (run.claimed_at or 0) + LEASE, (
            "a whole lease, once the worker has said that it took it"
        )
        assert (await stage.claim("bob")).runs == []
        assert await stage.renew(run) is Renewal.OK
        assert await stage.end(run, Succeeded(b"1")) is Verdict.APPLIED
        assert (await stage.see(new)).result == b"1"

    async def test_what_a_ready_worker_did_not_hear_comes_with_its_next_claim(self, stage: Stage) -> None:
        async with stage.store.changes():
            await stage.claim("ada", ready=True)
            new, later = new_run(), new_run()
            await stage.put(new)
            for again in (False, True, True):
                claim = await stage.claim("ada", again=again, ready=True)
                assert ids(claim.runs) == [new.id]
                assert claim.runs[0].fence == 1
            await stage.put(later)
            found = [*(await stage.claim("bob")).runs, *(await stage.claim("ada", free=2)).runs]
            assert ids(found) == [later.id]
        assert await stage.end(claim.runs[0], Succeeded()) is Verdict.APPLIED

    async def test_a_claim_whose_reply_was_lost_tells_what_was_handed_since(self, stage: Stage) -> None:
        async with stage.store.changes():
            await stage.claim("ada", free=5, ready=True)
            new = new_run()
            await stage.put(new)
            found = (await stage.claim("ada", free=5, ready=True, again=True)).runs
            found += (await stage.claim("ada", free=5, ready=True)).runs
        assert ids(found) == [new.id]

    async def test_a_handed_run_takes_one_of_the_free_seats(self, stage: Stage) -> None:
        async with stage.store.changes():
            await stage.claim("ada", ready=True)
            news = [new_run() for _ in range(4)]
            await stage.put(news[0])
            await stage.put(*news[1:])
            assert ids((await stage.claim("ada", free=2)).runs) == ids(news[:2])
            assert ids((await stage.claim("bob", free=5)).runs) == ids(news[2:])

    async def test_a_put_sent_again_hands_nothing_more(self, stage: Stage) -> None:
        async with stage.store.changes():
            await stage.claim("ada", ready=True)
            await stage.claim("bob", ready=True)
            new = new_run()
            await stage.put(new)
            await stage.put(new)
            found = [run for worker in ("ada", "bob") for run in (await stage.claim(worker)).runs]
        assert ids(found) == [new.id]

    async def test_a_handed_run_whose_worker_is_gone_lapses(self, stage: Stage) -> None:
        async with stage.listening() as ear:
            await stage.claim("ada", ready=True)
            new = new_run()
            await stage.put(new)
            run = await taken(stage, ear)
        stage.wait(LEASE + 1)
        assert ids((await stage.claim("bob")).lapsed) == [new.id]
        assert await stage.end(run, Lost()) is Verdict.APPLIED

    async def test_nobody_is_handed_more_than_the_limit_of_a_task(self, stage: Stage) -> None:
        await stage.declare(limit=Limit(1))
        async with stage.store.changes():
            for worker in ("ada", "bob"):
                await stage.claim(worker, ready=True)
            for _ in range(2):
                await stage.put(new_run())
            found = [run for worker in ("ada", "bob") for run in (await stage.claim(worker)).runs]
        assert len(found) == 1

    @pytest.mark.parametrize("case", ["paused", "waiting", "not due", "too late"])
    async def test_nothing_is_handed_out_that_may_not_start(self, stage: Stage, case: str) -> None:
        other = new_run("other")
        await stage.put(other)
        await stage.store.control(Command.PAUSE, ["held"], of=Scope.TASKS)
        now = await stage.now()
        new = {
            "paused": new_run("held"),
            "waiting": new_run(needs=[other.id]),
            "not due": new_run(delay=60),
            "too late": new_run(at=now - 100, expires_at=now - 50),
        }[case]
        async with stage.listening() as ear:
            await stage.claim("ada", tasks=[GREET, "held"], ready=True)
            await stage.put(new)
            assert await ear.handed() is None
        assert (await stage.claim("ada", tasks=[GREET, "held"])).runs == []

    async def test_what_a_batch_says_of_its_own_runs_goes_with_the_handed_one(self, stage: Stage) -> None:
        async with stage.listening() as ear:
            await stage.claim("ada", ready=True)
            parent = new_run()
            child = new_run(needs=[parent.id])
            await stage.put(parent, child)
            run = await taken(stage, ear)
        assert run.id == parent.id
        assert await stage.end(run, Succeeded()) is Verdict.APPLIED
        assert ids((await stage.claim("bob")).runs) == [child.id]

    async def test_the_newest_arguments_of_a_batch_are_handed_over(self, stage: Stage) -> None:
        async with stage.listening() as ear:
            await stage.claim("ada", ready=True)
            first, second = [new_run(key="k", unique="queued", args=args) for args in (b'{"n":1}', b'{"n":2}')]
            await stage.store.put([first, second])
            run = await taken(stage, ear)
        assert (run.id, run.args) == (first.id, b'{"n":2}')
        assert await stage.end(run, Succeeded()) is Verdict.APPLIED

    @pytest.mark.parametrize("join", ["push", "set"])
    async def test_what_its_own_batch_moves_to_later_is_not_handed_over(self, stage: Stage, join: Join) -> None:
        first, second = new_run(key="k", unique="queued"), new_run(key="k", unique="queued", join=join, delay=60)
        async with stage.listening() as ear:
            await stage.claim("ada", ready=True)
            await stage.store.put([first, second])
            assert await ear.handed() is None
        assert (await stage.claim("ada", ready=True)).runs == []
        stage.wait(61)
        assert (await stage.take()).id == first.id

    async def test_what_is_not_taken_comes_back_soon(self, stage: Stage) -> None:
        async with stage.listening() as ear:
            await stage.claim("ada", ready=True)
            new = new_run()
            await stage.put(new)
            handed = await ear.handed()
        if handed is None:
            assert ids((await stage.claim("bob")).runs) == [new.id]
            return
        stage.wait(LEASE / 2)
        assert ids((await stage.claim("bob")).lapsed) == [new.id]

    async def test_a_worker_that_has_found_something_is_handed_nothing(self, stage: Stage) -> None:
        await stage.put(new_run())
        async with stage.listening() as ear:
            assert len((await stage.claim("ada", free=5, ready=True)).runs) == 1
            await stage.put(new_run())
            assert await ear.handed() is None
        assert len((await stage.claim("bob")).runs) == 1

    async def test_a_worker_that_is_not_ready_is_handed_nothing(self, stage: Stage) -> None:
        async with stage.listening() as ear:
            await stage.claim("ada")
            await stage.put(new_run())
            assert await ear.handed() is None
        assert len((await stage.claim("bob")).runs) == 1
