"""Which source files have changed. A scan decides; watchfiles, if installed, only says when to scan."""

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path

IGNORED = frozenset({".venv", "venv", ".git", "__pycache__", ".rota", "node_modules", ".tox", ".mypy_cache"})
PROJECT_FILES = frozenset({"rota.toml", "pyproject.toml"})
MOST = 20_000
"""The most files that a scan reads, so that it stays cheap in a folder that was chosen by mistake."""
SCAN_EVERY = 0.5
LOOK_ANYWAY = 2.0
"""Seconds between scans without a message from watchfiles, which may miss changes while it starts."""

Snapshot = dict[str, tuple[int, int]]


def snapshot(folder: Path) -> Snapshot:
    """Return the time and size of every Python file and project file below `folder`."""
    found: Snapshot = {}
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in IGNORED]
        for name in files:
            if not name.endswith(".py") and name not in PROJECT_FILES:
                continue
            path = os.path.join(root, name)
            try:
                status = os.stat(path)
            except OSError:  # deleted meanwhile, or a dangling link
                continue
            found[path] = (status.st_mtime_ns, status.st_size)
            if len(found) == MOST:
                return found
    return found


class Changes:
    """The changes below a folder since the last call of `next`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._seen = snapshot(self.folder)
        self._ticks = _notified(self.folder) if watchfiles_installed() else _timed()

    async def next(self) -> list[str]:
        """Wait for changes and return the names of the files, relative to the folder."""
        while True:
            if changed := await asyncio.to_thread(self._compare):
                return changed
            await anext(self._ticks)

    def _compare(self) -> list[str]:
        before, now = self._seen, snapshot(self.folder)
        self._seen = now
        changed = sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
        return [os.path.relpath(path, self.folder) for path in changed]

    async def close(self) -> None:
        await self._ticks.aclose()


def watchfiles_installed() -> bool:
    try:
        import watchfiles
    except ImportError:
        return False
    return bool(watchfiles.VERSION)


async def _timed() -> AsyncGenerator[None]:
    while True:
        await asyncio.sleep(SCAN_EVERY)
        yield


async def _notified(folder: Path) -> AsyncGenerator[None]:
    from watchfiles import Change, awatch  # pyright: ignore[reportUnknownVariableType]

    def telling(change: Change, path: str) -> bool:
        parts = os.path.relpath(path, folder).split(os.sep)
        return (path.endswith(".py") or parts[-1] in PROJECT_FILES) and IGNORED.isdisjoint(parts)

    watching = awatch(
        folder,
        watch_filter=telling,
        debounce=200,
        rust_timeout=int(LOOK_ANYWAY * 1000),
        yield_on_timeout=True,
        ignore_permission_denied=True,
    )
    async for _ in watching:
        yield
