"""Why did it not run, and when will that change? What ends by itself has its time in the answer."""

import pytest

from rota.store import Command, Scope
from tests.requirement import requirement
from tests.surfaces.why_scene import START, Scene


@pytest.fixture
async def scene() -> Scene:
    scene = Scene()
    await scene.publish()
    await scene.work(0)
    return scene


async def until_it_changes(scene: Scene, subject: str, key: str | None = None) -> float:
    """Return the seconds after which the answer is another one; a moment before, it is not."""
    before = await scene.app.why(subject, key)
    assert before.changes_at is not None, before
    scene.backend.skew = before.changes_at - START - 0.5
    await scene.work(0)
    assert (await scene.app.why(subject, key)).changes_at == before.changes_at
    scene.backend.skew = before.changes_at - START
    await scene.work(0)
    after = await scene.app.why(subject, key)
    assert (after.answer, after.changes_at) != (before.answer, before.changes_at)
    return before.changes_at - START


@requirement("4.2")
async def test_a_run_that_is_due_later(scene: Scene) -> None:
    run = await scene.boom.using(delay=60).submit(1)
    assert await until_it_changes(scene, run.id) == 60


async def test_a_task_whose_next_run_is_due_later(scene: Scene) -> None:
    await scene.boom.using(delay=60).submit(1)
    assert await until_it_changes(scene, "boom") == 60


async def test_a_freeze_and_a_pause_that_end(scene: Scene) -> None:
    await scene.boom.submit(1)
    store = await scene.store()
    await store.freeze(True, START + 30)
    assert await until_it_changes(scene, "boom") == 30
    await store.control(Command.PAUSE, ["boom"], of=Scope.TASKS, until=START + 90)
    assert await until_it_changes(scene, "boom") == 90


async def test_a_rate_that_opens(scene: Scene) -> None:
    for _ in range(2):
        await scene.mail.submit("ada")
    assert len(await scene.work()) == 1
    scene.backend.skew = 10
    await scene.work(0)
    assert await until_it_changes(scene, "mail") == 3600


async def test_the_rate_of_a_key_that_opens(scene: Scene) -> None:
    _, second = await scene.ring.submit("ada"), await scene.ring.submit("ada")
    assert len(await scene.work()) == 1
    scene.backend.skew = 10
    assert await scene.work() == [], "the second is parked now"
    assert await until_it_changes(scene, second.id) == 3600


async def test_a_key_that_rests(scene: Scene) -> None:
    await scene.summarise.touch("ada")
    scene.backend.skew = 60
    await scene.end()
    assert await until_it_changes(scene, "summarise", "ada") == 660


async def test_the_next_tick_of_a_schedule(scene: Scene) -> None:
    assert await until_it_changes(scene, "fetch") == 3600


async def test_what_somebody_has_to_end_has_no_time(scene: Scene) -> None:
    await scene.boom.submit(1)
    await (await scene.store()).control(Command.PAUSE, ["boom"], of=Scope.TASKS)
    assert (await scene.app.why("boom")).changes_at is None
    scene.backend.skew = 600
    assert (await scene.app.why("fetch")).changes_at is None, "no worker is alive"
