"""A check and its verdict; checks of the program itself and of its settings."""

import platform
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from enum import StrEnum
from importlib.metadata import version

from msgspec import Struct

from rota.domain.text import span
from rota.settings import Settings, unknown_tasks

PYTHON = (3, 11)
TRIPS = 5
FAR = 0.02
"""Seconds of a round trip beyond which the network limits the speed of the verbs."""


class Verdict(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(Struct, frozen=True):
    """One finding. `blocks` says that checks which depend on this one are left out."""

    name: str
    verdict: Verdict
    detail: str
    advice: str = ""
    blocks: bool = False

    def record(self) -> dict[str, object]:
        return {
            "verdict": self.verdict.value,
            "check": self.name,
            "detail": self.detail,
            "advice": self.advice or None,
        }


def good(name: str, detail: str) -> Check:
    return Check(name, Verdict.OK, detail)


async def trip_times(trip: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Return the median and the longest time of a few round trips, in seconds."""
    times: list[float] = []
    for _ in range(TRIPS):
        began = time.perf_counter()
        await trip()
        times.append(time.perf_counter() - began)
    return statistics.median(times), max(times)


async def latency(trip: Callable[[], Awaitable[object]]) -> Check:
    middle, longest = await trip_times(trip)
    detail = f"{span(middle)} there and back, {span(longest)} at worst"
    if middle > FAR:
        return Check("latency", Verdict.WARN, detail, "run workers near the server; is it, or the network, under load?")
    return good("latency", detail)


def program_checks() -> Iterator[Check]:
    """Yield the versions of Python and rota."""
    python = platform.python_version()
    if sys.version_info >= PYTHON:
        yield good("python", f"{python} on {platform.system()} {platform.machine()}")
    else:
        yield Check("python", Verdict.FAIL, python, "rota needs Python 3.11 or newer")
    yield good("rota", version("rota"))


def override_checks(settings: Settings, tasks: Collection[str]) -> Iterator[Check]:
    """Tables of tasks in the settings that change nothing, because no task has their name."""
    for sentence in unknown_tasks(settings, tasks):
        yield Check("overrides", Verdict.WARN, sentence, "correct the name in the settings, or remove what it changes")
