"""renew, and what happens to leases that are not renewed."""

import asyncio
from itertools import pairwise

from rota.domain.lifecycle import Lost, Released, Succeeded
from rota.domain.run import Lease, Note, after
from rota.domain.settlement import Verdict
from rota.store import OFFER_AGAIN, OFFERS, Renewal
from storekit.contract.stage import LEASE, Stage, Staged, ids, new_run


class LeaseContract(Staged):
    async def test_renewing_extends_a_lease_from_now(self, stage: Stage) -> None:
        run = await stage.running()
        stage.wait(10)
        reply = await stage.store.renew([run.lease], 50)
        assert reply.items == [Renewal.OK]
        seen = await stage.see(run)
        assert seen.until == after(reply.now, 50)
        assert (seen.state, seen.fence, seen.claimed_at) == (run.state, run.fence, run.claimed_at)

    async def test_a_renewed_lease_does_not_lapse(self, stage: Stage) -> None:
        run = await stage.running()
        for _ in range(3):
            stage.wait(LEASE - 10)
            assert await stage.renew(run) is Renewal.OK
        assert (await stage.claim("bob")).lapsed == []
        assert await stage.end(run, Lost()) is Verdict.STALE

    async def test_a_lapsed_lease_that_nobody_rescued_can_be_renewed(self, stage: Stage) -> None:
        run = await stage.lapsed()
        (offered,) = (await stage.claim("bob")).lapsed
        assert await stage.renew(run) is Renewal.OK
        assert await stage.end(offered, Lost()) is Verdict.STALE
        assert (await stage.claim("bob")).lapsed == []
        assert await stage.end(run, Succeeded()) is Verdict.APPLIED

    async def test_a_lease_is_lost_to_rescue_settlement_and_reclaim(self, stage: Stage) -> None:
        run = await stage.lapsed()
        await stage.end(run, Lost())
        assert await stage.renew(run) is Renewal.LOST
        again = await stage.take()
        assert await stage.renew(run) is Renewal.LOST
        assert await stage.see(run) == again
        await stage.end(again, Succeeded())
        ended = await stage.see(run)
        assert await stage.renew(again) is Renewal.LOST
        assert await stage.see(run) == ended

    async def test_leases_are_answered_one_by_one_and_in_order(self, stage: Stage) -> None:
        await stage.put(*(new_run() for _ in range(3)))
        ok, gone, cancelled = (await stage.claim(free=3)).runs
        await stage.end(gone, Released())
        await stage.cancel(cancelled)
        leases = [cancelled.lease, Lease("never-put", 1, "ada"), ok.lease, gone.lease, ok.lease]
        reply = await stage.store.renew(leases, 500)
        cancel, lost = Renewal.CANCEL, Renewal.LOST
        assert reply.items == [cancel, lost, Renewal.OK, lost, Renewal.OK]
        assert [run.until for run in await stage.find(ok, gone, cancelled)] == [
            after(reply.now, 500),
            None,
            after(reply.now, 500),
        ]

    async def test_a_lease_under_the_same_fence_of_another_worker_is_lost(self, stage: Stage) -> None:
        run = await stage.running()
        note = Note(saved=b"1")
        reply = await stage.store.renew([Lease(run.id, run.fence, "bob")], 500, {run.id: note})
        assert reply.items == [Renewal.LOST]
        assert await stage.see(run) == run
        both = await stage.store.renew([Lease(run.id, run.fence, "bob"), run.lease], 500)
        assert both.items == [Renewal.LOST, Renewal.OK]

    async def test_renewing_nothing_is_answered_with_the_time(self, stage: Stage) -> None:
        assert (await stage.store.renew([], LEASE)).items == []

    async def test_a_lease_is_not_offered_before_it_lapses(self, stage: Stage) -> None:
        await stage.running()
        stage.wait(LEASE - 10)
        assert (await stage.claim("bob")).lapsed == []

    async def test_a_lapsed_lease_is_offered_as_it_stands(self, stage: Stage) -> None:
        run = await stage.lapsed()
        claim = await stage.claim("bob", tasks=[])
        assert claim.lapsed == [run]
        assert claim.runs == []
        assert await stage.see(run) == run

    async def test_a_lapsed_lease_is_offered_to_one_claimer_at_a_time(self, stage: Stage) -> None:
        run = await stage.lapsed()
        claims = await asyncio.gather(*(stage.claim(f"w{i}") for i in range(20)))
        offers = sorted(claim.now for claim in claims if claim.lapsed)
        slack = 10**-4
        assert all(b - a >= OFFER_AGAIN - slack for a, b in pairwise(offers))
        assert offers
        stage.wait(OFFER_AGAIN + 0.1)
        assert (await stage.claim("bob")).lapsed == [run]

    async def test_an_offer_ends_with_the_lease(self, stage: Stage) -> None:
        run = await stage.lapsed()
        await stage.claim("bob")
        await stage.end(run, Lost())
        stage.wait(OFFER_AGAIN + 1)
        again = await stage.claim("bob")
        assert (ids(again.runs), again.lapsed) == ([run.id], [])

    async def test_no_more_than_a_hundred_are_offered_at_once(self, stage: Stage) -> None:
        news = [new_run() for _ in range(OFFERS + 20)]
        await stage.put(*news)
        await stage.claim(free=len(news))
        stage.wait(LEASE + 1)
        first, second = await stage.claim("bob", free=0), await stage.claim("cyd", free=0)
        assert len(first.lapsed) == OFFERS
        assert {*ids(first.lapsed), *ids(second.lapsed)} == {*ids(news)}
