"""The watchdog: what blocks the loop is named while it does."""

import asyncio
import logging
import re
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from rota.engine.watchdog import Watchdog
from tests.processes import Process
from tests.requirement import requirement

PATIENCE = 30.0
THRESHOLD = 0.1


class Ears(logging.Handler):
    """What the `rota` logger says, and a signal for every word."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []
        self.heard = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())
        self.heard.set()

    async def hear(self, words: int) -> None:
        """Until so many have been said."""
        while len(self.said) < words:
            self.heard.clear()
            if len(self.said) < words:
                assert await asyncio.to_thread(self.heard.wait, PATIENCE), self.said


@pytest.fixture
def ears() -> Iterator[Ears]:
    ears = Ears()
    logging.getLogger("rota").addHandler(ears)
    yield ears
    logging.getLogger("rota").removeHandler(ears)


@pytest.fixture
async def watchdog() -> AsyncIterator[Watchdog]:
    watchdog = Watchdog(THRESHOLD)
    watchdog.start()
    yield watchdog
    watchdog.stop()


def a_blocking_call(until: threading.Event) -> bool:
    return until.wait(PATIENCE)


@requirement("2.5")
async def test_a_blocked_loop_is_told_with_the_stack_of_what_blocks_it(ears: Ears, watchdog: Watchdog) -> None:
    began = time.monotonic()
    assert a_blocking_call(ears.heard), "told while it is blocked"
    assert watchdog.blocked_for >= THRESHOLD
    ears.heard.clear()
    assert not ears.heard.wait(2 * THRESHOLD), "told once"
    took = time.monotonic() - began
    await ears.hear(2)
    blocked, recovered = ears.said
    assert re.match(r"the event loop has been blocked for \d+\.\d s, by:\n", blocked)
    assert "in a_blocking_call\n    return until.wait(PATIENCE)" in blocked
    assert blocked.count("  File ") == 15
    total = re.search(r"turns again: it was blocked for (\d+\.\d) s", recovered)
    assert total is not None
    assert float(total[1]) >= took - 2 * THRESHOLD
    assert watchdog.blocked_for == 0
    assert watchdog.last is not None, "and kept for the report of the worker"
    assert watchdog.last.seconds >= took - 2 * THRESHOLD
    assert "in a_blocking_call" in watchdog.last.stack


async def test_every_blockage_is_told_anew(ears: Ears, watchdog: Watchdog) -> None:
    for count in (2, 4):
        ears.heard.clear()
        assert a_blocking_call(ears.heard)
        await ears.hear(count)
    assert [said[:19] for said in ears.said] == ["the event loop has ", "the event loop turn"] * 2


def test_a_loop_that_was_closed_is_not_blocked(ears: Ears) -> None:
    async def start() -> None:
        Watchdog(THRESHOLD).start()

    before = set(threading.enumerate())
    asyncio.run(start())
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert ears.said == []


async def test_a_stopped_watchdog_is_silent(ears: Ears, watchdog: Watchdog) -> None:
    watchdog.stop()
    ears.heard.wait(3 * THRESHOLD)
    assert watchdog.blocked_for == 0
    assert ears.said == []


SUSPENDED = """
import asyncio, logging, sys
from rota.engine.watchdog import Watchdog

async def main():
    watchdog = Watchdog(0.1)
    watchdog.start()
    print("watching", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    watchdog.stop()

logging.basicConfig()
asyncio.run(main())
"""


def test_a_suspended_process_is_no_alarm() -> None:
    """Who was stopped itself accuses nobody: one line about the lost time, and no stack."""
    with Process("-c", SUSPENDED) as watching:
        watching.wait_for("watching")
        watching.signal(signal.SIGSTOP)
        threading.Event().wait(0.5)
        watching.signal(signal.SIGCONT)
        watching.wait_for("turns again")
        watching.say("enough")
        assert watching.wait() == 0
        assert "by:" not in watching.output
