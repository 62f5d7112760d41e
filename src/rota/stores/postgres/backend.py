"""The backend: opens stores on one server. Each open store has its own connections, bound to its event loop."""

import os
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from rota.domain.decision import Decision
from rota.domain.run import NewRun
from rota.errors import StoreError
from rota.store import Store, SubmitsWithin
from rota.stores.hub import Hub
from rota.stores.postgres import schema, within
from rota.stores.postgres.address import Address, parse
from rota.stores.postgres.driver import explain, quoted
from rota.stores.postgres.pool import Pool
from rota.stores.postgres.store import PostgresStore

POLL_WITH_HINTS, POLL_WITHOUT_HINTS = 5.0, 1.0
"""Seconds after which an idle worker claims again."""


class PostgresBackend:
    def __init__(self, address: Address) -> None:
        self.address = address
        self.skew = 0.0
        self.hub = Hub()
        self.seen = 0.0
        """The latest store time in a reply. Every verb sends it, so that the store's time never goes back."""
        self.reads_events_until = 0.0
        """Until when somebody in this process reads events, by the store's time."""
        self.server_version = ""
        self.proven = True
        """Do hints arrive by NOTIFY? See `Listener`."""
        self._name = uuid.uuid4().hex

    @classmethod
    def from_url(cls, url: str) -> "PostgresBackend":
        return cls(parse(url))

    @property
    def url(self) -> str:
        return self.address.shown

    @property
    def poll(self) -> float:
        return POLL_WITH_HINTS if self.proven else POLL_WITHOUT_HINTS

    @property
    def me(self) -> str:
        """The id of this process in the table `listeners`; a forked child has another id."""
        return f"{os.getpid()}-{self._name}"

    @property
    def schema(self) -> str:
        """The name of the schema, quoted for SQL."""
        return quoted(self.address.schema)

    @property
    def submits_within(self) -> SubmitsWithin:
        return self

    async def put_within(self, connection: object, run: NewRun) -> Decision:
        return await within.put_within(connection, self, run)

    def put_within_sync(self, connection: object, run: NewRun) -> Decision:
        return within.put_within_sync(connection, self, run)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Store]:
        store = PostgresStore(self)
        try:
            await self._ready(store.pool)
            yield store
        finally:
            await store.close()

    async def migrate(self) -> tuple[int, int]:
        """Bring the schema up to date. Returns its version before and after."""
        pool = Pool(self.address.login, self.url, 1, lambda: None)
        try:
            return await self._ready(pool)
        finally:
            await pool.close()

    async def planned(self) -> tuple[int, int, bool]:
        """Return the version of the schema, the one that `migrate` would bring it to, and whether `migrate` would
        install functions. Nothing is changed."""
        pool = Pool(self.address.login, self.url, 1, lambda: None)
        try:
            connection = await pool.open()
            try:
                found = await schema.schema_version(connection, self.address.schema, self.url)
            finally:
                connection.terminate()
            return found.version, schema.newest(), found.functions < schema.FUNCTIONS
        except StoreError:
            raise
        except Exception as error:
            raise explain(error, self.url) from error
        finally:
            await pool.close()

    async def _ready(self, pool: Pool) -> tuple[int, int]:
        try:
            connection = await pool.open()
            try:
                versions = await schema.migrate(connection, self.address.schema, self.url)
                self.server_version = ".".join(map(str, connection.get_server_version()[:2]))
            except BaseException:
                connection.terminate()
                raise
        except StoreError:
            raise
        except Exception as error:
            raise explain(error, self.url) from error
        pool.keep(connection)
        return versions
