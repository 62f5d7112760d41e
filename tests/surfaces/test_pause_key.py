"""`rota tasks pause --key`: the runs of one key wait, the others go on, and `why` says so."""

from rota import Rota, State
from tests.surfaces.called import Called, waiting


def test_a_key_is_paused_and_resumed_by_command(rota: Called) -> None:
    rota.put(waiting("run-number-1"))
    paused = rota.json("tasks", "pause", "greet", "--key", "bad", "--note", "broken")
    assert paused == [{"task": "greet", "changed": True, "paused": True}]
    shown = rota("why", "greet", "bad")
    assert "the key 'bad' of greet is paused" in shown
    assert "broken" in shown
    assert "`rota tasks resume greet --key bad`" in shown
    assert rota.json("tasks", "resume", "greet", "--key", "bad")[0]["changed"]
    assert "is paused" not in rota("why", "greet", "bad")


async def test_an_app_pauses_one_key() -> None:
    app, done = Rota("memory://"), list[str]()

    @app.task(key="{path}")
    async def resize(path: str) -> None:
        done.append(path)

    async with app:
        assert await app.pause("resize", "broken file", key="bad")
        assert not await app.pause("resize", key="bad")
        bad, good = await resize.submit("bad"), await resize.submit("good")
        await good.result(timeout=10)
        assert (await bad.refresh()).state is State.QUEUED
        assert "the key 'bad' of resize is paused" in str(await bad.why())
        assert await app.resume("resize", key="bad")
        await bad.result(timeout=10)
    assert done == ["good", "bad"]
