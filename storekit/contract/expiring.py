"""Expiry: a run that expires never starts; a run that has started does not expire."""

from rota.domain.decision import Reason
from rota.domain.lifecycle import Failed, Lost, Released, Succeeded
from rota.domain.run import NewRun, Run, State
from rota.domain.settlement import Verdict
from rota.store import Retention
from storekit.contract.stage import BOOM, LEASE, Stage, Staged, ids, new_run


class ExpiryContract(Staged):
    async def expired(self, stage: Stage, run: Run | NewRun) -> bool:
        await stage.store.sweep(Retention())
        seen = await stage.see(run)
        return (seen.state, seen.reason) == (State.CANCELLED, Reason.EXPIRED)

    async def test_an_expired_run_is_never_claimed(self, stage: Stage) -> None:
        late, fine = new_run(expires_after=60), new_run()
        await stage.put(late, fine)
        stage.wait(61)
        claim = await stage.claim(free=5)
        assert ids(claim.runs) == [fine.id]
        assert list(claim.ended) == [late.id], "whoever ends a run can tell of it"
        assert await self.expired(stage, late)
        assert list((await stage.claim(free=5)).ended) == []

    async def test_a_sweep_expires_what_nobody_claims(self, stage: Stage) -> None:
        late = new_run("elsewhere", expires_after=60)
        sooner = new_run("elsewhere", delay=86_400, expires_at=await stage.now() + 90)
        fine = new_run("elsewhere", expires_after=3600)
        await stage.put(late, sooner, fine)
        assert (await stage.store.sweep(Retention())).expired == 0
        stage.wait(91)
        swept = await stage.store.sweep(Retention())
        assert swept.expired == 2
        assert sorted(swept.ended) == sorted([late.id, sooner.id])
        seen = await stage.find(late, sooner, fine)
        assert [run.state for run in seen] == [State.CANCELLED, State.CANCELLED, State.QUEUED]
        assert [run.finished_at for run in seen] == [swept.now, swept.now, None]
        assert (await stage.store.sweep(Retention())).expired == 0

    async def test_expiry_counts_from_the_due_time(self, stage: Stage) -> None:
        later = new_run(delay=3600, expires_after=60)
        await stage.put(later)
        stage.wait(3610)
        assert (await stage.take()).id == later.id

    async def test_a_claimed_run_does_not_expire(self, stage: Stage) -> None:
        run = await stage.running(new_run(expires_after=60))
        stage.wait(3600)
        assert not await self.expired(stage, run)
        assert await stage.end(run, Succeeded()) is Verdict.APPLIED

    async def test_once_its_handler_was_called_a_run_does_not_expire(self, stage: Stage) -> None:
        for outcome in (Failed(BOOM), Lost()):
            run = await stage.running(new_run(expires_after=60))
            stage.wait(LEASE + 1)
            assert await stage.end(run, outcome) is Verdict.APPLIED
            assert (await stage.see(run)).expires_at is None
            stage.wait(3600)
            assert not await self.expired(stage, run)
            await stage.end(await stage.take(), Succeeded())

    async def test_a_release_before_the_call_leaves_the_expiry(self, stage: Stage) -> None:
        run = await stage.running(new_run(expires_after=60))
        await stage.end(run, Released())
        assert (await stage.see(run)).expires_at == run.expires_at
        stage.wait(61)
        assert (await stage.claim()).runs == []
        assert await self.expired(stage, run)

    async def test_a_run_released_after_its_expiry_expires(self, stage: Stage) -> None:
        run = await stage.running(new_run("greet", expires_after=60))
        stage.wait(61)
        assert not await self.expired(stage, run)
        await stage.end(run, Released())
        assert await self.expired(stage, run)

    async def test_an_expired_run_cannot_be_cancelled(self, stage: Stage) -> None:
        late = new_run(expires_after=60)
        await stage.put(late)
        stage.wait(61)
        assert await self.expired(stage, late)
        assert await stage.cancel(late) is False
        assert await self.expired(stage, late)
