"""put: the only verb that adds runs, apart from fire."""

import asyncio
import math
import threading

import msgspec
import pytest

from rota.domain import codec
from rota.domain.decision import Decision, Reason
from rota.domain.lifecycle import Released, Succeeded
from rota.domain.policy import Policy, Retry
from rota.domain.run import NewRun, Run, State, after
from rota.store import ID_MEMORY, Backend, ClaimRequest, Reply, Retention, RunQuery
from storekit.contract.stage import ARGS, GREET, LEASE, Stage, Staged, ids, new_run

FORGETFUL = Retention(succeeded=0, failed=0, most=0, least=0)

AWKWARD = {
    "plain": "Ada",
    "unicode": "Ærøskøbing 東京 🦉 \u202e\ufeff\u2028",
    "nul": "a\x00b\x00",
    "quotes": "'\";--\\ \\u0000 %s {} \n\r\t\x1f\x7f",
    "big": "🦉" * (codec.ARGS_LIMIT // 4 - 10),
}


class PutContract(Staged):
    async def test_a_new_run_is_queued_as_it_was_asked_for(self, stage: Stage) -> None:
        policy = Policy(retry=Retry(3), timeout=5, lost="fail")
        new = new_run(policy=policy, key="user:1", priority=7, delay=90, expires_after=10)
        reply = await stage.store.put([new])
        assert reply.items == [Decision(new.id, Reason.ACCEPTED)]
        assert await stage.see(new) == Run(
            id=new.id,
            task=GREET,
            key="user:1",
            priority=7,
            created_at=reply.now,
            touched_at=reply.now,
            due_at=after(reply.now, 90),
            expires_at=after(after(reply.now, 90), 10),
            args=ARGS,
            policy=policy,
            body=new.body,
        )

    async def test_headers_stay_with_a_run_from_its_put_to_its_end(self, stage: Stage) -> None:
        headers = {"tenant": "acme", "note": "Ærø 🦉 \x00 \"'"}
        new = new_run(headers=headers)
        assert (await stage.running(new)).headers == headers
        await stage.end(await stage.see(new), Released())
        assert (await stage.take()).headers == headers
        await stage.end(await stage.see(new), Succeeded())
        assert (await stage.see(new)).headers == headers
        assert (await stage.running()).headers == {}

    async def test_an_instant_stands_as_it_was_given(self, stage: Stage) -> None:
        at = math.floor(await stage.now()) + 3600.25
        new = new_run(at=at, expires_at=at + 60)
        await stage.put(new)
        run = await stage.see(new)
        assert (run.due_at, run.expires_at) == (at, at + 60)

    async def test_the_same_id_in_one_batch_makes_one_run(self, stage: Stage) -> None:
        first, second = new_run(id="same", priority=1), new_run(id="same", priority=2)
        reply = await stage.store.put([first, second])
        assert reply.items == [Decision("same", Reason.ACCEPTED)] * 2
        (run,) = (await stage.store.runs(RunQuery())).runs
        assert run.priority == 1

    async def test_the_same_id_again_changes_nothing_while_queued(self, stage: Stage) -> None:
        new = new_run(delay=60)
        await stage.put(new)
        before = await stage.see(new)
        stage.wait(30)
        for again in (new, new_run(id=new.id), new_run("other", id=new.id, key="k", priority=50, args=b"[]")):
            await stage.put(again)
            assert await stage.see(new) == before

    async def test_the_same_id_again_changes_nothing_while_running(self, stage: Stage) -> None:
        run = await stage.running()
        await stage.put(new_run(id=run.id))
        assert await stage.see(run) == run
        assert (await stage.claim("bob")).runs == []

    async def test_the_id_of_an_ended_run_is_remembered_for_a_minute_whatever_the_retention(self, stage: Stage) -> None:
        run = await stage.ended()
        stage.wait(ID_MEMORY - 15)
        assert (await stage.store.sweep(FORGETFUL)).forgotten == 0
        await stage.put(new_run(id=run.id))
        assert await stage.see(run) == run

    async def test_the_id_of_a_forgotten_run_makes_a_new_one(self, stage: Stage) -> None:
        run = await stage.ended()
        stage.wait(ID_MEMORY + 1)
        assert (await stage.store.sweep(FORGETFUL)).forgotten == 1
        assert await stage.find(run) == []
        again = await stage.running(new_run(id=run.id))
        assert (again.fence, again.attempts, again.result) == (1, (), None)

    async def test_a_mixed_batch_arrives_in_its_order(self, stage: Stage) -> None:
        guarded = [{"max_pending": 100}, {"unique": "queued"}, {}]
        news = [new_run(key=f"k{place}", **guarded[place % 3]) for place in range(30)]  # type: ignore[arg-type]
        await stage.put(*news)
        assert ids((await stage.claim(free=30)).runs) == ids(news)

    async def test_nothing_is_put_by_an_empty_batch(self, stage: Stage) -> None:
        assert (await stage.store.put([])).items == []
        assert (await stage.store.runs(RunQuery())).runs == []

    async def test_a_thousand_runs_go_in_at_once(self, stage: Stage) -> None:
        batch = [new_run() for _ in range(1000)]
        await stage.put(*batch)
        assert ids((await stage.claim(free=1000)).runs) == ids(batch)

    @pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD.keys())
    async def test_any_text_survives_in_arguments_results_keys_and_notes(self, stage: Stage, text: str) -> None:
        args, short = msgspec.json.encode({"name": text}), text.replace("\x00", "")[:200]
        new = new_run(short, args=args, key=short)
        await stage.put(new)
        (run,) = (await stage.claim(tasks=[short])).runs
        assert (run.args, run.body, run.task, run.key) == (args, new.body, short, short)
        await stage.cancel(run, note=short)
        await stage.end(run, Succeeded(args))
        ended = await stage.see(run)
        assert (ended.args, ended.result, ended.note) == (args, args, short)

    @pytest.mark.parametrize("body", [b"", b"{", b"not JSON", b'{"v":2,"args":{}}', b'{"v":1}', b"[]", b"null"])
    async def test_a_body_that_nobody_can_read_spoils_its_own_run_only(self, stage: Stage, body: bytes) -> None:
        before, after_it = new_run(), new_run()
        strange = NewRun(id="strange", task=GREET, body=body)
        await stage.put(before, strange, after_it)
        claimed = (await stage.claim(free=3)).runs
        assert ids(claimed) == ids([before, strange, after_it])
        assert [run.body for run in claimed] == [before.body, body, after_it.body]
        assert [run.args for run in claimed] == [ARGS, b"", ARGS]
        assert await stage.end(claimed[1], Released()) == "applied"
        assert (await stage.see(strange)).body == body

    async def test_fields_of_a_newer_version_are_kept(self, stage: Stage) -> None:
        body = b'{"v":1,"args":{"name":"Ada"},"hue":"teal","origin":{"kind":"moon","phase":3}}'
        run = await stage.running(NewRun(id="newer", task=GREET, body=body))
        assert (run.args, run.origin.kind, run.body) == (ARGS, "moon", body)

    async def test_what_one_open_store_writes_another_reads(self, stage: Stage, backend: Backend) -> None:
        new = new_run()
        async with backend.open() as other:
            await stage.put(new)
            (seen,) = (await other.runs(RunQuery(ids=[new.id]))).runs
            (run,) = (await other.claim(ClaimRequest("bob", 1, [GREET], 1, 30))).runs
            assert seen.id == run.id == new.id
            assert await stage.see(new) == run
        assert await stage.see(new) == run

    async def test_the_same_id_from_many_at_once_makes_one_run(self, stage: Stage, backend: Backend) -> None:
        new = new_run()
        async with backend.open() as other:
            stores = [stage.store, other] * 10
            replies = await asyncio.gather(*(store.put([new]) for store in stores))
        assert all(reply.items == [Decision(new.id, Reason.ACCEPTED)] for reply in replies)
        assert ids((await stage.store.runs(RunQuery())).runs) == [new.id]
        assert len((await stage.claim(free=5)).runs) == 1

    async def test_a_thread_with_its_own_loop_shares_the_store(self, stage: Stage, backend: Backend) -> None:
        mine, theirs = new_run(), new_run()
        await stage.put(mine)

        async def elsewhere() -> tuple[Reply[Decision], int]:
            async with backend.open() as store:
                found = (await store.runs(RunQuery(ids=[mine.id]))).runs
                assert ids(found) == [mine.id]
                return await store.put([theirs]), threading.get_ident()

        reply, thread = await asyncio.to_thread(asyncio.run, elsewhere())
        assert all(reply.items)
        assert thread != threading.get_ident()
        assert (await stage.see(theirs)).state is State.QUEUED

    async def test_the_clock_never_goes_back(self, stage: Stage) -> None:
        stage.wait(1000)
        seen = [await stage.now()]
        stage.wait(-1000)
        new = new_run()
        seen += [await stage.now(), (await stage.store.put([new])).now]
        run = await stage.take()
        seen += [run.claimed_at or 0.0, (await stage.store.renew([run.lease], 30)).now]
        seen.append((await stage.store.settle([])).now)
        seen.append((await stage.store.sweep(Retention())).now)
        seen.append((await stage.store.depths()).now)
        assert seen == sorted(seen)

    async def test_a_clock_that_was_more_than_an_hour_ahead_is_given_up(self, stage: Stage) -> None:
        stage.wait(2 * 3600)
        ahead = (await stage.store.put([new_run("elsewhere")])).now
        stage.wait(-2 * 3600)
        assert await stage.now() < ahead - 3600
        await stage.put(soon := new_run(delay=1))
        stage.wait(2)
        run = await stage.take()
        assert run.id == soon.id
        stage.wait(LEASE + 1)
        assert ids((await stage.claim("bob")).lapsed) == [soon.id]

    async def test_a_delay_counts_from_the_clock_of_the_store(self, stage: Stage) -> None:
        stage.wait(1_000_000)
        before = await stage.now()
        new = new_run(delay=60)
        await stage.put(new)
        assert before + 60 <= (await stage.see(new)).due_at <= await stage.now() + 61
