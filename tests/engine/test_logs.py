"""What is logged: lines that people search for, levels they alert on, and the forms that `rota worker` writes."""

import asyncio
import gc
import json
import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from rota import Discard, Every, Retry, RetryAfter, Rota, RunFailed, TaskError
from rota.domain.lifecycle import Lost, settlement_of
from rota.domain.policy import Policy
from rota.domain.run import Run, State
from rota.domain.timing import shown
from rota.engine.endings import log_lost
from rota.engine.logs import JsonLines, LogSetup, TextLines, configure, local
from rota.testing import Simulation, simulate
from tests.requirement import requirement

START = datetime(2026, 5, 4, tzinfo=UTC)


@pytest.fixture
def own_logging() -> Iterator[logging.Logger]:
    """The root logger as a fresh process has it, and afterwards as it was."""
    root, ours = logging.getLogger(), logging.getLogger("rota")
    before = root.handlers, root.level, ours.level
    root.handlers = []
    yield root
    root.handlers, root.level = before[0], before[1]
    ours.setLevel(before[2])


@requirement("2.11")
def test_2_11_each_event_has_its_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="rota")
    app = Rota("memory://")
    broken = True

    @app.task(schedule=Every(60))
    async def slow() -> None:
        await asyncio.sleep(90)

    @app.task(retry=Retry(1, delay=5, jitter=0))
    async def report() -> None:
        nonlocal broken
        if broken:
            broken = False
            raise ValueError("no data")

    @app.task
    async def empty() -> None:
        raise TaskError("skipped", "nothing new")

    async def scenario(simulation: Simulation) -> None:
        await report.submit()
        await empty.submit()
        await asyncio.sleep(190)
        simulation.crash()

    simulate(app, START, START + timedelta(seconds=400), scenario=scenario)

    gc.collect()  # what the crash left behind ends here, not while some other test imports a module
    lines = caplog.text
    for words in (
        "scheduled slow: every 1m, next 2026-05-04 00:01:00+00:00",
        "started (fence 1)",
        "succeeded in 90.000 s",
        "failed after 0.000 s, it will be tried again in 5.0 s: ValueError: no data\nTraceback (most recent call",
        "skipped after 0.000 s: nothing new",
        "schedule slow skipped its tick of 2026-05-04 00:02:00+00:00: already_running",
        "the lease of worker worker-1 lapsed (fence 1), it is restarted",
    ):
        assert words in lines


@pytest.mark.parametrize(
    ("error", "level", "traced"),
    [
        (ValueError("bad"), "ERROR", True),
        (TaskError("failed", "no races today"), "ERROR", False),
        (Discard("never"), "ERROR", False),
    ],
)
async def test_the_last_failure_is_an_error_and_a_verdict_has_no_traceback(
    error: Exception, level: str, traced: bool, caplog: pytest.LogCaptureFixture
) -> None:
    app = Rota("memory://")

    @app.task
    async def judge() -> None:
        raise error

    async with app:
        with pytest.raises(RunFailed):
            await (await judge.submit()).result(timeout=10)
    (line,) = [record for record in caplog.records if "failed after" in record.getMessage()]
    assert line.levelname == level
    assert ("Traceback" in line.getMessage()) is traced


async def test_a_failure_that_is_tried_again_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    app = Rota("memory://")
    tries: list[int] = []

    @app.task(retry=Retry(2, delay=0))
    async def flaky() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise RetryAfter(0)
        if len(tries) == 2:
            raise TaskError("failed", "not yet") from ValueError("the cause")

    async with app:
        await (await flaky.submit()).result(timeout=10)
    asked, caused = [record for record in caplog.records if "failed after" in record.getMessage()]
    assert (asked.levelname, caused.levelname) == ("WARNING", "WARNING")
    assert "Traceback" not in asked.getMessage()
    assert "ValueError: the cause" in caused.getMessage()


@pytest.mark.parametrize(
    ("lost", "level", "words"), [("retry", "WARNING", "it is restarted"), ("fail", "ERROR", "(lost)")]
)
def test_a_lapsed_lease_says_what_becomes_of_the_run(
    lost: str, level: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    policy = Policy(lost="fail") if lost == "fail" else Policy()
    run = Run(id="1", task="beat", state=State.RUNNING, worker="ada", fence=3, policy=policy)
    log_lost(run, settlement_of(run, Lost()))
    (record,) = caplog.records
    assert record.levelname == level
    assert record.getMessage().startswith("beat 1: the lease of worker ada lapsed (fence 3), ")
    assert words in record.getMessage()


async def test_lines_of_the_apps_own_loggers_name_their_run(own_logging: logging.Logger) -> None:
    told: list[dict[str, str]] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(json.loads(self.format(record)))

    handler = Kept()
    handler.setFormatter(JsonLines())
    own_logging.handlers = [handler]
    own_logging.setLevel(logging.INFO)
    app = Rota("memory://")

    @app.task
    async def on_loop() -> None:
        logging.getLogger("shop").info("on the loop")

    @app.task
    def in_thread() -> None:
        logging.getLogger("shop").info("in a thread")
        raise ValueError("bad")

    async with app:
        one, two = await on_loop.submit(), await in_thread.submit()
        await one.result(timeout=10)
        with pytest.raises(RunFailed):
            await two.result(timeout=10)
    mine = {line["message"]: (line["task"], line["run"]) for line in told if line["logger"] == "shop"}
    assert mine == {"on the loop": ("on_loop", one.id), "in a thread": ("in_thread", two.id)}
    assert len({line["worker"] for line in told if "run" in line}) == 1
    (failed,) = [line for line in told if "failed after" in line["message"]]
    assert failed["traceback"].startswith("Traceback (most recent call last):\n")
    assert failed["level"] == "error"
    assert "\n" not in failed["message"]


def test_an_app_that_set_up_logging_keeps_it(own_logging: logging.Logger) -> None:
    mine = logging.NullHandler()
    own_logging.handlers, own_logging.level = [mine], logging.WARNING
    configure(LogSetup())
    assert (own_logging.handlers, own_logging.level) == ([mine], logging.WARNING)
    assert logging.getLogger("rota").level == logging.INFO
    configure(LogSetup(form="json", replace=True))
    assert isinstance(own_logging.handlers[0].formatter, JsonLines)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris", "America/St_Johns"])
def test_prefix_and_message_tell_the_same_clock(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        record = logging.makeLogRecord({"msg": "next", "levelname": "INFO", "name": "rota", "created": 1_778_000_000.5})
        line = TextLines(LogSetup()).format(record)
        assert line == f"{local(1_778_000_000.5)} INFO rota: next"
        assert shown(1_778_000_000.0).replace(" ", "T") == local(1_778_000_000.5).replace(".500", "")
    finally:
        monkeypatch.undo()
        time.tzset()
