"""`rota freeze` and `rota thaw`: nothing starts in the namespace, `why` says so, and workers go on afterwards."""

from rota import Rota, State
from tests.surfaces.called import Called, waiting


def test_a_frozen_namespace_starts_nothing_and_why_says_so(rota: Called) -> None:
    rota.put(waiting("run-number-1"))

    assert rota.json("freeze", "--until", "2h", "--note", "upgrade of the disks")["frozen"] is True
    shown = rota("why", "greet")
    assert "nothing starts here" in shown
    assert "upgrade of the disks" in shown
    assert rota("thaw").strip() == "runs start again"
    assert rota("thaw").strip() == "nothing was frozen"
    assert "nothing starts here" not in rota("why", "greet")
    rota("freeze", "--until", "2020-01-01T00:00Z", code=2)
    assert "is past" in rota.err


async def test_an_app_freezes_and_thaws() -> None:
    app = Rota("memory://")

    @app.task
    async def greet() -> str:
        return "hello"

    async with app:
        assert await app.freeze(note="deploy")
        run = await greet.submit()
        assert "deploy" in str(await run.why())
        assert (await run.refresh()).state is State.QUEUED
        assert await app.thaw()
        assert await run.result(timeout=10) == "hello"
        assert not await app.thaw()
