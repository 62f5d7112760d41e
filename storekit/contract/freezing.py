"""freeze: nothing starts while the store is frozen."""

import pytest

from rota.domain.lifecycle import Succeeded
from rota.domain.run import State
from rota.domain.settlement import Verdict
from rota.store import Freeze, Renewal
from storekit.contract.stage import Stage, Staged, ids, new_run


class FreezeContract(Staged):
    async def frozen(self, stage: Stage) -> list[Freeze]:
        return (await stage.store.rows(Freeze)).items

    async def freeze(self, stage: Stage, until: float | None = None, note: str | None = "upgrade") -> bool:
        (changed,) = (await stage.store.freeze(True, until, note, "eve")).items
        return changed

    async def thaw(self, stage: Stage) -> bool:
        (changed,) = (await stage.store.freeze(False)).items
        return changed

    async def test_nothing_starts_until_the_thaw(self, stage: Stage) -> None:
        new = new_run()
        await stage.put(new)
        assert await self.frozen(stage) == []
        assert await self.freeze(stage) is True
        (freeze,) = await self.frozen(stage)
        assert (freeze.until, freeze.note, freeze.by) == (None, "upgrade", "eve")
        assert (await stage.claim(free=5)).runs == []
        other = new_run("other")
        await stage.put(other)
        assert (await stage.claim("bob", free=5, tasks=["greet", "other"])).runs == []
        assert await self.thaw(stage) is True
        assert await self.frozen(stage) == []
        assert ids((await stage.claim("bob", free=5, tasks=["greet", "other"])).runs) == ids([new, other])

    async def test_a_freeze_ends_by_the_clock_of_the_store(self, stage: Stage) -> None:
        new = new_run()
        await stage.put(new)
        assert await self.freeze(stage, await stage.now() + 60) is True
        claim = await stage.claim()
        assert claim.runs == []
        assert claim.wake == pytest.approx(60, abs=30), "the worker sleeps until then"
        stage.wait(61)
        assert await self.frozen(stage) == []
        assert ids((await stage.claim()).runs) == [new.id]
        assert await self.thaw(stage) is False

    async def test_what_runs_goes_on(self, stage: Stage) -> None:
        run = await stage.running()
        await self.freeze(stage)
        assert await stage.renew(run) is Renewal.OK
        assert await stage.end(run, Succeeded()) is Verdict.APPLIED
        assert (await stage.see(run)).state is State.SUCCEEDED

    async def test_the_same_again_changes_nothing(self, stage: Stage) -> None:
        assert await self.thaw(stage) is False
        assert await self.freeze(stage, 2e9) is True
        (first,) = await self.frozen(stage)
        stage.wait(5)
        assert await self.freeze(stage, 2e9) is False
        assert await self.frozen(stage) == [first]
        assert await self.freeze(stage, 2e9, "longer") is True
        assert [freeze.note for freeze in await self.frozen(stage)] == ["longer"]
        assert await self.freeze(stage, None, None) is True
        assert await self.thaw(stage) is True
        assert await self.thaw(stage) is False

    async def test_no_run_is_handed_over_meanwhile(self, stage: Stage) -> None:
        await self.freeze(stage)
        await stage.claim("ada", ready=True)
        new = new_run()
        await stage.put(new)
        assert (await stage.see(new)).state is State.QUEUED

    async def test_a_thaw_wakes_idle_workers(self, stage: Stage) -> None:
        await self.freeze(stage)
        await stage.declare()
        await stage.put(new_run(), new_run())
        await stage.claim("ada")
        await stage.claim("bob")
        async with stage.listening() as ear:
            await self.thaw(stage)
            assert {"ada", "bob"} <= await ear.workers()
