"""Optional capabilities are attributes of the port: a store has one only if it says so."""

import inspect
from collections.abc import Callable

import pytest

from rota import InvalidOptions, Rota
from rota.engine.handover import HandOver
from rota.store import Backend, Claim, ClaimRequest, HandsOver
from rota.stores import connect
from rota.stores.memory.book import MemoryBook
from rota.stores.memory.store import MemoryStore
from rota.stores.postgres.backend import PostgresBackend
from rota.stores.postgres.store import PostgresStore
from rota.stores.redis.store import RedisStore
from rota.stores.sqlite.store import SqliteStore
from storekit.faults import FaultyBackend

REQUEST = ClaimRequest("ada", 1, ["job"], 1, 60.0)


class WithMethods(MemoryStore):
    """A store that has the methods of `HandsOver` and does not offer them."""

    hints_on = False

    def __init__(self) -> None:
        super().__init__(MemoryBook(10), lambda: 1_000_000.0)
        self.ready: list[str | None] = []

    async def hears(self, worker: str) -> bool:
        return True

    async def claim_ready(self, request: ClaimRequest, token: str | None, took: str | None) -> Claim:
        self.ready.append(token)
        return await self.claim(request)


class Offering(WithMethods):
    @property
    def hands_over(self) -> HandsOver:  # type: ignore[override]
        return self


async def test_a_worker_hands_over_only_where_the_store_offers_it() -> None:
    silent, offering = WithMethods(), Offering()
    for store in (silent, offering):
        await HandOver(store).claim(REQUEST, idle=True)

    assert silent.ready == []
    assert len(offering.ready) == 1


def test_the_stores_of_servers_hand_runs_over() -> None:
    for store in (RedisStore, PostgresStore):
        assert inspect.isdatadescriptor(inspect.getattr_static(store, "hands_over"))
    assert [store.hands_over for store in (MemoryStore, SqliteStore)] == [None] * 2


@pytest.mark.parametrize("url", ["memory://", "sqlite:///a.db", "redis://127.0.0.1:1/0"])
async def test_a_store_without_the_callers_database_refuses_a_connection(url: str) -> None:
    app = Rota(url)
    job = app.task(name="job")(lambda: None)

    assert connect(url).submits_within is None
    with pytest.raises(InvalidOptions, match="needs a PostgreSQL store"):
        job.using(connection=object()).submit_sync()


@pytest.mark.parametrize("wrap", [lambda backend: backend, FaultyBackend])
def test_postgresql_submits_within_a_transaction_of_the_caller(wrap: Callable[[Backend], Backend]) -> None:
    backend = PostgresBackend.from_url("postgresql://127.0.0.1:1/rota")

    assert wrap(backend).submits_within is backend
