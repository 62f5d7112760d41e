"""Signs of life: what a command that works says to the service manager (systemd) and to the file that a probe reads.

They come from the event loop that works: a loop that is stuck gives no more of them. A store that does not answer is no
reason to start a worker again, so the worker is live while it tries to claim, and ready while the store answers it.
"""

import asyncio
import os
import socket
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal, Protocol

from rota.errors import InvalidOptions

BEAT = 5.0
"""Seconds between two signs, at most."""

Word = Literal["ready", "live", "stuck"]


class Works(Protocol):
    """What is asked of an engine."""

    @property
    def live(self) -> bool: ...

    @property
    def healthy(self) -> bool: ...


def word_of(engine: Works | None) -> Word:
    """`ready`: the store answers claims. `live`: the engine tries. `stuck`: it does not. Without an engine: ready."""
    if engine is None or engine.healthy:
        return "ready"
    return "live" if engine.live else "stuck"


class Manager:
    """The service manager, by the protocol of sd_notify: a datagram to the socket that NOTIFY_SOCKET names. Without
    that variable, nothing is sent."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        mine = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        limit = environment.get("WATCHDOG_USEC", "") if mine else ""
        self.beat = min(BEAT, int(limit) / 2e6) if limit.isdigit() and int(limit) else BEAT
        """Seconds between two signs: at least two within the limit of the watchdog."""

    def __bool__(self) -> bool:
        return bool(self._address)

    def send(self, **words: object) -> None:
        """Send the manager `NAME=value` lines. A manager that does not listen is no reason to fail."""
        if not self._address:
            return
        text = "\n".join(f"{name}={value}" for name, value in words.items())
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            line.setblocking(False)
            line.sendto(text.encode(), self._address)


def write_sign(file: Path, word: Word) -> None:
    """Write `word` and the monotonic time, which all processes of a machine share, into `file` in one step."""
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    beside.write_text(f"{word} {time.monotonic()}\n")  # rounded up, a sign would be from the future
    beside.replace(file)


def check_file(file: Path | None, processes: int = 1) -> None:
    """Raise if no sign can be written to `file`."""
    if file is None:
        return
    if processes > 1:
        raise InvalidOptions("--health-file is of one process: start a worker per container instead of --processes")
    try:
        write_sign(file, "live")
    except OSError as error:
        raise InvalidOptions(f"--health-file {file}: {error.strerror or error}") from None


@asynccontextmanager
async def signs_of_life(
    engine: Callable[[], Works | None], stopping: asyncio.Event, file: Path | None = None, sends: bool = True
) -> AsyncGenerator[None]:
    """Give signs of life while this is open. `sends`: also to the service manager, which hears of the start, and of
    `stopping`."""
    manager = Manager() if sends else Manager({})
    if not manager and file is None:
        yield
        return
    manager.send(READY=1, STATUS="working")
    beating = asyncio.create_task(_beat(engine, stopping, file, manager), name="rota signs of life")
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.wait((beating,))
        if file is not None:
            _remove(file)


def _remove(file: Path) -> None:
    with suppress(OSError):  # an old sign is as good as none
        file.unlink()


async def _beat(
    engine: Callable[[], Works | None], stopping: asyncio.Event, file: Path | None, manager: Manager
) -> None:
    sent: str | None = None
    while True:
        word: Word = "live" if stopping.is_set() else word_of(engine())
        if word != "stuck":
            status = "stopping" if stopping.is_set() else "working" if word == "ready" else "waiting for the store"
            if status != sent:
                manager.send(**({"STOPPING": 1} if stopping.is_set() else {}), STATUS=status)
                sent = status
            manager.send(WATCHDOG=1)
            if file is not None:
                with suppress(OSError):  # a full disk: the probe sees an old sign
                    write_sign(file, word)
        if stopping.is_set():
            await asyncio.sleep(manager.beat)
            continue
        with suppress(TimeoutError):
            async with asyncio.timeout(manager.beat):
                await stopping.wait()
