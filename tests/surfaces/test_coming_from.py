"""The right-hand sides of docs/coming-from.md: each is an expression that works, an option or a command that exists."""

import asyncio
import inspect
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

import rota
from rota import Context, Every, Rota, TaskOptions
from rota.cli import run as command
from rota.settings import Settings
from rota.testing import drain

PAGE = Path(__file__).parents[2] / "docs" / "coming-from.md"
OTHERS = ("Celery", "RQ", "APScheduler", "arq", "Huey", "Dramatiq", "Temporal", "cron", "systemd")


def right_hand_sides() -> Iterator[str]:
    """Every code span in the right column of a table."""
    for line in PAGE.read_text().splitlines():
        if line.startswith("| ") and not line.startswith("|---"):
            for span in re.findall(r"`([^`]+)`", line.rstrip(" |").rpartition(" | ")[2]):
                yield span.replace(r"\|", "|")


SPANS = sorted(set(right_hand_sides()))
SOON = datetime(2099, 1, 1, tzinfo=UTC)
OPTION = re.compile(r"(\w+)=(.*)")
OPTIONS = {
    *TaskOptions.__annotations__,
    *inspect.signature(rota.Schedules.put).parameters,
    *inspect.signature(rota.Task.using).parameters,
    *inspect.signature(Rota).parameters,
    *inspect.signature(rota.Retry).parameters,
    *inspect.signature(rota.Task.map).parameters,
}


@asynccontextmanager
async def lifespan() -> AsyncGenerator[dict[str, Any]]:
    yield {}


async def timed(ctx: Context, call: rota.CallNext) -> object:
    return await call()


def wait_of(failures: int, failure: object) -> float | None:
    return 10.0 * failures


def names() -> dict[str, Any]:
    """What the page has before its tables, with a schedule and a run that its rows speak of."""
    app = Rota("memory://")

    @app.task
    def resize(path: str, width: int = 800) -> str:
        return f"{path} at {width}"

    @app.task
    def publish(resize: str) -> None: ...

    @app.task
    def find(folder: str) -> list[str]:
        return [f"{folder}/a.png"]

    @app.task
    def report(results: rota.Results[str]) -> int:
        return len(results)

    app.portal.call(lambda: app.schedules.put("thumbnails", Every(minutes=5), resize.bind("b.png")))
    ours = {name: getattr(rota, name) for name in dir(rota) if name[0].isupper()}
    known = {
        "app": app,
        "resize": resize,
        "publish": publish,
        "find": find,
        "report": report,
        "drain": drain,
        "lifespan": lifespan,
        "timed": timed,
        "wait_of": wait_of,
    }
    run = resize.submit_sync("a.png")
    given = {"run": run, "id": run.id, "hook": print, "run_date": SOON, "timedelta": timedelta}
    return {**ours, **known, **given}


def test_the_page_speaks_of_every_other_scheduler() -> None:
    headings = re.findall(r"^## (\S+)", PAGE.read_text(), re.MULTILINE)
    assert set(OTHERS) <= set(headings)
    assert len(SPANS) > 60


@pytest.mark.parametrize("span", SPANS)
def test_what_rota_writes_is_right(span: str, capsys: pytest.CaptureFixture[str]) -> None:
    option = OPTION.fullmatch(span)
    if span.startswith("rota "):
        words = [word for word in span.split()[1:] if word.islower() and not word.startswith("-")]
        assert command([*words[:2], "--help"]) == 0 or command([*words[:1], "--help"]) == 0
        shown = capsys.readouterr().out
        assert [word for word in span.split() if word.startswith("--") and word not in shown] == []
    elif span.startswith("--"):
        assert command(["worker", "--help"]) == 0
        assert span.split()[0] in capsys.readouterr().out
    elif span.startswith("raise "):
        assert isinstance(eval(span.removeprefix("raise "), names()), Exception)
    elif option is not None:
        take(option[1], option[2])
    elif span in Settings.__struct_fields__ or span.startswith("docs/") or span == "rota.testing":
        return
    else:
        evaluate(span)


def take(option: str, value: str) -> None:
    """Check that the option exists; and its value, if the page gives one, where a task takes it."""
    assert option in OPTIONS
    known = names()
    if value and option in TaskOptions.__annotations__:
        beside = {"unique_in": {"unique": "done", "key": "7"}, "executor": {}}.get(option, {"schedule": Every(60)})
        known["app"].task(name="probe", **beside, **{option: eval(value, known)})(at_top)
    elif value:
        eval(value, known)


def at_top() -> None:
    """A child process can import this function."""


def evaluate(span: str) -> None:
    """Evaluate an expression of the page: in a handler if it speaks of `ctx`, beside a worker if it waits for a run."""
    known = names()
    app: Rota = known["app"]
    code = compile(span.removeprefix("await ").removeprefix("@"), span, "eval")
    if "ctx" in span:

        @app.task(name="probe")
        def probe(ctx: Context) -> None:
            eval(code, {**known, "ctx": ctx})

        with app.running():
            probe.submit_sync().result_sync(timeout=30)
    elif "_sync" in span:
        with app.running():
            eval(code, known)
    else:
        asyncio.run(awaited(app, code, known, works=".result(" in span))


async def awaited(app: Rota, code: CodeType, known: dict[str, Any], works: bool) -> None:
    async with app if works else app.client():
        made = eval(code, known)
        if inspect.isawaitable(made):
            await made
