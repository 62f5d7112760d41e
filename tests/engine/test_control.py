"""In control of a run: pausing with checkpoints, progress, verdicts, guards, limits."""

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rota import (
    Context,
    Discard,
    InvalidOptions,
    Limit,
    QueueFull,
    Rate,
    Reason,
    Refused,
    Retry,
    RetryAfter,
    Rota,
    RunFailed,
    Snooze,
    State,
    Task,
    TaskError,
)
from rota.domain.lifecycle import Lost, Succeeded, settlement_of
from rota.store import ClaimRequest, Total, What
from rota.stores.memory import MemoryBackend
from storekit.faults import FaultyBackend


async def test_a_paused_run_goes_on_from_its_checkpoint_elsewhere(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/rota.db"
    first, second = Rota(url), Rota(url)
    at_three = asyncio.Event()

    @first.task(name="count")
    async def count_until_paused(ctx: Context) -> list[int]:
        for n in range(ctx.saved or 0, 4):
            ctx.checkpoint(n)
        at_three.set()
        await asyncio.Event().wait()
        return []

    @second.task(name="count")
    async def count(ctx: Context) -> list[int]:
        return list(range(ctx.saved, 6))

    async with first:
        run = await count.submit()
        await at_three.wait()
        assert await run.pause()
        async with asyncio.timeout(8):  # its worker hears of it by hint; the next renewal comes after 10 s
            while (await run.refresh()).state is not State.PAUSED:
                await first.client().news()
    async with second:
        assert (await run.refresh()).state is State.PAUSED, "nobody takes a paused run"
        assert await run.resume()
        assert await run.result(timeout=10) == [3, 4, 5]
    seen = await run.refresh()
    assert [attempt.outcome for attempt in seen.attempts] == ["paused", "succeeded"]
    assert (seen.failures, seen.losses) == (0, 0)


async def test_progress_is_seen_while_the_handler_runs() -> None:
    app = Rota("memory://")
    said, go = asyncio.Event(), asyncio.Event()

    @app.task
    async def work(ctx: Context) -> None:
        ctx.progress(0.5, "halfway")
        said.set()
        await go.wait()
        ctx.warn("one page was empty")

    async with app:
        run = await work.submit()
        await said.wait()
        async with asyncio.timeout(10):
            while (seen := await run.refresh()).progress is None:
                await app.client().news()
        assert (seen.state, seen.progress.share, seen.progress.message) == (State.RUNNING, 0.5, "halfway")
        go.set()
        await run.result(timeout=10)
    assert (await run.refresh()).attempts[0].warnings == ("one page was empty",)


async def test_a_handler_can_name_the_time_of_its_retry_and_is_charged() -> None:
    app = Rota("memory://")

    @app.task(retry=Retry(1))
    async def busy() -> None:
        raise RetryAfter(0, "come back later")

    async with app:
        run = await busy.submit()
        with pytest.raises(RunFailed, match="come back later"):
            await run.result(timeout=10)
    assert (await run.refresh()).failures == 2


async def test_a_snooze_charges_nothing() -> None:
    app = Rota("memory://")
    calls = 0

    @app.task
    async def patient() -> str:
        nonlocal calls
        calls += 1
        if calls < 4:
            raise Snooze(0)
        return "now"

    async with app:
        run = await patient.submit()
        assert await run.result(timeout=10) == "now"
    seen = await run.refresh()
    assert (seen.failures, [a.outcome for a in seen.attempts]) == (0, ["snoozed"] * 3 + ["succeeded"])


async def test_a_discarded_run_is_not_tried_again() -> None:
    app = Rota("memory://")

    @app.task(retry=Retry(5, delay=0))
    async def hopeless() -> None:
        raise Discard("the account is closed")

    async with app:
        run = await hopeless.submit()
        with pytest.raises(RunFailed, match="the account is closed"):
            await run.result(timeout=10)
    assert ((await run.refresh()).failures, (await run.refresh()).reason) == (1, Reason.DISCARDED)


async def test_partial_is_a_failure_and_skipped_is_a_success() -> None:
    app = Rota("memory://")

    @app.task
    async def load(status: str) -> None:
        raise TaskError(status, "3 of 5")  # type: ignore[arg-type]

    async with app:
        partial, skipped = await load.submit("partial"), await load.submit("skipped")
        with pytest.raises(RunFailed, match="3 of 5"):
            await partial.result(timeout=10)
        await skipped.result(timeout=10)
    assert (await partial.refresh()).reason == "partial"
    assert ((await skipped.refresh()).state, (await skipped.refresh()).reason) == ("succeeded", "skipped")


async def test_a_result_can_mean_failure() -> None:
    app = Rota("memory://")

    @app.task(fail_on=lambda result: result is False)
    def handler(ok: bool) -> bool:
        return ok

    async with app:
        assert await (await handler.submit(True)).result(timeout=10) is True
        with pytest.raises(RunFailed, match="the result False means failure"):
            await (await handler.submit(False)).result(timeout=10)


async def test_a_submit_joins_the_run_that_waits_for_its_key() -> None:
    app = Rota("memory://")
    done: list[int] = []

    @app.task(key="{user}", unique="queued")
    async def summarise(user: str, upto: int) -> None:
        done.append(upto)

    first = await summarise.submit("ada", 1)
    second = await summarise.submit("ada", 2)
    other = await summarise.submit("bob", 3)
    assert (first.created, second.created, other.created) == (True, False, True)
    assert second.id == first.id
    async with app:
        await first.result(timeout=10)
        await other.result(timeout=10)
    assert sorted(done) == [2, 3], "the newest arguments win"


async def test_without_a_key_equal_arguments_are_the_key() -> None:
    app = Rota("memory://")

    @app.task(unique="queued")
    async def fetch(page: int) -> None: ...

    assert (await fetch.submit(1)).id == (await fetch.submit(page=1)).id
    assert (await fetch.submit(1)).id != (await fetch.submit(2)).id


async def test_a_refused_submit_says_why() -> None:
    app = Rota("memory://")
    started, go = asyncio.Event(), asyncio.Event()

    @app.task(key="{name}", unique="active")
    async def exclusive(name: str) -> None:
        started.set()
        await go.wait()

    @app.task(enabled=False)
    async def off() -> None: ...

    async with app:
        run = await exclusive.submit("x")
        await started.wait()
        with pytest.raises(Refused) as caught:
            await exclusive.submit("x")
        assert (caught.value.reason, caught.value.decision.run) == (Reason.ALREADY_RUNNING, run.id)
        with pytest.raises(Refused, match="disabled"):
            await off.submit()
        handles = await app.submit_many([exclusive.bind("x"), exclusive.bind("y")])
        assert [bool(handle) for handle in handles] == [False, True], "one answer per item"
        with pytest.raises(Refused):
            await handles[0].result()
        go.set()


async def test_limits_hold_across_workers() -> None:
    backend = MemoryBackend()
    apps = [Rota(backend, concurrency=10) for _ in range(3)]
    running: dict[str, int] = {}
    most = {"all": 0, "key": 0}

    async def download(host: str) -> None:
        running[host] = running.get(host, 0) + 1
        most["all"] = max(most["all"], sum(running.values()))
        most["key"] = max(most["key"], running[host])
        await asyncio.sleep(0)
        running[host] -= 1

    tasks = [app.task(key="{host}", limit=Limit(4, per_key=1))(download) for app in apps]
    handles = await apps[0].submit_many([tasks[0].bind(f"host{n % 6}") for n in range(60)])
    async with apps[0], apps[1], apps[2]:
        for handle in handles:
            await handle.result(timeout=20)
    assert most["all"] <= 4
    assert most["key"] == 1


async def test_a_rate_spaces_starts_by_the_stores_clock() -> None:
    app = Rota("memory://")

    @app.task(rate=Rate(50, per=1))
    async def call(n: int) -> None: ...

    handles = await app.submit_many([call.bind(n) for n in range(5)])
    async with app:
        for handle in handles:
            await handle.result(timeout=10)
    starts = sorted([(await handle.refresh()).attempts[0].claimed_at for handle in handles])
    assert all(later - earlier >= 0.02 - 1e-4 for earlier, later in pairwise(starts))


async def test_a_full_queue_makes_the_sender_wait_or_says_so() -> None:
    app = Rota("memory://")

    @app.task(max_pending=2)
    async def work(n: int) -> None: ...

    await work.submit(1)
    await work.submit(2)
    with pytest.raises(QueueFull):
        await work.using(wait=False).submit(3)
    waiting = asyncio.create_task(work.using(wait=30).submit(4))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    async with app:
        await (await waiting).result(timeout=10)


async def test_a_paused_task_waits_for_its_resume() -> None:
    app = Rota("memory://")

    @app.task
    async def work() -> str:
        return "done"

    @app.task
    async def other() -> str:
        return "done"

    async with app:
        assert await app.pause("work", note="database is moving")
        run = await work.submit()
        await (await other.submit()).result(timeout=10)
        assert (await run.refresh()).state is State.QUEUED
        assert await app.resume("work")
        assert await run.result(timeout=10) == "done"


def endless_of(app: Rota) -> tuple[Task[[], [], Any, None], asyncio.Event, asyncio.Event]:
    """Return a task that ends only by a cancel, and what is set when it has started and when it is cancelled."""
    started, cancelled = asyncio.Event(), asyncio.Event()

    @app.task
    async def endless() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    return endless, started, cancelled


@pytest.mark.parametrize("mute", [False, True])
async def test_a_cancel_arrives_by_hint_and_by_renewal_alone_when_hints_are_cut(mute: bool) -> None:
    backend = FaultyBackend(MemoryBackend(), mute=mute)
    app = Rota(backend, lease=0.3 if mute else 3600)  # with hints, the next renewal is twenty minutes away
    endless, started, cancelled = endless_of(app)
    async with app:
        run = await endless.submit()
        await started.wait()
        assert await run.cancel()
        await asyncio.wait_for(cancelled.wait(), 10)
    assert (await run.refresh()).state is State.CANCELLED


async def test_renewals_that_fail_are_counted() -> None:
    backend = FaultyBackend(MemoryBackend(), mute=True)
    app = Rota(backend, lease=1.5)
    endless, started, cancelled = endless_of(app)
    async with app.client():
        async with app:
            run = await endless.submit()
            await started.wait()
            backend.fail("renew", "request lost")
            assert await run.cancel()  # its worker hears of it by the renewal behind that one
            await asyncio.wait_for(cancelled.wait(), 10)
        totals = (await app.client().rows(Total)).items
    (count,) = [total.count for total in totals if total.what == What.UNRENEWED]
    assert count >= 1


async def test_a_killer_does_not_take_innocents_with_it() -> None:
    """Five runs lose their worker together; one of them is to blame. The others are cleared one by one."""
    backend = MemoryBackend()
    async with backend.open() as store:
        app = Rota(backend)

        @app.task
        async def work(n: int) -> int:
            return n

        handles = await app.submit_many([work.bind(n) for n in range(5)])
        for crash in range(1, 30):
            claim = await store.claim(ClaimRequest(f"worker{crash}", 1, ["work"], 10, 30))
            guilty = [run for run in claim.runs if run.id == handles[0].id]
            if guilty:  # the worker dies with all it holds
                backend.skew += 31
                lapsed = (await store.claim(ClaimRequest("rescuer", crash, ["work"], 0, 30))).lapsed
                await store.settle([settlement_of(run, Lost()) for run in lapsed])
            else:
                await store.settle([settlement_of(run, Succeeded()) for run in claim.runs])
        runs = [await handle.refresh() for handle in handles]
    assert (runs[0].state, runs[0].reason, runs[0].losses) == (State.FAILED, Reason.POISON, 5)
    assert [run.state for run in runs[1:]] == [State.SUCCEEDED] * 4
    assert [run.losses for run in runs[1:]] == [1] * 4


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"limit": Limit(per_key=1)}, "needs key="),
        ({"rate": Rate(1, per_key=True)}, "needs key="),
        ({"key": "{nobody}"}, "no parameter 'nobody'; there are: n"),
        ({"unique": "always"}, "choose 'queued', 'active' or 'done'"),
        ({"join": "merge"}, "choose keep, push, set or refuse"),
        ({"max_pending": 0}, "a whole number from 1"),
        ({"executor": "thread"}, "needs a plain function"),
        ({"executor": "process"}, "lambda|local|module"),
        ({"aliases": ["two words"]}, "not a task name"),
    ],
)
def test_what_does_not_go_together_is_refused_when_the_task_is_defined(options: dict[str, Any], sentence: str) -> None:
    app = Rota("memory://")

    async def work(n: int) -> None: ...

    with pytest.raises(InvalidOptions, match=sentence):
        app.task(**options)(work)
    assert app.tasks == {}
