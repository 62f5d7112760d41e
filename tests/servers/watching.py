"""Looks at processes from outside."""

import time
from pathlib import Path

from storekit.servers.guard import children, state

PATIENCE = 30.0


def family(pid: int) -> list[int]:
    """A process and its children."""
    return [pid, *children(pid)]


def alive(pids: list[int]) -> list[int]:
    """Those that run; a zombie does not."""
    return [pid for pid in pids if state(pid)[:1] not in ("", "Z", "X")]


def all_gone(pids: list[int], folder: Path | None = None) -> bool:
    """Whether they end, and their folder with them, within a bounded time: who was killed may take a moment to go."""
    deadline = time.monotonic() + PATIENCE
    while alive(pids) or (folder is not None and folder.exists()):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
