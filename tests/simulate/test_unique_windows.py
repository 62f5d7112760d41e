"""Unique keys over time (`within=`) and over tasks (`unique_in=`), as users write them, in virtual time."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota import InvalidOptions, Reason, Refused, Rota, RunFailed, Sliding
from rota.testing import simulate
from rota.testing.simulation import Simulation

START = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


def test_a_success_keeps_others_out_for_as_long_as_the_window_lasts() -> None:
    app, done = Rota("memory://"), list[str]()

    @app.task(key="{user}", unique="done", within=600)
    async def greet(user: str) -> None:
        done.append(user)

    @app.task(key="{user}", unique="done", within=Sliding(600))
    async def remind(user: str) -> None:
        done.append(f"remind {user}")

    async def asks(simulation: Simulation) -> None:
        await (await greet.submit("ada")).result()
        await (await remind.submit("ada")).result()
        for _ in range(3):
            await asyncio.sleep(250)
            with pytest.raises(Refused):
                await remind.submit("ada")
        await (await greet.submit("ada")).result()
        await asyncio.sleep(601)
        await (await remind.submit("ada")).result()

    simulate(app, START, START + timedelta(hours=1), scenario=asks)
    assert done == ["ada", "remind ada", "ada", "remind ada"]


def test_a_submit_may_have_a_window_of_its_own() -> None:
    app, done = Rota("memory://"), list[str]()

    @app.task(key="{user}")
    async def greet(user: str) -> None:
        done.append(user)

    async def asks(simulation: Simulation) -> None:
        once = greet.using(unique="done", within=600)
        await (await once.submit("ada")).result()
        await asyncio.sleep(599)
        with pytest.raises(Refused) as refused:
            await once.submit("ada")
        assert refused.value.decision.reason is Reason.ALREADY_DONE
        await (await greet.submit("ada")).result()
        await asyncio.sleep(2)
        await (await once.submit("ada")).result()
        await asyncio.sleep(590)
        with pytest.raises(Refused):
            await greet.using(unique="done", within=Sliding(timedelta(minutes=20))).submit("ada")
        await asyncio.sleep(590)
        with pytest.raises(Refused):
            await once.submit("ada")
        with pytest.raises(InvalidOptions, match="write unique='done', not None"):
            await greet.using(within=600).submit("ada")
        with pytest.raises(InvalidOptions, match="of a submit: at most 604,800 seconds; say it on the task"):
            await greet.using(unique="done", within=timedelta(days=8)).submit("ada")

    simulate(app, START, START + timedelta(hours=1), scenario=asks)
    assert done == ["ada"] * 3


def test_tasks_that_share_their_keys_keep_each_other_out() -> None:
    app = Rota("memory://")

    async def pay(invoice: str) -> None:
        if invoice == "bad":
            raise ValueError("no account")

    bill = app.task(name="bill", key="{invoice}", unique="done", unique_in="invoice")(pay)
    refund = app.task(name="refund", key="{invoice}", unique="done", unique_in="invoice")(pay)

    async def asks(simulation: Simulation) -> None:
        first = await bill.using(delay=60).submit("17")
        with pytest.raises(Refused) as queued:
            await refund.submit("17")
        assert queued.value.decision.reason is Reason.ALREADY_QUEUED
        assert f"run {first.id} of bill has the key" in str(await app.why("refund", key="17"))
        await first.result()
        with pytest.raises(Refused) as done:
            await refund.submit("17")
        assert done.value.decision.run == first.id
        why = str(await app.why("refund", key="17"))
        assert f"run {first.id} of bill has the key; `rota marks clear bill 17` lets it run again" in why

        failing = await bill.submit("bad")
        with pytest.raises(RunFailed):
            await failing.result()
        again = await failing.retry()
        with pytest.raises(Refused) as retried:
            await refund.submit("bad")
        assert retried.value.decision.run == again.id

    simulate(app, START, START + timedelta(hours=1), scenario=asks)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"within": 600}, "write unique='done'"),
        ({"unique": "active", "within": 600}, "write unique='done'"),
        ({"unique": "done", "within": 0}, "within=0 remembers no success"),
        ({"unique": "queued", "key": "{a}", "unique_in": "x"}, "needs unique='active' or unique='done'"),
        ({"unique": "active", "unique_in": "x"}, "unique_in= needs key="),
        ({"unique": "active", "key": "{a}", "unique_in": "a b"}, "printable characters without spaces"),
        ({"unique": "active", "key": "{a}", "unique_in": "taken"}, "but first says unique= or within= otherwise"),
    ],
)
def test_what_contradicts_itself_is_refused_at_the_definition(options: dict[str, Any], message: str) -> None:
    app = Rota("memory://")

    def work(a: str = "") -> None: ...

    app.task(name="first", key="{a}", unique="done", unique_in="taken", within=60)(work)
    with pytest.raises(InvalidOptions, match=message):
        app.task(name="second", **options)(work)
