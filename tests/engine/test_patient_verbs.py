"""Whatever an app asks of its store is asked again while the store is unreachable for a few seconds."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota import Every, Period, Reason, Rota, RunHandle, State
from rota.app.core import core_of
from rota.client.retries import PAUSES
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.store import RowQuery, RunQuery
from rota.stores.memory import MemoryBackend
from rota.testing.virtual_loop import VirtualLoop
from storekit.faults import FaultyBackend

VERBS = ("put", "fire", "control", "declare", "mark", "rows", "stats", "runs", "depths")
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


class Stage:
    """An app with a task, a queued and a paused run of it, a schedule and a flow. Nothing runs."""

    def __init__(self) -> None:
        self.backend = FaultyBackend(MemoryBackend())
        self.app = Rota(self.backend)
        self.queued: RunHandle[None]
        self.paused: RunHandle[None]

        @self.app.task
        async def greet() -> None: ...

        self.greet = greet
        self.flow = self.app.flow("day", once=Period.day())
        self.flow.step(greet, name="first")

    async def set(self) -> None:
        self.queued, self.paused = await self.greet.submit(), await self.greet.submit()
        await self.paused.pause()
        await self.app.schedules.put("beat", Every(60), self.greet.bind())
        await self.app.pause("resting")

    def cut_off(self) -> None:
        """Each verb fails as often as a client has pauses, and then works."""
        for verb in VERBS:
            self.backend.fail(verb, "request lost", times=len(PAUSES))

    async def plan(self) -> object:
        at = await self.app.client().now() + 60
        return await self.app.plan(
            "plan", ["a"], call=lambda _: self.greet.bind(), at=lambda _: at, key=str, period="2026-11-15"
        )


CALLS: dict[str, Callable[[Stage], Awaitable[object]]] = {
    "app.pause": lambda stage: stage.app.pause("greet"),
    "app.resume": lambda stage: stage.app.resume("resting"),
    "app.clear": lambda stage: stage.app.clear("greet"),
    "app.depths": lambda stage: stage.app.depths(),
    "app.why": lambda stage: stage.app.why("greet"),
    "app.submit": lambda stage: stage.app.submit("greet"),
    "app.submit of an unknown task": lambda stage: stage.app.submit("gret"),
    "app.submit_many": lambda stage: stage.app.submit_many([stage.greet.bind()]),
    "app.plan": lambda stage: stage.plan(),
    "run.refresh": lambda stage: stage.queued.refresh(),
    "run.pause": lambda stage: stage.queued.pause(),
    "run.resume": lambda stage: stage.paused.resume(),
    "run.cancel": lambda stage: stage.queued.cancel(),
    "schedules.put": lambda stage: stage.app.schedules.put("other", Every(60), stage.greet.bind()),
    "schedules.put of a known one": lambda stage: stage.app.schedules.put("beat", Every(90), stage.greet.bind()),
    "schedules.get": lambda stage: stage.app.schedules.get("beat"),
    "schedules.list": lambda stage: stage.app.schedules.list(),
    "schedules.ticks": lambda stage: stage.app.schedules.ticks("beat"),
    "schedules.pause": lambda stage: stage.app.schedules.pause("beat"),
    "schedules.resume": lambda stage: stage.app.schedules.resume("beat"),
    "schedules.run_now": lambda stage: stage.app.schedules.run_now("beat"),
    "schedules.backfill": lambda stage: stage.app.schedules.backfill("beat", LONG_AGO, LONG_AGO + timedelta(minutes=2)),
    "schedules.delete": lambda stage: stage.app.schedules.delete("beat"),
    "schedules.prune": lambda stage: stage.app.schedules.prune("", []),
    "schedules.declare": lambda stage: core_of(stage.app).declare_schedules(),
    "flow.start": lambda stage: stage.flow.start(),
    "flow.recheck": lambda stage: stage.flow.recheck(),
    "flow.rerun": lambda stage: stage.flow.rerun("first"),
    "flow.reset": lambda stage: stage.flow.reset(),
    "flow.status": lambda stage: stage.flow.status(),
}


def seconds_of(call: Callable[[Stage], Awaitable[object]], cut_off: bool = True) -> tuple[float, Any]:
    """How long a call took by the virtual clock while the store was unreachable at first, and what it answered."""

    async def timed() -> tuple[float, Any]:
        stage = Stage()
        loop = asyncio.get_running_loop()
        async with stage.app.client():
            await stage.set()
            if cut_off:
                stage.cut_off()
            began = loop.time()
            answer = await call(stage)
            return loop.time() - began, answer

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(timed())


@pytest.mark.parametrize("name", CALLS)
def test_a_call_survives_a_store_that_is_unreachable_for_seconds(name: str) -> None:
    took, _ = seconds_of(CALLS[name])
    assert took >= sum(PAUSES), "the store was unreachable for all of its tries but the last"


@pytest.mark.parametrize("name", ["app.pause", "app.resume", "app.clear", "app.depths"])
def test_what_a_patient_call_answers_is_what_it_answers_at_once(name: str) -> None:
    assert seconds_of(CALLS[name])[1] == seconds_of(CALLS[name], cut_off=False)[1]


def test_a_probe_does_not_wait_for_the_store() -> None:
    took, health = seconds_of(lambda stage: stage.app.health())
    assert (took, health.store) == (0.0, False)


def test_a_touch_by_name_does_not_wait_for_the_store() -> None:
    took, decision = seconds_of(lambda stage: stage.app.touch("elsewhere"))
    assert (took, decision.reason) == (0.0, Reason.UNAVAILABLE)


def test_every_page_of_a_list_is_patient() -> None:
    async def read(stage: Stage) -> tuple[list[str], list[str], list[int]]:
        client = stage.app.client()
        stage.backend.heal()
        stage.backend.fail("runs", "request lost", times=len(PAUSES), after=1)
        stage.backend.fail("rows", "request lost", times=len(PAUSES), after=1)
        runs = [run.id async for run in client.all_runs(RunQuery(task="greet", limit=1))]
        pages = [len(page.runs) async for page in client.pages(RunQuery(state=[State.PAUSED], limit=1))]
        rows = [row.id async for row in client.all_rows(Schedule, RowQuery(limit=1))]
        specs = [row.name async for row in client.all_rows(TaskSpec, RowQuery(limit=1))]
        assert runs == [stage.paused.id, stage.queued.id], "newest first"
        return rows, specs, pages

    took, (rows, specs, pages) = seconds_of(read)
    assert (rows, specs) == (["beat"], ["resting"])
    assert sum(pages) == 1
    assert took >= 2 * sum(PAUSES), "once between two pages of runs, once between two pages of rows"
