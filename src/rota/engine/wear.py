"""Wear: when a worker has done enough and another should take its place."""

import os
import sys
from collections.abc import Callable

from rota.domain.text import plural

MIB = 1 << 20


def memory_in_use() -> int:
    """Return the bytes of memory that this process has in use; where the system does not say, the most it ever had."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return _peak()


def _peak() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Wear:
    """Counts the runs that a worker starts. Without `max_runs` and `max_memory` (bytes) a worker never wears out."""

    def __init__(
        self,
        max_runs: int | None = None,
        max_memory: int | None = None,
        memory: Callable[[], int] = memory_in_use,
    ) -> None:
        self._max_runs = max_runs
        self._max_memory = max_memory
        self._memory = memory
        self._started = 0

    def start(self, runs: int) -> bool:
        """So many more runs start. Return whether the last one of `max_runs` is among them."""
        self._started += runs
        return self._max_runs is not None and self._started >= self._max_runs

    def room(self, free: int) -> int:
        """Return how many of `free` seats may be filled without going beyond `max_runs`."""
        return free if self._max_runs is None else max(0, min(free, self._max_runs - self._started))

    def words(self) -> str | None:
        """Return in words why the worker should start no more runs; None if it should go on.

        Memory counts only after the first run: else a bound that is too low would replace workers for ever, and no run
        would ever start.
        """
        if self._max_runs is not None and self._started >= self._max_runs:
            return f"it has started {plural(self._started, 'run')} (--max-runs {self._max_runs})"
        if self._max_memory is not None and self._started and (used := self._memory()) > self._max_memory:
            return f"it uses {used // MIB} MiB of memory (--max-memory {self._max_memory // MIB}M)"
        return None
