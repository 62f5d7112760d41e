"""Stamps: when each run was executed, in a file that every process of a measurement maps."""

import mmap
import time
from pathlib import Path

SLOT = 8


class Stamps:
    """One slot of nanoseconds per run, 0 until it is executed. A stamp costs no I/O and well under a microsecond."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._slots = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")

    @classmethod
    def create(cls, path: Path, slots: int) -> "Stamps":
        path.write_bytes(bytes(slots * SLOT))
        return cls(path)

    def mark(self, slot: int) -> None:
        self._slots[slot] = time.time_ns()

    def read(self, count: int) -> list[int]:
        return self._slots[:count].tolist()

    def at(self, slot: int) -> int:
        return self._slots[slot]

    @property
    def last(self) -> int:
        """The slot that no measured run uses."""
        return len(self._slots) - 1


def rate(stamps: list[int]) -> float:
    """Executions per second, from the first to the last."""
    done = [stamp for stamp in stamps if stamp]
    if len(done) < 2:
        raise RuntimeError(f"{len(done)} of {len(stamps)} runs were executed: there is no rate")
    return (len(done) - 1) / ((max(done) - min(done)) / 1e9)
