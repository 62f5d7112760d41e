"""What is made by the batch, for speed, is what is made one by one; and no batch keeps the event loop for itself."""

import asyncio
from datetime import timedelta

import pytest

from rota import Retry, Rota
from rota.domain import codec
from rota.errors import InvalidArguments, InvalidOptions
from rota.task import Bound, call_of, runs_of

PATIENCE = 10.0


def some_calls() -> list[Bound[None]]:
    """Calls of which many differ from the one before in more than their arguments."""
    app = Rota("memory://")

    @app.task
    async def done(ended: object) -> None: ...

    @app.task
    async def plain(i: int, word: str = "") -> None: ...

    @app.task(key="{i}", unique="queued", retry=Retry(2), timeout=5, priority=3, queue="slow")
    async def guarded(i: int) -> None: ...

    @app.task(share="{i}")
    async def shared(i: int) -> None: ...

    @app.task(on_success=done)
    async def followed(i: int) -> None: ...

    later = plain.using(delay=timedelta(seconds=5), headers={"a": "b"})
    return [
        *(plain.bind(number) for number in range(3)),
        *(later.bind(number) for number in range(3)),
        *(guarded.bind(number) for number in range(3)),
        *(shared.bind(number) for number in range(3)),
        *(followed.bind(number) for number in range(3)),
        plain.bind(1, '"},"args":{"i":2'),
        plain.using(id="mine").bind(1),
        plain.bind(2, "ä"),
        plain.bind(3),
    ]


def test_a_batch_makes_the_runs_that_its_calls_make_alone() -> None:
    calls = [call_of(bound) for bound in some_calls()]
    runs = runs_of(calls)
    assert runs == [call.to_run(run.id) for call, run in zip(calls, runs, strict=True)]
    assert [bytes(codec.decode(run.body).args) for run in runs] == [call.args for call in calls]
    assert len({run.id for run in runs}) == len(runs)


def test_a_batch_refuses_arguments_that_are_too_long_behind_others_that_are_not() -> None:
    app = Rota("memory://")

    @app.task
    async def keep(text: str) -> None: ...

    calls = [call_of(keep.bind(text)) for text in ("short", "x" * codec.ARGS_LIMIT)]
    with pytest.raises((InvalidArguments, InvalidOptions), match="more than the"):
        runs_of(calls)


async def test_handlers_that_never_wait_leave_turns_of_the_loop_to_others() -> None:
    """On Python 3.12 and later, a handler begins in the step that claims its run, and may end in it."""
    app = Rota("memory://", concurrency=10)
    turns: list[int] = []
    all_done = asyncio.Event()
    done = 0

    @app.task
    async def count(i: int) -> None:
        nonlocal done
        done += 1
        if done == 1000:
            all_done.set()

    async def watch() -> None:
        while not all_done.is_set():
            turns.append(done)
            await asyncio.sleep(0)

    await app.submit_many([count.bind(i) for i in range(1000)])
    watching = asyncio.create_task(watch())
    async with app, asyncio.timeout(PATIENCE):
        await all_done.wait()
    await watching
    longest = max(later - earlier for earlier, later in zip(turns, [*turns[1:], done], strict=True))
    assert longest <= 10, "a turn of the loop runs the calls of one claim at most"


async def test_a_run_that_ends_in_its_first_step_wakes_a_hungry_worker() -> None:
    """The engine does not poll within this test: only the ends of runs make it claim again."""
    app = Rota("memory://", concurrency=1)

    @app.task
    async def twice(i: int) -> int:
        return 2 * i

    handles = await app.submit_many([twice.bind(i) for i in range(20)])
    async with app:
        assert [await handle.result(timeout=PATIENCE) for handle in handles] == [2 * i for i in range(20)]
