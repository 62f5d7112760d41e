"""direct: what people ask of workers, and how a worker hears of it."""

from rota.domain.lifecycle import Succeeded, settlement_of
from rota.store import Orders, Renewal, Report, RowQuery, Verdict, WorkerSeen
from storekit.contract.stage import Stage, Staged, new_run


async def orders_of(stage: Stage, worker: str) -> Orders:
    (seen,) = (await stage.store.rows(WorkerSeen, RowQuery(names=[worker]))).items
    return seen.orders


class DirectContract(Staged):
    async def test_a_worker_hears_its_orders_with_every_claim(self, stage: Stage) -> None:
        assert (await stage.claim("ada")).orders == Orders()
        assert (await stage.store.direct(["ada"], seats=3)).items == [True]
        assert (await stage.store.direct(["ada"], quiet=True)).items == [True]
        for _ in range(2):
            assert (await stage.claim("ada")).orders == Orders(seats=3, quiet=True), "a claim does not use them up"
        assert (await stage.claim("ada", again=True)).orders == Orders(seats=3, quiet=True)
        assert (await stage.claim("ada", report=Report(seats=3))).orders == Orders(seats=3, quiet=True)
        assert (await stage.claim("bob")).orders == Orders()
        assert await orders_of(stage, "ada") == Orders(seats=3, quiet=True)

    async def test_orders_are_taken_back_one_by_one(self, stage: Stage) -> None:
        await stage.claim("ada")
        await stage.store.direct(["ada"], seats=7, quiet=True)
        assert (await stage.store.direct(["ada"], quiet=False)).items == [True]
        assert (await stage.claim("ada")).orders == Orders(seats=7)
        assert (await stage.store.direct(["ada"], seats=0)).items == [True]
        assert (await stage.claim("ada")).orders == Orders()

    async def test_a_stop_stays(self, stage: Stage) -> None:
        await stage.claim("ada")
        assert (await stage.store.direct(["ada"], stop=True)).items == [True]
        assert (await stage.store.direct(["ada"], stop=False)).items == [False]
        assert (await stage.claim("ada")).orders == Orders(stop=True)

    async def test_the_same_order_again_changes_nothing(self, stage: Stage) -> None:
        await stage.claim("ada")
        answers = [(await stage.store.direct(["ada"], seats=3, quiet=True, stop=True)).items for _ in range(2)]
        assert answers == [[True], [False]]

    async def test_unknown_and_impossible_names_are_answered_in_their_places(self, stage: Stage) -> None:
        await stage.claim("ada")
        names = ["nobody", "ada", "a\x00b", "\udc80"]
        assert (await stage.store.direct(names, quiet=True)).items == [False, True, False, False]
        assert (await stage.store.direct([], quiet=True)).items == []
        assert [seen.name for seen in (await stage.store.rows(WorkerSeen)).items] == ["ada"]

    async def test_a_worker_is_hinted_although_it_has_no_free_seat(self, stage: Stage) -> None:
        await stage.claim("ada", free=0)
        async with stage.listening() as ear:
            await stage.store.direct(["ada"], quiet=True)
            assert await ear.workers() == {"ada"}

    async def test_orders_leave_the_runs_of_the_worker_alone(self, stage: Stage) -> None:
        await stage.put(new_run())
        (run,) = (await stage.claim("ada")).runs
        await stage.store.direct(["ada"], quiet=True, stop=True)
        assert await stage.renew(run) is Renewal.OK
        assert await stage.settle(settlement_of(run, Succeeded(b"1"))) is Verdict.APPLIED
