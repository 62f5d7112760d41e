"""Depends: what handlers need beside their arguments, made and ended by the worker."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest

from rota import (
    CallArgument,
    Context,
    Depends,
    Discard,
    InvalidArguments,
    InvalidOptions,
    Rota,
    RunCancelled,
    RunFailed,
    State,
)
from rota.testing import simulate
from tests.engine import depends_tasks

words: list[str] = []
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def no_words() -> None:
    words.clear()


def settings() -> str:
    words.append("settings")
    return "dsn"


async def connect(dsn: str = Depends(settings)) -> AsyncIterator[str]:
    words.append(f"open {dsn}")
    try:
        yield f"connection to {dsn}"
    finally:
        await asyncio.sleep(0)
        words.append("close")


@contextmanager
def transaction(connection: str = Depends(connect), dsn: Annotated[str, Depends(settings)] = "") -> Generator[str]:
    words.append("begin")
    try:
        yield f"transaction of {connection}"
    except BaseException as error:
        words.append(f"rollback {type(error).__name__}")
        raise
    else:
        words.append("commit")


class Repository:
    def __init__(self, within: Annotated[str, Depends(transaction)], size: int = 10) -> None:
        self.within = within
        self.size = size


def user(ctx: Context, name: str = CallArgument("who")) -> str:
    return f"{name} in {ctx.run.task}"


Users = Annotated[Repository, Depends()]


async def test_dependencies_are_made_once_in_order_and_ended_in_reverse() -> None:
    app = Rota("memory://")

    @app.task
    async def rename(users: Users, who: str, again: Users, said: str = Depends(user), to: str = "x") -> str:
        assert users is again
        words.append("work")
        return f"{users.within}, {said}, {to}"

    @app.task
    def plain(users: Users, who: str, *more: int, said: str = Depends(user), to: str = "x") -> str:
        words.append("work")
        return f"{users.within}, {said}, {to}, {more}"

    async with app:
        result = await (await rename.submit("ada", to="bob")).result(timeout=10)  # type: ignore[call-arg, arg-type]
        assert result == "transaction of connection to dsn, ada in rename, bob"
        assert words == ["settings", "open dsn", "begin", "work", "commit", "close"]
        words.clear()
        result = await (await plain.submit("ada", 1, 2)).result(timeout=10)  # type: ignore[arg-type]
        assert result == "transaction of connection to dsn, ada in plain, x, (1, 2)"
        assert words == ["settings", "open dsn", "begin", "work", "commit", "close"]
        with pytest.raises(InvalidArguments, match="said"):
            await rename.submit("ada", said="forged")  # type: ignore[call-arg, arg-type]
        assert (await app.published("rename")).parameters == ("who", "to")


@pytest.mark.parametrize("on_loop", [True, False])
async def test_a_failure_passes_through_the_dependencies_and_stays_a_failure(on_loop: bool) -> None:
    app = Rota("memory://")

    def swallowing(within: str = Depends(transaction)) -> Iterator[str]:
        try:
            yield within
        except ValueError as error:
            words.append(f"swallowed {error}")

    def late() -> Iterator[None]:
        yield
        raise OSError("the commit failed")

    if on_loop:

        @app.task
        async def work(within: str = Depends(swallowing), ends: None = Depends(late)) -> None:
            raise ValueError("no")

        @app.task
        async def done(ends: None = Depends(late)) -> None: ...

    else:

        @app.task(name="work")
        def plain(within: str = Depends(swallowing)) -> None:
            raise ValueError("no")

        @app.task(name="done")
        def plain_done(ends: None = Depends(late)) -> None: ...

    async with app:
        with pytest.raises(RunFailed, match="ValueError: no"):
            await (await app.submit("work")).result(timeout=10)
        assert words[-3:] == ["swallowed no", "commit", "close"]
        with pytest.raises(RunFailed, match="the commit failed"):
            await (await app.submit("done")).result(timeout=10)


async def test_timeout_and_cancel_end_the_dependencies() -> None:
    app = Rota("memory://")
    started = asyncio.Event()

    @app.task(timeout=0.05)
    async def slow(within: str = Depends(transaction)) -> None:
        await asyncio.Event().wait()

    @app.task
    async def endless(within: str = Depends(transaction)) -> None:
        started.set()
        await asyncio.Event().wait()

    @app.task
    def thread(ctx: Context, within: str = Depends(transaction)) -> None:
        loop.call_soon_threadsafe(started.set)
        while not ctx.stopping:
            threading.Event().wait(0.01)
        raise RuntimeError("told to stop")

    loop = asyncio.get_running_loop()
    async with app:
        with pytest.raises(RunFailed, match="took longer"):
            await (await slow.submit()).result(timeout=10)
        assert words[-2:] == ["rollback CancelledError", "close"]
        for task, word in ((endless, "rollback CancelledError"), (thread, "rollback RuntimeError")):
            words.clear()
            started.clear()
            run = await task.submit()
            await started.wait()
            await run.cancel()
            with pytest.raises(RunCancelled):
                await run.result(timeout=10)
            assert words[-2:] == [word, "close"]


async def test_a_dependency_may_fail_and_decide_and_end_what_was_made_before() -> None:
    app = Rota("memory://")

    def refuse(within: str = Depends(transaction)) -> None:
        raise Discard("not today")

    @app.task
    async def work(no: None = Depends(refuse)) -> None:
        words.append("work")

    async with app:
        with pytest.raises(RunFailed, match="not today"):
            await (await work.submit()).result(timeout=10)
    assert words == ["settings", "open dsn", "begin", "rollback Discard", "close"]


async def test_a_plain_handler_has_its_plain_dependencies_in_its_own_thread() -> None:
    app = Rota("memory://")

    def mine() -> Iterator[int]:
        yield threading.get_ident()
        words.append(str(threading.get_ident()))

    async def theirs() -> AsyncIterator[int]:
        entered = asyncio.current_task()
        yield threading.get_ident()
        assert asyncio.current_task() is entered

    @app.task
    def where(here: int = Depends(mine), there: int = Depends(theirs)) -> list[int]:
        words.append(str(threading.get_ident()))
        return [here, there]

    async with app:
        here, there = await (await where.submit()).result(timeout=10)
    assert words == [str(here)] * 2
    assert there == threading.get_ident() != here


async def test_shared_dependencies_live_as_long_as_the_worker() -> None:
    app = Rota("memory://")
    failing = [True]

    def model() -> Iterator[str]:
        if failing:
            failing.clear()
            raise ConnectionError("no disk")
        words.append("load")
        yield "model"
        words.append("unload")

    @asynccontextmanager
    async def pool(model: str = Depends(model, shared=True)) -> AsyncGenerator[list[str]]:
        words.append("pool")
        yield [model]
        words.append("drained")

    @app.task
    async def first(pool: list[str] = Depends(pool, shared=True)) -> int:
        return id(pool)

    @app.task
    def second(pool: list[str] = Depends(pool, shared=True)) -> int:
        return id(pool)

    async with app:
        with pytest.raises(RunFailed, match="no disk"):
            await (await first.submit()).result(timeout=10)
        runs = [await task.submit() for task in (first, second, first, second)]
        assert len({await run.result(timeout=10) for run in runs}) == 1
        assert words == ["load", "pool"]
    assert words == ["load", "pool", "drained", "unload"]


async def test_uncached_dependencies_are_called_for_each_parameter() -> None:
    app = Rota("memory://")

    @app.task
    async def two(a: object = Depends(object), b: object = Depends(object, use_cache=False)) -> bool:
        return a is b

    async with app:
        assert await (await two.submit()).result(timeout=10) is False


async def test_tests_replace_dependencies() -> None:
    app = Rota("memory://")

    @app.task
    async def work(within: str = Depends(transaction)) -> str:
        return within

    @app.task
    def plain(within: str = Depends(transaction)) -> str:
        return within

    def fake(ctx: Context) -> Iterator[str]:
        yield f"fake for {ctx.run.task}"
        words.append("fake ends")

    app.dependency_overrides[connect] = fake
    async with app:
        assert await (await work.submit()).result(timeout=10) == "transaction of fake for work"
        assert await (await plain.submit()).result(timeout=10) == "transaction of fake for plain"
        app.dependency_overrides.clear()
        assert await (await work.submit()).result(timeout=10) == "transaction of connection to dsn"
    assert words.count("fake ends") == 2


async def test_a_child_process_makes_its_own_dependencies() -> None:
    async with depends_tasks.app:
        first = await (await depends_tasks.plain.submit(1)).result(timeout=30)
        second = await (await depends_tasks.on_loop.submit(2)).result(timeout=30)
    assert first["pid"] == second["pid"] != threading.get_native_id()
    assert first["shared"] == second["shared"], "one child has made it once"
    assert (first["own"], second["own"]) == ("connection 1", "async 2")


def test_a_simulation_makes_dependencies() -> None:
    app = Rota("memory://")

    @app.task(schedule="every 1h")
    def plain(within: str = Depends(transaction), shared: str = Depends(settings, shared=True)) -> str:
        return within + shared

    sim = simulate(app, START, START + timedelta(hours=3))
    assert {run.state for run in sim.of(plain)} == {State.SUCCEEDED}
    assert words.count("commit") == words.count("close") == len(sim.of(plain)) > 1


def needing(of: Any) -> None:
    app = Rota("memory://")

    @app.task
    async def work(number: int, need: Any = Depends(of)) -> None: ...


def needs_nothing(x: int) -> None: ...


def needs_argument(y: int = CallArgument()) -> None: ...


def needs_run(ctx: Context) -> None: ...


def shares_run(run: None = Depends(needs_run)) -> None: ...


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (needs_nothing, "the dependency needs_nothing: nothing gives its parameter x a value"),
        (needs_argument, r"CallArgument\('y'\), but the task has no such argument"),
    ],
)
def test_a_dependency_that_no_worker_can_make_is_refused_at_the_definition(of: Any, reason: str) -> None:
    with pytest.raises(InvalidOptions, match=f"task work: .*{reason}"):
        needing(of)


def test_a_shared_dependency_knows_no_run() -> None:
    with pytest.raises(InvalidOptions, match="shares_run is shared by all runs of a worker, but its parameter run"):

        @Rota("memory://").task
        async def work(need: None = Depends(shares_run, shared=True)) -> None: ...


def test_mistakes_in_depends_are_named() -> None:
    with pytest.raises(TypeError, match="without the brackets of a call"):
        Depends(settings())  # type: ignore[arg-type]
    with pytest.raises(InvalidOptions, match="async and for a plain handler"):
        Rota("memory://").task(executor="process")(depends_tasks.refused)
