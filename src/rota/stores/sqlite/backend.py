"""SqliteBackend: a file and its options. Each open store has two connections, each on a thread of its own."""

import sqlite3
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import msgspec

from rota.domain.run import onwards
from rota.errors import InvalidOptions, NoStore
from rota.store import Hint, Store
from rota.stores.hub import Hub
from rota.stores.sqlite import files
from rota.stores.sqlite.bells import Bells
from rota.stores.sqlite.connection import connect
from rota.stores.sqlite.store import SqliteStore
from rota.stores.sqlite.threads import Reader, Transaction, Writer
from rota.threads import called

REQUESTED = "state = 'running' AND (cancel_requested = 1 OR pause_requested = 1)"


class SqliteBackend:
    poll = 5.0
    submits_within = None
    server_version = sqlite3.sqlite_version
    look = 0.25
    """Seconds between two checks for commits, in case a ring of the bell got lost."""
    look_without_bell = 0.05
    """The same for a subscriber without a bell."""

    def __init__(self, path: str | Path, max_pages: int | None = None) -> None:
        self.path = str(Path(path).absolute())  # a later chdir must not change the file
        self.max_pages = max_pages  # the largest size of the file, in pages of 4 KiB; beyond it, puts are refused
        self.create = True  # whether to create a missing file; if not, opening it raises NoStore
        self.skew = 0.0
        self._latest = 0.0
        self._hub = Hub()
        self._bells = Bells(self.path)

    @classmethod
    def from_url(cls, url: str) -> "SqliteBackend":
        """Read `sqlite:///relative.db` or `sqlite:////absolute.db`. `?max_pages=N` limits the size of the file."""
        parts = urlsplit(url)
        path = unquote(parts.path)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        max_pages = options.pop("max_pages", None)
        if parts.netloc or len(path) < 2 or path.endswith("/") or parts.fragment:
            raise InvalidOptions(
                f"{url!r} names no file; write sqlite:///folder/rota.db or sqlite:////absolute/rota.db"
            )
        if options or not (max_pages is None or max_pages.isdecimal()):
            raise InvalidOptions(f"{url!r}: the only option of a SQLite url is max_pages, a number of 4 KiB pages")
        return cls(path[1:], None if max_pages is None else int(max_pages))

    @property
    def url(self) -> str:
        return f"sqlite:///{quote(self.path)}"

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Store]:
        await called(self._make, "rota-sqlite-make")
        async with AsyncExitStack() as opened:
            writer = Writer(self._writing, self.path, self._clock)
            opened.push_async_callback(writer.close)
            await writer.opened
            reader = Reader(lambda: connect(self.path), self.path, self._clock, self._noticed)
            opened.push_async_callback(reader.close)
            await reader.opened
            yield SqliteStore(writer, reader, self._hub, self._bells, self._pace)

    def exists(self) -> bool:
        return Path(self.path).exists()

    def _make(self) -> None:
        if self.create:
            files.make(Path(self.path))
        elif not self.exists():
            raise NoStore(files.no_store(self.path))

    def _writing(self) -> sqlite3.Connection:
        connection = connect(self.path)
        if self.max_pages is not None:
            connection.execute(f"PRAGMA max_page_count = {self.max_pages:d}")
        return connection

    def _clock(self) -> float:
        """Return the time of this process. It never goes back, unless it was far ahead. Reads need this: they do not
        write the clock row."""
        self._latest = onwards(self._latest, time.time() + self.skew)
        return self._latest

    def _pace(self, bell: bool) -> float:
        return self.look if bell else self.look_without_bell

    def _noticed(self, tx: Transaction) -> None:
        """After a commit of any connection: publish which workers were hinted and which running runs are to stop.

        No other worker has to claim. A claim is a commit too: if every commit were a reason to claim, a worker would
        claim for ever.
        """
        woken = tx.one("SELECT json_group_array(name) FROM workers WHERE idle = 2")
        requested = tx.one("SELECT json_group_array(id) FROM runs INDEXED BY runs_requested WHERE " + REQUESTED)
        self._hub.publish(
            Hint(
                workers=frozenset(msgspec.json.decode(woken, type=list[str])),
                runs=frozenset(msgspec.json.decode(requested, type=list[str])),
                any_run=True,
            )
        )
