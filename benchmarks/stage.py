"""Stage: the folder of one measurement, and the processes that perform in it."""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.peer import DATABASE, STAMPS
from benchmarks.stamps import Stamps, rate

ROOT = Path(__file__).resolve().parent.parent
STALL = 20.0


class Stage:
    """One peer with a store of its own, empty at first."""

    def __init__(self, peer: str, place: Path, slots: int) -> None:
        self.peer = peer
        self.place = place
        self.slots = slots
        self.stamps = Stamps.create(place / STAMPS, slots + 1)

    def perform(self, operation: str, **given: Any) -> dict[str, float]:
        done = subprocess.run(self._command(operation, given), cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{self.peer} {operation} failed:\n{done.stderr}")
        return msgspec.json.decode(done.stdout.splitlines()[-1], type=dict[str, float])

    @contextmanager
    def worker(self) -> Iterator[subprocess.Popen[bytes]]:
        """A worker process, ended with the block."""
        process = subprocess.Popen(self._command("work", {}), cwd=ROOT)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def drain(self, runs: int, workers: int, cap: float) -> float:
        """Start the workers on a full queue; executions per second, of as many as end within `cap` seconds."""
        with ExitStack() as stack:
            for _ in range(workers):
                stack.enter_context(self.worker())
            self._watch(runs, cap)
            return rate(self.stamps.read(runs))

    def _watch(self, runs: int, cap: float) -> None:
        began: float | None = None
        moved, left = time.monotonic(), runs
        while True:
            time.sleep(0.05)
            now, before, left = time.monotonic(), left, self.stamps.read(runs).count(0)
            if left != before:
                moved, began = now, began or now
            if not left or (began and now - began > cap):
                return
            if now - moved > STALL:
                raise RuntimeError(f"{self.peer}: {left} of {runs} runs left, and none executed for {STALL:.0f} s")

    def _command(self, operation: str, given: dict[str, Any]) -> list[str]:
        arguments = [self.peer, str(self.place), operation, msgspec.json.encode(given).decode()]
        return [sys.executable, "-m", "benchmarks.part", *arguments]


@contextmanager
def stage(peer: str, slots: int, like: Stage | None = None) -> Iterator[Stage]:
    """A new stage, with a copy of the queue of another if one is given."""
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
        place = Path(folder)
        if like is not None:
            for file in like.place.glob(f"{DATABASE}*"):
                shutil.copy(file, place)
        yield Stage(peer, place, slots)
