"""`rota move` with a flow half done and a plan: what waits goes on where it goes, in its order and in its group."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from rota import Rota, State
from rota.app.core import core_of
from rota.client.transfer import move
from rota.store import RunQuery
from rota.stores.memory import MemoryBackend
from tests.surfaces.called import Called
from tests.surfaces.days import Day

LATER = datetime(2030, 1, 1, tzinfo=UTC)


@asynccontextmanager
async def opened(app: Rota) -> AsyncIterator[Rota]:
    async with app.client():
        yield app


async def test_a_flow_that_is_half_done_goes_on_in_another_store(rota: Called) -> None:
    old, new = Day(rota), Day(rota)
    old.failing.add("left")
    period = await asyncio.to_thread(old.work)
    core_of(new.app).use(MemoryBackend())
    async with opened(old.app), opened(new.app):
        moved = await move(await old.app.client().store(), await new.app.client().store())
        assert (moved.runs, moved.schedules) == (1, 1)
        states = {name: step.state for name, step in (await new.flow.status(period)).steps.items()}
        assert states == {"load": "done", "left": "absent", "right": "done", "join": "blocked"}
        async with new.app:
            answers = await new.flow.start(period)
            assert [name for name, answer in answers.items() if answer] == ["left", "join"]
            run = await new.app.client().ended(answers["join"].run, 30)
        assert run.state is State.SUCCEEDED


async def test_what_a_plan_has_waiting_is_still_the_plans() -> None:
    apps = [Rota(MemoryBackend(), name="office") for _ in range(2)]
    for app in apps:
        app.task(name="watch")(lambda: None)
    old, new = apps

    async def plan(app: Rota, *races: str) -> str:
        watch = app.tasks["watch"]
        report = await app.plan("races", races, call=lambda _: watch.bind(), at=lambda _: LATER, key=str, period="d")
        return str(report)

    async with opened(old), opened(new):
        await plan(old, "R1", "R2")
        store = await new.client().store()
        await move(await old.client().store(), store)
        assert await plan(new, "R1") == "1 as they were, 1 cancelled"
        assert len((await store.runs(RunQuery(group="plan:races@d", state=[State.QUEUED]))).runs) == 1


def test_the_command_moves_deadlines_with_the_rest(rota: Called, tmp_path: Path) -> None:
    day = Day(rota, expect="07:00")
    asyncio.run(declare(day.app))
    target = f"sqlite:///{tmp_path}/new.db"

    moved = rota.json("move", "--from", rota.url, "--to", target)
    rota.url = target

    assert moved["schedules"] == 2
    assert [(each["id"], each["kind"]) for each in rota.json("schedules", "ls")] in (
        [("day", "schedule"), ("expect:day/join", "deadline")],
        [("expect:day/join", "deadline"), ("day", "schedule")],
    )


async def declare(app: Rota) -> None:
    async with app.client():
        await core_of(app).declare_schedules()
