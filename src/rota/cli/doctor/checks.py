"""A check and its verdict; checks of the program itself and of the app."""

import platform
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from enum import StrEnum
from importlib.metadata import version

from msgspec import Struct

from rota.app.app import Rota
from rota.cli.options.target import Target
from rota.cli.render.text import plural, span
from rota.errors import RotaError
from rota.settings import unknown_tasks

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


def app_check(target: Target) -> Check:
    """Return whether the app can be imported and has tasks."""
    try:
        if target.reference is None:
            cure = 'name it in rota.toml (app = "jobs:app"), with -A jobs:app, or in ROTA_APP'
            return Check("app", Verdict.WARN, "none is named", cure)
        tasks = target.app().tasks
    except RotaError as error:
        return Check("app", Verdict.FAIL, str(error), "mend the import, or name another app with -A")
    if not tasks:
        return Check("app", Verdict.WARN, f"{target.reference} has no tasks", "define one with @app.task")
    return good("app", f"{target.reference} with {plural(len(tasks), 'task')}")


def override_checks(app: Rota) -> Iterator[Check]:
    """Tables of tasks in the settings that change nothing, because no task has their name."""
    for sentence in unknown_tasks(app.settings, app.tasks):
        yield Check("overrides", Verdict.WARN, sentence, "correct the name in the settings, or remove what it changes")
