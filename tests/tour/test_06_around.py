"""The tour, part 6: what is around a run: ids, headers, middleware, callbacks, limits over tasks, windows, leases."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rota import (
    AtStart,
    CallNext,
    Context,
    Count,
    Ended,
    Every,
    IdConflict,
    Limit,
    Reason,
    Refused,
    Rota,
    State,
    Submission,
)
from rota.store import WorkerSeen
from rota.testing import drain, simulate
from rota.testing.simulation import Simulation

START = datetime(2026, 5, 4, tzinfo=UTC)


async def test_an_id_of_your_own_makes_a_submit_safe_to_repeat() -> None:
    app = Rota("memory://")

    @app.task
    async def ship(order: int) -> str:
        return f"shipped {order}"

    async with app:
        first = await ship.using(id="order-17").submit(17)
        assert await first.result(timeout=10) == "shipped 17"
        again = await ship.using(id="order-17").submit(17)
        assert (again.id, again.created) == ("order-17", False)
        with pytest.raises(IdConflict):
            await ship.using(id="order-17").submit(18)


async def test_headers_travel_with_a_run_and_with_what_it_submits() -> None:
    app = Rota("memory://")

    @app.task
    async def resize(path: str) -> str:
        return f"{path} for {Context.current().headers['tenant']}"

    @app.task
    async def upload(path: str) -> str:
        return (await resize.submit(path)).id

    async with app:
        run = await upload.using(headers={"tenant": "acme"}).submit("a.png")
        assert await app.handle(await run.result(timeout=10)).result(timeout=10) == "a.png for acme"


async def test_middleware_is_around_a_call_and_a_hook_before_a_submit() -> None:
    async def shouting(ctx: Context, call: CallNext) -> object:
        return f"{await call()}!"

    app = Rota("memory://", middleware=[shouting])

    @app.before_submit
    def signed(submission: Submission) -> dict[str, str]:
        return {"user": "ada"}

    @app.task
    async def greet(ctx: Context) -> str:
        return f"hello {ctx.headers['user']}"

    async with app:
        assert await (await greet.submit()).result(timeout=10) == "hello ada!"


async def test_the_end_of_a_run_calls_another_task_once() -> None:
    app = Rota("memory://")
    told: list[str] = []

    @app.task
    async def notify(ended: Ended) -> None:
        told.append(f"{ended.task} {ended.state}: {ended.error}")

    @app.task(on_failure=notify)
    async def charge() -> None:
        raise ValueError("no account")

    async with app.client():
        await charge.submit()
        await drain(app)
    assert told == ["charge failed: ValueError: no account"]


async def test_tasks_share_a_limit_by_its_name() -> None:
    app = Rota("memory://", concurrency=8)
    busy = most = 0

    async def work() -> None:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0)
        busy -= 1

    train = app.task(name="train", limit=Limit(2, name="gpu"))(work)
    paint = app.task(name="paint", limit=Limit(2, name="gpu"))(work)
    async with app.client():
        await app.submit_many([train.bind() for _ in range(10)])
        await app.submit_many([paint.bind() for _ in range(10)])
        await drain(app)
    assert most == 2


def test_a_success_keeps_others_out_for_a_while_also_over_several_tasks() -> None:
    app = Rota("memory://")

    @app.task(key="{invoice}", unique="done", unique_in="invoice", within=600)
    async def bill(invoice: int) -> None: ...

    @app.task(key="{invoice}", unique="done", unique_in="invoice", within=600)
    async def refund(invoice: int) -> None: ...

    async def scenario(simulation: Simulation) -> None:
        await (await bill.submit(17)).result()
        with pytest.raises(Refused) as refused:
            await refund.submit(17)
        assert refused.value.reason is Reason.ALREADY_DONE
        await asyncio.sleep(601)
        await (await refund.submit(17)).result()

    simulate(app, START, START + timedelta(hours=1), scenario=scenario)


def test_one_submit_has_a_window_of_its_own() -> None:
    app = Rota("memory://")

    @app.task
    async def resize(path: str) -> None: ...

    async def scenario(simulation: Simulation) -> None:
        once = resize.using(key="a.png", unique="done", within=600)
        await (await once.submit("a.png")).result()
        with pytest.raises(Refused, match="already_done"):
            await once.submit("a.png")
        await (await resize.using(key="a.png").submit("a.png")).result()  # this one does not ask
        await asyncio.sleep(601)
        await (await once.submit("a.png")).result()
        assert await app.runs(task="resize").count() == Count(3)

    simulate(app, START, START + timedelta(hours=1), scenario=scenario)


async def test_one_key_can_be_paused_and_everything_frozen() -> None:
    app = Rota("memory://")
    called: list[str] = []

    @app.task(key="{user}")
    async def mail(user: str) -> None:
        called.append(user)

    async with app:
        await app.pause("mail", key="bob")
        bob, ada = await mail.submit("bob"), await mail.submit("ada")
        await ada.result(timeout=10)
        assert "is paused" in str(await app.why(bob.id))
        await app.freeze(note="upgrade")
        await app.resume("mail", key="bob")
        assert (await bob.refresh()).state is State.QUEUED
        await app.thaw()
        await bob.result(timeout=10)
    assert called == ["ada", "bob"]


def test_a_schedule_buffers_its_ticks_and_another_fires_at_the_start() -> None:
    app = Rota("memory://")
    pages: list[int] = []

    @app.task(schedule=Every(minutes=1), overlap="buffer", times=3)
    async def import_page(ctx: Context) -> None:
        await asyncio.sleep(150)
        assert ctx.nominal is not None
        pages.append((ctx.nominal - START).seconds // 60)

    @app.task(schedule=AtStart())
    async def warm() -> None: ...

    hour = simulate(app, START, START + timedelta(hours=1))
    assert pages == [1, 2, 3], "each tick, in order, one after the other"
    assert len(hour.of(warm)) == 1


def test_a_program_without_an_event_loop_runs_the_engine_and_takes_a_lease() -> None:
    app = Rota("memory://")

    @app.task
    def double(n: int) -> int:
        return 2 * n

    with app.running():
        assert double.submit_sync(4).result_sync(timeout=10) == 8
        with app.lease_sync("nightly", seconds=60) as fence:
            assert fence >= 1


async def test_other_processes_read_what_was_published_and_ask_a_worker_to_be_quiet(tmp_path: Path) -> None:
    app, other = Rota(f"sqlite:///{tmp_path}/rota.db"), Rota(f"sqlite:///{tmp_path}/rota.db")

    @app.task(limit=Limit(3), keep="1h")
    async def resize(path: str) -> str:
        return path

    async with app, other.client():
        published = await other.published("resize")
        assert (published.parameters, published.limit) == (("path",), Limit(3))
        while not (names := await other.workers.names()):
            await other.client().news(0.02)
        assert await other.workers.quiet(names[0])
        assert await other.workers.seats(names[0], 2)
        while (await other.client().rows(WorkerSeen)).items[0].report.seats != 2:
            await other.client().news(0.02)  # a worker does what it is asked with its next claim
        run = await other.submit("resize", "a.png")
        assert "quiet" in str(await run.why())
        assert await other.workers.resume(names[0])
        assert await run.result(timeout=10) == "a.png"
