"""`using(id=…)`: an idempotency key that the caller chooses."""

import pytest

from rota import Every, IdConflict, InvalidOptions, Period, Rota, RunNotFound
from rota.store import OWN_ID_MEMORY, Command, Retention, RunQuery
from rota.testing import StoreClock
from tests.requirement import requirement


@pytest.fixture
def app() -> Rota:
    return Rota("memory://")


@requirement("4.13")
async def test_a_second_submit_answers_the_run_of_the_first(app: Rota) -> None:
    calls: list[str] = []

    @app.task
    async def ship(order: str, parts: int = 1) -> str:
        calls.append(order)
        return f"shipped {order}"

    async with app:
        first = await ship.using(id="order-17").submit("17")
        assert (first.id, first.created) == ("order-17", True)
        assert await first.result(timeout=10) == "shipped 17"
        again = await ship.using(id="order-17", delay=60).submit(order="17")
        assert (again.id, again.created) == ("order-17", False)
        assert await again.result(timeout=10) == "shipped 17"
    assert calls == ["17"]


async def test_another_task_or_other_arguments_raise(app: Rota) -> None:
    @app.task
    async def ship(order: str) -> None: ...

    @app.task
    async def bill(order: str) -> None: ...

    await ship.using(id="order-17").submit("17")
    with pytest.raises(IdConflict, match="a run order-17 exists with another task or other arguments") as caught:
        await ship.using(id="order-17").submit("18")
    assert caught.value.decision.run == "order-17"
    with pytest.raises(IdConflict):
        await bill.using(id="order-17").submit("17")
    handles = await app.submit_many([ship.using(id="order-17").bind(order) for order in ("17", "18")])
    assert [bool(handle) for handle in handles] == [True, False]


async def test_the_id_is_remembered_for_a_day_after_the_run_is_gone(app: Rota) -> None:
    @app.task
    async def ship(order: str) -> None: ...

    clock, client = StoreClock(app.backend), app.client()
    forgetful = Retention(succeeded=0, failed=0, most=0, least=0)
    run = await ship.using(id="order-17").submit("17")
    await client.control(Command.CANCEL, [run.id])
    clock.move(seconds=OWN_ID_MEMORY / 2)
    await (await client.store()).sweep(forgetful)
    again = await ship.using(id="order-17").submit("17")
    assert not again.created
    with pytest.raises(RunNotFound):
        await again.refresh()
    clock.move(seconds=OWN_ID_MEMORY / 2 + 1)
    await (await client.store()).sweep(forgetful)
    assert (await ship.using(id="order-17").submit("18")).created


async def test_the_retry_of_a_run_has_an_id_that_rota_makes(app: Rota) -> None:
    @app.task
    async def ship(order: str) -> None: ...

    async with app:
        run = await ship.using(id="order-17").submit("17")
        await run.result(timeout=10)
        retry = await run.retry()
        assert retry.id != run.id
        assert (await run.retry()).id == retry.id


@pytest.mark.parametrize("id", ["", "x" * 64, "a\nb", "a b", "\x00", "\ud83d", 5])
async def test_an_id_is_1_to_63_printable_characters(app: Rota, id: object) -> None:
    @app.task
    async def work() -> None: ...

    with pytest.raises(InvalidOptions, match="1 to 63 printable characters"):
        await work.using(id=id).submit()  # type: ignore[arg-type]


@pytest.mark.parametrize("id", ["x" * 63, "ø🦉東" * 21, "+a*{}'\"\\%:/"])
async def test_any_other_id_is_taken(app: Rota, id: str) -> None:
    @app.task
    async def work() -> None: ...

    async with app:
        run = await work.using(id=id).submit()
        await run.result(timeout=10)
    assert [run.id for run in (await app.client().runs(RunQuery(ids=[id]))).runs] == [id]


async def test_an_id_is_for_one_run(app: Rota) -> None:
    @app.task
    async def work() -> None: ...

    bound = work.using(id="one").bind()
    with pytest.raises(InvalidOptions, match="a schedule makes many runs"):
        await app.schedules.put("often", Every(hours=1), bound)
    with pytest.raises(InvalidOptions, match="an id of its own is for a submit"):
        await (bound >> work).submit()
    with pytest.raises(InvalidOptions, match="an id of its own is for a submit"):
        app.flow("day", once=Period.day()).step(bound)
