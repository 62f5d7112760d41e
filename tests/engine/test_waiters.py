"""Handlers that wait for other runs while they hold a seat."""

import asyncio
import logging

import pytest

import rota.client.session
from rota import Rota
from rota.domain.run import Lease, Run, State
from rota.engine.context import Context
from rota.engine.handler import ExecutorName
from rota.engine.seats import Seat, Seats
from rota.engine.waiters import Waiters

STARVED = "its handlers hold all 2 seats and wait for other runs"


class Heard(logging.Handler):
    """Wakes who waits for a line of the log."""

    def __init__(self, words: str) -> None:
        super().__init__(logging.WARNING)
        self._words = words
        self._loop = asyncio.get_running_loop()
        self.once = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if self._words in record.getMessage():
            self._loop.call_soon_threadsafe(self.once.set)


@pytest.mark.parametrize("executor", ["loop", "thread"])
async def test_a_worker_whose_seats_all_wait_for_a_seat_says_so_once(
    executor: ExecutorName, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rota.client.session, "PATIENCE", 0.0)
    app = Rota("memory://", concurrency=2)

    @app.task
    async def child() -> None: ...

    async def waits() -> None:
        await (await child.submit()).result()

    def blocks() -> None:
        app.portal.call(waits)

    parent = app.task(name="parent")(waits if executor == "loop" else blocks)
    heard = Heard(STARVED)
    logging.getLogger("rota").addHandler(heard)
    try:
        async with app:
            await parent.submit()
            await parent.submit()
            async with asyncio.timeout(30):
                await heard.once.wait()
            await app.stop(grace=0)
    finally:
        logging.getLogger("rota").removeHandler(heard)
    assert [STARVED in line for line in caplog.messages].count(True) == 1


async def test_a_seat_that_is_left_for_the_child_is_enough(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rota.client.session, "PATIENCE", 0.0)
    app = Rota("memory://", concurrency=3)

    @app.task
    async def child(n: int) -> int:
        return n

    @app.task
    async def parent(n: int) -> int:
        return await (await child.submit(n)).result()

    async with app:
        runs = [await parent.submit(n) for n in range(2)]
        assert [await run.result(timeout=30) for run in runs] == [0, 1]
    assert "wait for a seat" not in caplog.text


def judged(caplog: pytest.LogCaptureFixture, *runs: Run, free: int = 0, leases: str = "pq") -> bool:
    """Two seats wait for `a` and `b`: is it said that nothing moves?"""
    caplog.clear()
    seats = Seats("w", len(leases) + free)
    for id in leases:
        run = Run(id=id, task="parent", fence=1, worker="w")
        seats.take(Seat(run, Context(run), deadline=200.0))
    waiters = Waiters(seats, {"child"})
    with waiters.waiting(Lease("p", 1, "w"), "a"), waiters.waiting(Lease("q", 1, "w"), "b"):
        waiters.judge(runs, 100.0)
        waiters.judge(runs, 100.0)
    assert len(caplog.messages) <= 1, "once"
    waiters.judge(runs, 100.0)
    return bool(caplog.messages)


def test_only_seats_that_all_wait_for_a_seat_are_worth_a_word(caplog: pytest.LogCaptureFixture) -> None:
    queued = Run(id="a", task="child")
    assert judged(caplog, queued)
    assert judged(caplog, queued, Run(id="b", task="child", state=State.RUNNING, worker="w")), "it waits here itself"
    assert not judged(caplog, queued, Run(id="b", task="child", state=State.RUNNING, worker="other"))
    assert not judged(caplog, queued, free=1)
    assert not judged(caplog, queued, leases="pqr"), "a third handler works"
    assert not judged(caplog, queued, leases="qr"), "what waits for `a` has outlived its run, and `r` works"
    assert not judged(caplog, Run(id="a", task="elsewhere"))
    assert not judged(caplog, Run(id="a", task="child", due_at=200.0))
    assert not judged(caplog, Run(id="another", task="child"))
