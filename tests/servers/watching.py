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


def all_gone(pids: list[int], folder: Path) -> bool:
    """Whether they end, and their folder with them, within a bounded time."""
    deadline = time.monotonic() + PATIENCE
    while alive(pids) or folder.exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
