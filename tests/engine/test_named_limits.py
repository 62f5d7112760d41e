"""Named limits: one number for several tasks."""

import asyncio
from pathlib import Path

import pytest

from rota import InvalidOptions, Limit, Rota
from rota.app.core import core_of
from rota.domain.spec import TaskSpec
from rota.settings import load


def sharing(app: Rota, gate: asyncio.Event, seen: list[int], total: int = 2) -> None:
    running = 0

    async def hold() -> None:
        nonlocal running
        running += 1
        seen.append(running)
        await gate.wait()
        running -= 1

    for name in ("cut", "train", "paint"):
        app.task(name=name, limit=[Limit(5), Limit(total, name="gpu")])(hold)


async def test_tasks_that_share_a_limit_run_so_many_at_once_in_all() -> None:
    app, gate, seen = Rota("memory://"), asyncio.Event(), list[int]()
    sharing(app, gate, seen)
    runs = [await app.submit(name) for name in ("cut", "train", "paint") * 3]
    async with app:
        while len(seen) < 2:
            await app.client().news(0.02)
        why = str(await app.why("paint"))
        assert "2 of 2 run under the limit gpu (1 of cut, 1 of train): the limit is reached" in why
        gate.set()
        for run in runs:
            await run.result(timeout=10)
        assert set(await app.depths()) == {"cut", "train", "paint"}, "the row of the limit is no task"
    assert max(seen) == 2


async def test_the_number_is_one_row_of_the_store() -> None:
    app = Rota("memory://")
    sharing(app, asyncio.Event(), [])
    async with app:
        rows = (await (await app.client().store()).rows(TaskSpec)).items
    assert [row.limit for row in rows if row.name == "limit gpu"] == [Limit(2)]


async def test_why_says_the_number_that_the_store_has_now(tmp_path: Path) -> None:
    first, second, gate = Rota(f"sqlite:///{tmp_path}/rota.db"), Rota(f"sqlite:///{tmp_path}/rota.db"), asyncio.Event()
    seen = list[int]()
    sharing(first, gate, seen)
    second.task(name="later", limit=Limit(3, name="gpu"))(lambda: None)
    async with first:
        runs = [await first.submit("cut") for _ in range(4)]
        async with second:  # the last worker that starts writes the number
            while len(seen) < 3:
                await first.client().news(0.02)
            why = str(await first.why("cut"))
        gate.set()
        for run in runs:
            await run.result(timeout=10)
    assert "3 of 3 run under the limit gpu (3 of cut): the limit is reached" in why


def test_two_numbers_for_one_name_are_refused() -> None:
    app = Rota("memory://")
    app.task(name="cut", limit=Limit(2, name="gpu"))(lambda: None)
    with pytest.raises(InvalidOptions, match=r"task train: Limit\(3, name='gpu'\), but cut has 2"):
        app.task(name="train", limit=[Limit(3, name="gpu")])(lambda: None)


def test_the_settings_change_the_number_and_the_limit_of_one_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rota.toml").write_text("[limits.gpu]\ntotal = 4\n[tasks.cut]\nlimit = 3\n")
    monkeypatch.chdir(tmp_path)
    app = Rota("memory://")
    app.task(name="cut", limit=Limit(2, name="gpu"))(lambda: None)
    app.task(name="train", limit=[Limit(9), Limit(2, name="gpu")])(lambda: None)
    specs = {spec.name: spec for spec in core_of(app).registry.published()}
    assert specs["limit gpu"].limit == Limit(4)
    assert (specs["cut"].limit, specs["cut"].limits) == (Limit(3), (Limit(4, name="gpu"),))
    assert (specs["train"].limit, specs["train"].limits) == (Limit(9), (Limit(4, name="gpu"),))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[limits.gpu]\ntotal = 0\n", "total=0"),
        ("[limits.gpu]\nper_key = 1\n", "per_key"),
        ("[limits]\ngpu = 3\n", "expected a table"),
    ],
)
def test_odd_numbers_in_the_settings_are_refused(
    text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rota.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidOptions, match=says):
        load()


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        (lambda: [Limit(1), Limit(2)], "one limit without a name"),
        (lambda: [Limit(1, name="a"), Limit(1, name="a")], "the same name twice"),
        (lambda: [Limit(1), 3], "write limit=Limit"),
        (lambda: Limit(per_key=1, name="a"), "a total and no per_key"),
        (lambda: Limit(1, name="a b"), "printable characters without spaces"),
    ],
)
def test_odd_limits_are_refused(limit: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Rota("memory://").task(name="cut", limit=limit())(lambda: None)  # type: ignore[operator]
