"""changes: which workers a store hints. Hints may be lost in general; in these tests they arrive."""

from rota.domain.lifecycle import Failed, Released, Succeeded
from rota.store import IDLE_MEMORY, Backend, ClaimRequest, Retention
from storekit.contract.stage import BOOM, Stage, Staged, new_run


class HintContract(Staged):
    async def test_a_put_hints_as_many_idle_workers_as_it_has_due_runs(self, stage: Stage) -> None:
        for worker in ("ada", "bob", "cyd", "dan"):
            await stage.claim(worker)
        woken: list[int] = []
        hinted: set[str] = set()
        for due in (2, 1, 3):
            async with stage.listening() as ear:
                await stage.put(*(new_run() for _ in range(due)))
                fresh = await ear.workers() - hinted  # a worker that has not claimed since may be hinted again
            woken.append(len(fresh))
            hinted |= fresh
        assert woken == [2, 1, 1]

    async def test_only_a_worker_that_knows_the_task_is_hinted(self, stage: Stage) -> None:
        await stage.claim("ada", tasks=["other"])
        await stage.claim("bob")
        await stage.claim("cyd", tasks=["other"])
        async with stage.listening() as ear:
            await stage.put(new_run(), new_run())
            assert await ear.workers() == {"bob"}

    async def test_a_worker_without_a_free_seat_is_not_hinted_by_a_put(self, stage: Stage) -> None:
        await stage.claim("full", free=0)
        await stage.claim("idle")
        async with stage.listening() as ear:
            await stage.put(new_run())
            assert "idle" in await ear.workers()  # the one hint went to the worker that can use it

    async def test_a_worker_with_seats_left_is_hinted(self, stage: Stage) -> None:
        await stage.put(new_run())
        assert len((await stage.claim("ada", free=2)).runs) == 1
        async with stage.listening() as ear:
            await stage.put(new_run())
            assert await ear.workers() == {"ada"}

    async def test_a_worker_that_wakes_earlier_anyway_is_not_hinted(self, stage: Stage) -> None:
        await stage.put(new_run(delay=60))
        assert (await stage.claim("ada")).wake is not None
        async with stage.listening() as ear:
            await stage.put(new_run(delay=3600))
            assert await ear.workers() == set()

    async def test_a_worker_that_would_wake_too_late_is_hinted(self, stage: Stage) -> None:
        await stage.put(new_run(delay=3600))
        await stage.claim("ada")
        async with stage.listening() as ear:
            await stage.put(new_run(delay=60))
            assert await ear.workers() == {"ada"}

    async def test_the_worker_that_would_sleep_longest_is_hinted(self, stage: Stage) -> None:
        await stage.put(new_run(delay=1800), new_run(delay=3600))
        for worker in ("ada", "bob"):
            await stage.claim(worker)
        async with stage.listening() as ear:
            await stage.put(new_run(delay=60))
            assert await ear.workers() == {"bob"}

    async def test_a_future_run_hints_a_worker_that_knows_of_none(self, stage: Stage) -> None:
        await stage.claim("ada")
        async with stage.listening() as ear:
            await stage.put(new_run(delay=60))
            assert await ear.workers() == {"ada"}

    async def test_a_release_hints_an_idle_worker(self, stage: Stage) -> None:
        run = await stage.running(worker="ada")
        await stage.claim("bob")
        async with stage.listening() as ear:
            await stage.end(run, Released())
            assert "bob" in await ear.workers()

    async def test_a_retry_hints_an_idle_worker(self, stage: Stage) -> None:
        run = await stage.running(worker="ada")
        await stage.claim("bob")
        async with stage.listening() as ear:
            await stage.end(run, Failed(BOOM))
            assert "bob" in await ear.workers()

    async def test_a_finish_hints_no_worker_but_those_who_wait_for_the_run(self, stage: Stage) -> None:
        run = await stage.running(worker="ada")
        await stage.claim("bob")
        async with stage.listening() as ear:
            await stage.end(run, Succeeded())
            heard = await ear.all()
        assert "bob" not in heard.workers
        assert run.id in heard.runs

    async def test_a_silent_idle_worker_is_forgotten(self, stage: Stage) -> None:
        await stage.claim("ada")
        stage.wait(IDLE_MEMORY + 1)
        await stage.claim("bob")
        async with stage.listening() as ear:
            await stage.put(new_run(), new_run())
            assert await ear.workers() == {"bob"}

    async def test_a_hinted_worker_that_claims_again_can_be_hinted_again(self, stage: Stage) -> None:
        await stage.claim("ada")
        for _ in range(2):
            async with stage.listening() as ear:
                await stage.put(new_run())
                assert await ear.workers() == {"ada"}
            await stage.claim("ada", free=2)

    async def test_a_cancel_hints_its_run(self, stage: Stage) -> None:
        run, queued = await stage.running(), new_run()
        await stage.put(queued)
        async with stage.listening() as ear:
            await stage.cancel(run)
            await stage.cancel(queued)
            assert await ear.runs() >= {run.id, queued.id}

    async def test_an_expiry_hints_its_run(self, stage: Stage) -> None:
        late = new_run(expires_after=60)
        await stage.put(late)
        stage.wait(61)
        async with stage.listening() as ear:
            await stage.store.sweep(Retention())
            assert late.id in await ear.runs()

    async def test_a_hint_reaches_every_open_store(self, stage: Stage, backend: Backend) -> None:
        async with backend.open() as other:
            await other.claim(ClaimRequest("bob", 1, ["greet"], 1, 30))
            async with stage.listening() as near, Stage(backend, other).listening() as far:
                await stage.put(new_run())
                assert await near.workers() == {"bob"}
                assert await far.workers() == {"bob"}
