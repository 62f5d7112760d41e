"""An operation on many runs whose worker is killed goes on with another worker, and does each run once."""

import signal
from collections.abc import AsyncIterator

import pytest

from rota import NotUndoable, Rota
from rota.client.operations import Operated
from rota.client.undo import MOST
from rota.domain.decision import DecisionCount, Reason
from rota.store import RowQuery
from tests.processes import Process

everywhere = pytest.mark.parametrize("store_url", ["sqlite", "valkey-9", "postgres-18"], indirect=True)


@pytest.fixture
async def app(store_url: str) -> AsyncIterator[Rota]:
    app = Rota(store_url)
    app.task(name="elsewhere")(lambda: None)
    yield app
    await app.stop()


def worker(app: Rota) -> Process:
    command = ["-m", "rota", "-A", "tests.faults.tasks:app", "worker", "--lease", "3"]
    return Process(*command, env={"ROTA_URL": app.settings.url})


@everywhere
@pytest.mark.parametrize("many", [4000, pytest.param(50_000, marks=pytest.mark.soak)])
async def test_an_operation_whose_worker_is_killed_goes_on(app: Rota, many: int) -> None:
    for _ in range(many // 1000):
        await app.submit_many([app.tasks["elsewhere"].bind() for _ in range(1000)])
    operation = await app.runs(task="elsewhere").cancel("not needed")
    with worker(app) as doomed:
        while (await app.runs(task="elsewhere", state="cancelled").count(at_most=1)).count == 0:
            await app.client().news(0.05)
        doomed.signal(signal.SIGKILL)
        doomed.wait()
    with worker(app):
        operated = await operation.result(timeout=110)
    assert isinstance(operated, Operated)
    cancelled = [run.id async for run in app.runs(task="elsewhere", state="cancelled")]
    assert len(set(cancelled)) == len(cancelled) == many
    decisions = (await app.client().rows(DecisionCount, RowQuery(task="elsewhere"))).items
    assert {row.reason: row.count for row in decisions} == {Reason.CANCELLED: many}, "each was cancelled once"
    if many > MOST:
        with pytest.raises(NotUndoable, match="more than 10,000 runs"):
            await app.undo(operation.id)
        return
    assert await app.undo(operation.id) == Operated(many, 0), "what the dead worker did was written down before"
    assert (await app.runs(task="elsewhere", state="queued").count(at_most=many + 1)).count == many
