"""Middleware around a call, and the hook before a submit."""

import asyncio
from typing import Any

import pytest

from rota import Context, InvalidOptions, Period, Retry, Rota, RunCancelled, RunFailed, Submission
from rota.engine.middleware import CallNext
from tests.engine import process_tasks


def noting(words: list[str], name: str) -> Any:
    async def middleware(ctx: Context, call: CallNext) -> Any:
        words.append(f"{name} before {ctx.run.task}")
        assert Context.current() is ctx
        result = await call()
        words.append(f"{name} after {result}")
        return result

    return middleware


async def test_middleware_of_the_app_is_around_that_of_the_task() -> None:
    words: list[str] = []
    app = Rota("memory://", middleware=[noting(words, "first"), noting(words, "second")])

    @app.task(middleware=[noting(words, "own")])
    async def work() -> str:
        words.append("work")
        return "done"

    @app.task
    def plain() -> int:
        return 5

    async with app:
        assert await (await work.submit()).result(timeout=10) == "done"
        assert words == [
            *("first before work", "second before work", "own before work", "work"),
            *("own after done", "second after done", "first after done"),
        ]
        words.clear()
        assert await (await plain.submit()).result(timeout=10) == 5
    assert words == ["first before plain", "second before plain", "second after 5", "first after 5"]


async def test_middleware_may_change_the_result_and_the_exception() -> None:
    async def change(ctx: Context, call: CallNext) -> Any:
        try:
            return {"wrapped": await call()}
        except KeyError as error:
            raise LookupError(f"changed {error}") from None

    app = Rota("memory://", middleware=[change])

    @app.task
    async def work(fail: bool) -> Any:
        if fail:
            raise KeyError("x")
        return 1

    async with app:
        assert await (await work.submit(False)).result(timeout=10) == {"wrapped": 1}
        with pytest.raises(RunFailed, match="LookupError: changed"):
            await (await work.submit(True)).result(timeout=10)


async def test_middleware_that_fails_fails_the_run_and_is_retried() -> None:
    async def stumble(ctx: Context, call: CallNext) -> Any:
        if ctx.attempt == 1:
            raise ConnectionError("no lock")
        return await call()

    app = Rota("memory://")

    @app.task(middleware=[stumble], retry=Retry(1, delay=0))
    async def work() -> str:
        return "done"

    async with app:
        run = await work.submit()
        assert await run.result(timeout=10) == "done"
        assert [str(attempt.error) for attempt in (await run.refresh()).attempts] == [
            "ConnectionError: no lock",
            "None",
        ]


@pytest.mark.parametrize("executor", ["thread", "process"])
async def test_middleware_is_around_threads_and_child_processes(executor: Any) -> None:
    seen: list[object] = []

    async def note(ctx: Context, call: CallNext) -> Any:
        try:
            seen.append(await call())
        except Exception as error:
            seen.append(str(error))
            raise
        return f"noted {seen[-1]}"

    app = Rota("memory://")
    whose = app.task(executor=executor, middleware=[note])(process_tasks.whose_run)
    stumble = app.task(executor=executor, middleware=[note])(process_tasks.stumble)
    longer = app.task(executor=executor, middleware=[note], timeout=0.1)(process_tasks.take_longer)

    async with app:
        run = await whose.submit()
        assert await run.result(timeout=60) == f"noted {run.id}"
        with pytest.raises(RunFailed, match="no luck"):
            await (await stumble.submit("luck")).result(timeout=60)
        with pytest.raises(RunFailed, match=r"took longer than 0\.1 s"):
            await (await longer.submit(0)).result(timeout=60)
    assert len(seen) == 3


async def test_a_cancel_reaches_the_middleware() -> None:
    began, cleaned = asyncio.Event(), asyncio.Event()

    async def guard(ctx: Context, call: CallNext) -> Any:
        try:
            return await call()
        finally:
            cleaned.set()

    app = Rota("memory://", middleware=[guard])

    @app.task(timeout=60)
    async def work() -> None:
        began.set()
        await asyncio.Event().wait()

    async with app:
        run = await work.submit()
        await began.wait()
        await run.cancel()
        with pytest.raises(RunCancelled):
            await run.result(timeout=10)
    assert cleaned.is_set()


def test_middleware_is_a_list_of_async_functions() -> None:
    for wrong in (5, "x", [len], [lambda ctx, call: call()]):
        with pytest.raises(InvalidOptions, match="middleware"):
            Rota("memory://", middleware=wrong)  # type: ignore[arg-type]


async def test_a_hook_before_a_submit_adds_headers() -> None:
    app = Rota("memory://")
    seen: list[tuple[str, Any, str]] = []

    @app.before_submit
    def trace(submission: Submission) -> dict[str, str]:
        seen.append((submission.task, submission.args, submission.origin))
        return {"trace": f"of {submission.id}", "tenant": submission.headers.get("tenant", "none")}

    @app.task
    async def work(n: int = 0) -> None: ...

    day = app.flow("day", once=Period.day())
    day.step(work)
    runs = [
        await work.using(headers={"tenant": "acme", "trace": "old"}).submit(1),
        *await app.submit_many([work.bind()]),
    ]
    assert [(await run.refresh()).headers for run in runs] == [
        {"tenant": "acme", "trace": f"of {runs[0].id}"},
        {"tenant": "none", "trace": f"of {runs[1].id}"},
    ]
    await day.start()
    await runs[0].cancel()
    await runs[0].retry()
    assert seen == [
        ("work", {"n": 1}, "submit"),
        ("work", {}, "submit"),
        ("work", {}, "flow"),
        ("work", {"n": 1}, "retry"),
    ]


async def test_a_hook_before_a_submit_may_refuse() -> None:
    app = Rota("memory://")

    @app.before_submit
    def guard(submission: Submission) -> None:
        if submission.key == "blocked":
            raise PermissionError("not today")

    @app.task(key="{name}")
    async def work(name: str) -> None: ...

    await work.submit("allowed")
    with pytest.raises(PermissionError, match="not today"):
        await work.submit("blocked")
    with pytest.raises(PermissionError):
        await app.submit_many([work.bind("allowed"), work.bind("blocked")])
    assert (await app.depths())["work"].queued == 1


async def test_a_hook_before_a_submit_is_a_plain_function_and_keeps_the_limits() -> None:
    app = Rota("memory://")

    async def wrong(submission: Submission) -> None: ...

    with pytest.raises(InvalidOptions, match="a plain function"):
        app.before_submit(wrong)  # type: ignore[arg-type]
    app.before_submit(lambda submission: {"big": "x" * 9000})

    @app.task
    async def work() -> None: ...

    with pytest.raises(InvalidOptions, match="before_submit: headers: 9,003 bytes"):
        await work.submit()
