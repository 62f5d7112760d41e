"""assert_submitted and assert_not_submitted."""

import pytest

from rota import InvalidArguments, Rota
from rota.testing import assert_not_submitted, assert_submitted, drain


def shop() -> Rota:
    app = Rota("memory://")

    @app.task
    async def send(to: str, *, copies: int = 1) -> None: ...

    @app.task
    async def pack(order: int) -> None: ...

    return app


async def test_a_submitted_run_is_found_by_task_name_and_arguments() -> None:
    app = shop()
    send = app.tasks["send"]
    run = await app.submit("send", "ada")
    assert (await assert_submitted(app, "send")).id == run.id
    assert (await assert_submitted(app, send, "ada")).id == run.id
    await assert_submitted(app, send, to="ada")
    await assert_submitted(app, send, "ada", copies=1)
    await drain(app)
    await assert_submitted(app, send, "ada")
    await assert_not_submitted(app, send, "bob")
    await assert_not_submitted(app, "pack")


async def test_what_is_missing_is_told_with_what_is_there_instead() -> None:
    app = shop()
    with pytest.raises(AssertionError, match="the store holds no run at all"):
        await assert_submitted(app, "send")
    await app.submit("pack", 7)
    with pytest.raises(AssertionError) as caught:
        await assert_submitted(app, "send")
    assert str(caught.value) == "send was not submitted; there is only:\n  pack(order=7)  (queued)"
    await app.submit("send", "ada", copies=2)
    await app.submit("send", "bob")
    with pytest.raises(AssertionError) as caught:
        await assert_submitted(app, "send", "ada")
    assert str(caught.value) == (
        "send('ada') was not submitted; of this task there is:\n"
        "  send(to='ada', copies=2)  (queued)\n"
        "  send(to='bob', copies=1)  (queued)"
    )


async def test_what_should_not_be_there_is_told() -> None:
    app = shop()
    await app.submit("pack", 7)
    with pytest.raises(AssertionError) as caught:
        await assert_not_submitted(app, "pack", 7)
    assert str(caught.value) == "pack(7) was submitted:\n  pack(order=7)  (queued)"
    await assert_not_submitted(app, "pack", 8)
    with pytest.raises(InvalidArguments):
        await assert_submitted(app, "pack", colour="red")


async def test_a_task_of_others_is_compared_by_its_named_arguments() -> None:
    app = shop()
    await app.submit("theirs", n=1)
    await assert_submitted(app, "theirs", n=1)
    await assert_not_submitted(app, "theirs", n=2)
    with pytest.raises(InvalidArguments, match="need names"):
        await assert_submitted(app, "theirs", 1)
