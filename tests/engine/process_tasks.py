"""Handlers for test_process_executor, in a module that a child can import."""

import asyncio
import atexit
import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rota import Context, Rota
from rota.errors import RetryAfter
from tests.lines import print_line

app = Rota("memory://")


@dataclass
class Photo:
    path: Path
    taken: datetime


@app.task
def describe(photo: Photo, width: int = 800) -> dict[str, Any]:
    return {"kind": type(photo.path).__name__, "year": photo.taken.year, "width": width, "pid": os.getpid()}


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def nothing() -> None:
    return


def pid() -> int:
    return os.getpid()


class Strange(ValueError):
    pass


def stumble(how: str) -> None:
    raise Strange(f"no {how}")


async def stumble_async(how: str) -> None:
    await asyncio.sleep(0)
    stumble(how)


class Later(RetryAfter):
    def __init__(self) -> None:
        super().__init__(60, "busy")


def verdict() -> None:
    raise Later


def leave() -> None:
    sys.exit(3)


def hold(ctx: Context) -> None:
    """Never ends, and neither does what it starts."""
    sleeper = subprocess.Popen(["sleep", "1000"])
    ctx.warn(str(os.getpid()))
    ctx.warn(str(sleeper.pid))
    ctx.progress(0.5)
    threading.Event().wait()


def hold_the_gil(ctx: Context) -> None:
    """No other thread of the child gets to run."""
    print_line(f"child {os.getpid()}")
    ctypes.PyDLL(None).sleep(1000)


def end(code: int) -> None:
    os._exit(code)


def crash() -> None:
    ctypes.string_at(0)


def crash_if(number: int, bad: int) -> int:
    if number == bad:
        crash()
    return number


def crash_beside_a_fork(ctx: Context) -> None:
    """A fork that Python does not know of: it keeps all that it inherited, the connection too."""
    libc = ctypes.PyDLL(None)
    forked = libc.fork()
    if forked == 0:
        libc.sleep(1000)
    ctx.warn(str(forked))
    crash()


def listen(ctx: Context) -> str:
    ctx.progress(0.1)
    while not ctx.stopping:
        threading.Event().wait(0.01)
    return "stopped"


async def cleanup(ctx: Context) -> None:
    ctx.progress(0.1)
    try:
        await asyncio.Event().wait()
    finally:
        ctx.warn("cleaned up")


def oblivious(ctx: Context) -> str:
    """Does not look, and is done soon after it was told."""
    ctx.progress(0.1)
    threading.Event().wait(0.2)
    return "done"


def go_on(ctx: Context) -> int:
    ctx.progress(0.5, "half")
    ctx.checkpoint({"page": ctx.saved["page"] + 1})
    ctx.warn("careful")
    return int(ctx.saved["page"])


def unwritable() -> object:
    return object()


def too_large() -> str:
    return "x" * (1024 * 1024)


def endure_signals() -> list[int]:
    """Ours have no effect; on what we start they have."""
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), number)
    started = subprocess.Popen(["sleep", "1000"])
    started.terminate()
    forked = os.fork()
    if forked == 0:
        os.kill(os.getpid(), signal.SIGTERM)
        os._exit(0)
    return [started.wait(), os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1])]


def say_goodbye(path: Path) -> None:
    atexit.register(path.write_text, "goodbye")


_late = threading.Event()


def leave_a_thread(ctx: Context) -> None:
    def speak() -> None:
        _late.wait()
        ctx.warn("from the past")

    threading.Thread(target=speak, name="late").start()


def let_it_speak() -> None:
    _late.set()
    for thread in threading.enumerate():
        if thread.name == "late":
            thread.join()


def take_longer(ctx: Context, added: float) -> str:
    ctx.extend(added)
    threading.Event().wait(0.3)
    return "done"


def whose_run() -> str:
    return Context.current().run.id


async def whose_run_async() -> str:
    return await asyncio.to_thread(whose_run)


def headers_here() -> dict[str, str]:
    return dict(Context.current().headers)


def say(word: str) -> None:
    logging.getLogger("shop").warning("hello %s", word)
