"""Which source files have changed: a scan is the truth, watchfiles (if installed) says when to look."""

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path

IGNORED = frozenset({".venv", "venv", ".git", "__pycache__", ".rota", "node_modules", ".tox", ".mypy_cache"})
PROJECT_FILES = frozenset({"rota.toml", "pyproject.toml"})
MOST = 20_000
"""Files beyond this are not looked at: a scan stays cheap even where it was started by mistake."""
SCAN_EVERY = 0.5
LOOK_ANYWAY = 2.0
"""Seconds between looks without a word from watchfiles: it may miss what happens while it starts."""

Snapshot = dict[str, tuple[int, int]]


def snapshot(folder: Path) -> Snapshot:
    """Time and size of every Python file and project file below the folder."""
    found: Snapshot = {}
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in IGNORED]
        for name in files:
            if not name.endswith(".py") and name not in PROJECT_FILES:
                continue
            path = os.path.join(root, name)
            try:
                status = os.stat(path)
            except OSError:  # gone since, or a dangling link
                continue
            found[path] = (status.st_mtime_ns, status.st_size)
            if len(found) == MOST:
                return found
    return found


class Changes:
    """What has changed below a folder since it was last asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._seen = snapshot(self.folder)
        self._ticks = _told(self.folder) if watchfiles_installed() else _timed()

    async def next(self) -> list[str]:
        """Waits for changes; the names of the files, from the folder on."""
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


async def _told(folder: Path) -> AsyncGenerator[None]:
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
