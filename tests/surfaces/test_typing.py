"""The public surface is typed: both checkers accept what is right and refuse what is wrong, line by line."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import assert_type

import rota
from rota import (
    Activity, Bound, Breaker, Chain, Context, Cron, DailyAt, Decision, Every, Fanned, Results, Retry, Rota, RunHandle,
    Schedule, UserKey
)

app = Rota("memory://")


@app.task
async def greet(name: str) -> str:
    return name


@app.task(retry=Retry(5), timeout=3)
def resize(path: str, width: int = 800) -> int:
    return width


@app.task
def find(folder: str) -> Iterator[str]:
    yield folder


@app.task
async def gather(results: Results[int]) -> str:
    async for result in results:
        assert_type(result, int)
    return str([child.index for child in results.failed])


@app.task
async def gather_text(results: Results[str]) -> None: ...


@app.task
async def odds(ctx: Context, x: int) -> None: ...


@app.task(timeout=3)
def tidy(ctx: Context) -> list[int]:
    return []


@app.task(schedule=Cron("*/15 7-22 * * *"), overlap="skip", catch_up="latest", grace=600)
async def poll(ctx: Context) -> None:
    assert_type(ctx.nominal, datetime | None)


@app.task(activity=Activity(after=1800, key=UserKey(), breaker=Breaker(3)))
async def summarise(user_id: str, device_id: str | None = None) -> None: ...


async def right() -> None:
    assert_type(await summarise.touch(user_id="u1"), Decision)
    assert_type(await app.touch("summarise", "u1"), Decision)
    assert_type(await app.schedules.put("report", DailyAt(9), greet.bind("Ada"), overlap="queue"), Schedule)
    await app.schedules.put_many([("a", Every(minutes=5), greet.bind("Ada")), ("b", "daily 09:00", tidy.bind())])
    assert_type(await greet("Ada"), str)
    assert_type(resize("a", width=3), int)
    assert_type(await greet.submit("Ada"), RunHandle[str])
    assert_type(await (await greet.submit(name="Ada")).result(timeout=3), str)
    assert_type(resize.bind("a"), Bound[int])
    assert_type(await odds.submit(3), RunHandle[None])
    assert_type(await tidy.using(delay=3).submit(), RunHandle[list[int]])
    assert_type(await tidy.using(at=datetime.now(UTC), expires=3, priority=4).submit(), RunHandle[list[int]])
    assert_type(await app.submit_many([greet.bind("a")]), list[RunHandle[str]])
    assert_type(await (await greet.submit("Ada")).retry(), RunHandle[str])
    assert_type(resize.map(["a"]), Fanned[int])
    assert_type(resize.using(delay=3).map(["a"], failures="collect") >> gather, Chain[str])
    assert_type(find.bind("a") >> resize.each(failures=3) >> gather, Chain[str])
    assert_type(await (await (resize.map(["a"]) >> gather >> greet).submit()).result(), str)


async def wrong() -> None:
    await summarise.touch(3)  # wrong
    await summarise.touch()  # wrong
    await app.schedules.put("report", DailyAt(9), greet)  # wrong
    await app.schedules.put("report", DailyAt(9), greet.bind("Ada"), overlap="twice")  # wrong
    app.task(schedule=60)  # wrong
    app.task(schedule=Every(60), catch_up="some")  # wrong
    await greet.submit(3)  # wrong
    await greet.submit()  # wrong
    await greet.submit("a", "b")  # wrong
    await odds.submit("x")  # wrong
    await odds.submit(Context, 3)  # wrong
    await resize.submit("a", widt=3)  # wrong
    await resize.using(delay=3).submit("a", widt=3)  # wrong
    await greet.using(dela=3).submit("a")  # wrong
    await greet.using(delay="3").submit("a")  # wrong
    x: int = await (await greet.submit("a")).result()  # wrong
    await greet()  # wrong
    await odds(3)  # wrong
    resize.bind(3)  # wrong
    app.task(retry=3)  # wrong
    app.task(lost="never")  # wrong
    app.task(retyr=Retry(3))  # wrong
    rota.Retyr(3)  # wrong
    resize.map(["a"]) >> gather_text  # wrong
    resize.map(["a"]) >> greet  # wrong
    resize.map(["a"], failures="some")  # wrong
    resize.map(3)  # wrong
"""

WRONG = {number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# wrong")}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_mypy_finds_each_mistake_and_nothing_else(program: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", program.name]
    done = subprocess.run(command, cwd=program.parent, capture_output=True, text=True, check=False)
    found = {int(line) for line in re.findall(r"^program\.py:(\d+): error:", done.stdout, re.MULTILINE)}
    assert found == WRONG, done.stdout + done.stderr


def test_pyright_finds_each_mistake_and_nothing_else(program: Path) -> None:
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", program.name]
    done = subprocess.run(command, cwd=program.parent, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)["generalDiagnostics"]
    found = {row["range"]["start"]["line"] + 1 for row in report if row["severity"] == "error"}
    assert found == WRONG, done.stdout + done.stderr
