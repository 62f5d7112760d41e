"""Headers travel with a run, its retries and the runs that its handler submits."""

import msgspec
import pytest

from rota import Context, Every, InvalidOptions, Period, Retry, Rota
from rota.domain.headers import HEADERS, HEADERS_LIMIT
from rota.store import RunQuery
from tests.engine import process_tasks

ACME = {"tenant": "acme", "trace": "one"}


@pytest.fixture
def app() -> Rota:
    return Rota("memory://")


async def test_a_handler_reads_the_headers_of_its_submit(app: Rota) -> None:
    @app.task(retry=Retry(1, delay=0))
    async def read(ctx: Context) -> dict[str, str]:
        if ctx.attempt == 1:
            raise ConnectionError
        return dict(ctx.headers)

    async with app:
        run = await read.using(headers=ACME).submit()
        assert await run.result(timeout=10) == ACME
        assert await (await run.retry()).result(timeout=10) == ACME
        assert await (await read.submit()).result(timeout=10) == {}


async def test_the_runs_that_a_handler_submits_get_its_headers(app: Rota) -> None:
    @app.task
    async def leaf(name: str) -> None: ...

    @app.task
    async def on_the_loop() -> list[str]:
        many = await app.submit_many([leaf.bind("many")])
        runs = [await leaf.submit("plain"), await app.submit("leaf", "by name"), *many]
        return [run.id for run in runs]

    @app.task
    def in_a_thread() -> list[str]:
        return [leaf.submit_sync("sync").id]

    @app.task
    async def overriding() -> list[str]:
        return [(await leaf.using(headers={"trace": "two", "more": "x"}).submit("own")).id]

    async with app:
        children = [
            (id, run.headers)
            for task in (on_the_loop, in_a_thread, overriding)
            for id in await (await task.using(headers=ACME).submit()).result(timeout=10)
            for run in [await app.handle(id).refresh()]
        ]
        assert (await (await leaf.submit("outside")).refresh()).headers == {}
    assert [headers for _, headers in children] == [ACME] * 4 + [{"tenant": "acme", "trace": "two", "more": "x"}]


async def test_a_child_process_reads_the_headers(app: Rota) -> None:
    read = app.task(executor="process")(process_tasks.headers_here)

    async with app:
        assert await (await read.using(headers=ACME).submit()).result(timeout=60) == ACME


async def test_the_steps_of_a_chain_get_the_headers_of_the_steps_before(app: Rota) -> None:
    @app.task
    async def first(ctx: Context) -> dict[str, str]:
        return dict(ctx.headers)

    @app.task
    async def second(ctx: Context) -> dict[str, str]:
        return dict(ctx.headers)

    @app.task
    async def third(ctx: Context) -> dict[str, str]:
        return dict(ctx.headers)

    async with app:
        bound = first.using(headers=ACME).bind(), second.using(headers={"trace": "two"}).bind()
        chain = await (bound[0] >> bound[1] >> third).submit()
        await chain.result(timeout=10)
        seen = [await handle.result(timeout=10) for handle in chain.steps.values()]
    assert seen == [ACME, {"tenant": "acme", "trace": "two"}, {"tenant": "acme", "trace": "two"}]


async def test_the_steps_of_a_flow_get_the_headers_of_the_run_that_starts_it(app: Rota) -> None:
    day = app.flow("day", once=Period.day())

    @app.task
    async def step() -> None: ...

    day.step(step)

    @app.task
    async def begin() -> None:
        await day.start()

    async with app:
        await (await begin.using(headers=ACME).submit()).result(timeout=10)
        await day.wait(timeout=10)
        (run,) = (await app.client().runs(RunQuery(task="step"))).runs
    assert run.headers == ACME


async def test_the_runs_of_a_schedule_get_the_headers_of_its_call(app: Rota) -> None:
    @app.task
    async def tick(ctx: Context) -> dict[str, str]:
        return dict(ctx.headers)

    async with app:
        await app.schedules.put("hourly", Every(hours=1), tick.using(headers=ACME).bind())
        assert await (await app.schedules.run_now("hourly")).result(timeout=10) == ACME


async def test_a_run_without_headers_takes_no_byte_more(app: Rota) -> None:
    @app.task
    async def work() -> None: ...

    plain = await (await work.using(headers={}).submit()).refresh()
    full = await (await work.using(headers=ACME).submit()).refresh()
    assert plain.body == b'{"v":1,"args":{}}'
    assert msgspec.json.decode(full.body)["headers"] == ACME


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        (["tenant"], "names with texts"),
        ({"tenant": 5}, "tenant=5 is not a text"),
        ({"": "x"}, "1 to 100 printable characters"),
        ({"a\nb": "x"}, "1 to 100 printable characters"),
        ({5: "x"}, "1 to 100 printable characters"),
        ({"half": "\ud83d"}, "surrogate"),
        ({str(i): "x" for i in range(HEADERS + 1)}, "33 names, more than the 32"),
        ({"big": "x" * (HEADERS_LIMIT - 2)}, "8,193 bytes, more than the 8,192"),
    ],
)
async def test_headers_have_limits(app: Rota, headers: object, words: str) -> None:
    @app.task
    async def work() -> None: ...

    with pytest.raises(InvalidOptions, match=words):
        await work.using(headers=headers).submit()  # type: ignore[arg-type]


async def test_headers_at_the_limits_are_taken(app: Rota) -> None:
    @app.task
    async def work() -> None: ...

    for headers in ({"b": "ø" * (HEADERS_LIMIT // 2 - 1) + "x"}, {str(i): "x" for i in range(HEADERS)}):
        assert (await (await work.using(headers=headers).submit()).refresh()).headers == headers
