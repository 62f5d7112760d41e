"""The event loop of a worker process: uvloop if it is installed, because it spends less time on sockets."""

import asyncio
from collections.abc import Callable, Coroutine
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from rota.errors import MissingExtra

LoopKind = Literal["auto", "asyncio", "uvloop"]


def run_on(kind: LoopKind, work: Coroutine[Any, Any, None]) -> None:
    """Run `work` to its end, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=_factory(kind)) as runner:
        runner.run(work)


def check_loop(kind: LoopKind) -> None:
    if kind == "uvloop" and find_spec("uvloop") is None:
        raise MissingExtra('--loop uvloop: it is not installed: pip install "rota[uvloop]"')


def _factory(kind: LoopKind) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if kind == "asyncio" or find_spec("uvloop") is None:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    return factory
