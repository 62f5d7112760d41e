"""How late runs start that are due at an instant, beside bare timers of an event loop for the same instants."""

import asyncio
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import msgspec

from benchmarks.figures import Cost, percentiles
from benchmarks.settings import Settings
from benchmarks.turns import fresh_url
from rota import Rota, Task

COUNT, WINDOW, LEAD = 1000, 10.0, 4.0
AFTER = 1.0
"""Seconds after the last instant."""
GRACE = 3.0
"""Milliseconds by which a run may be later than a timer."""


def lateness(settings: Settings, server: str) -> list[Cost]:
    late: list[float] = []
    bare: list[float] = []
    for _ in range(settings.rounds):
        with fresh_url(server) as url:
            ours, theirs = _round(url)
        late.append(percentiles(ours)["p99"])
        bare.append(percentiles(theirs)["p99"] + GRACE)
    return [Cost(f"lateness p99, beside that of a bare timer + {GRACE:g} ms", "ms", late, bare, goal=1.0)]


def _round(url: str) -> tuple[list[float], list[float]]:
    """Milliseconds of each run and of each timer."""
    with _process("work", url) as worker, _process("bare") as timers:
        dues = asyncio.run(_submit(url))
        assert timers.stdin is not None
        timers.stdin.write(msgspec.json.encode(dues))
        timers.stdin.close()
        time.sleep(max(0.0, max(dues) + AFTER - time.time()))
        worker.send_signal(signal.SIGTERM)
        ours, theirs = _said(worker), _said(timers)
    if len(ours) != COUNT:
        raise RuntimeError(f"{len(ours)} of {COUNT} runs have started")
    return ours, theirs


async def _submit(url: str) -> list[float]:
    app, note = _make(url, [])
    await asyncio.sleep(1)
    first = time.time() + LEAD
    dues = [first + random.random() * WINDOW for _ in range(COUNT)]
    async with app.client():
        for due in dues:
            await note.using(at=datetime.fromtimestamp(due, UTC)).submit(due)
    return dues


def _make(url: str, late: list[float]) -> tuple[Rota, Task[[float], [float], object, None]]:
    app = Rota(url, concurrency=100)

    async def note(due: float) -> None:
        late.append((time.time() - due) * 1000)

    return app, app.task(note)


@contextmanager
def _process(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "benchmarks.lateness", *words]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _said(process: subprocess.Popen[bytes]) -> list[float]:
    assert process.stdout is not None
    return msgspec.json.decode(process.stdout.read(), type=list[float])


async def _work(url: str) -> list[float]:
    late: list[float] = []
    app, _ = _make(url, late)
    terminated = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated.set)
    async with app:
        await terminated.wait()
    return late


async def _bare(dues: list[float]) -> list[float]:
    loop, late = asyncio.get_running_loop(), list[float]()

    def tick(due: float) -> None:
        late.append((time.time() - due) * 1000)

    for due in dues:
        loop.call_at(loop.time() + due - time.time(), tick, due)
    await asyncio.sleep(max(dues) + AFTER / 2 - time.time())
    return late


def main(role: str, url: str = "") -> None:
    found = _work(url) if role == "work" else _bare(msgspec.json.decode(sys.stdin.buffer.read(), type=list[float]))
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(found)))


if __name__ == "__main__":
    main(*sys.argv[1:])
