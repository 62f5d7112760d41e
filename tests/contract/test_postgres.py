"""The PostgreSQL store keeps the contract: whole on the newest version, its core on those that this machine has."""

import asyncio

import pytest

from rota.store import Backend
from rota.stores.postgres import PostgresBackend
from storekit.contract import StoreContract
from storekit.contract.claiming import ClaimContract
from storekit.contract.crowding import crowd
from storekit.contract.declaring_schedules import ScheduleDeclareContract
from storekit.contract.firing import FireContract
from storekit.contract.flowing import FlowContract, GroupContract
from storekit.contract.guarding import UniqueContract
from storekit.contract.hinting import HintContract
from storekit.contract.keeping import SweepContract
from storekit.contract.leasing import LeaseContract
from storekit.contract.limiting import LimitContract
from storekit.contract.needing import BehindContract
from storekit.contract.planning import PlanContract
from storekit.contract.putting import PutContract
from storekit.contract.recording import EventContract
from storekit.contract.settling import SettleContract
from storekit.servers import postgres_kinds
from tests.postgres_schemas import NEWEST, Schemas

ELSEWHERE = [kind for kind in postgres_kinds() if kind != NEWEST]


class TestPostgres(StoreContract):
    @pytest.fixture
    def backend(self, postgres_backend: PostgresBackend) -> Backend:
        return postgres_backend


class TestElsewhere(
    PutContract,
    UniqueContract,
    BehindContract,
    ClaimContract,
    LimitContract,
    LeaseContract,
    SettleContract,
    ScheduleDeclareContract,
    FireContract,
    SweepContract,
    HintContract,
    FlowContract,
    GroupContract,
    PlanContract,
    EventContract,
):
    """The verbs that work is made of, on each other version and pooler that this machine has."""

    @pytest.fixture(params=ELSEWHERE)
    def backend(self, request: pytest.FixtureRequest, schemas: Schemas) -> Backend:
        return schemas.backend(request.param)


@pytest.mark.soak
class TestElsewhereInFull(StoreContract):
    @pytest.fixture(params=ELSEWHERE)
    def backend(self, request: pytest.FixtureRequest, schemas: Schemas) -> Backend:
        return schemas.backend(request.param)


FORTUNES = [*((NEWEST, seed) for seed in range(100, 103)), *((kind, 100) for kind in ELSEWHERE)]


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("kind", "seed"), FORTUNES)
def test_postgres_holds_its_limits_for_long(schemas: Schemas, kind: str, seed: int) -> None:
    asyncio.run(crowd(schemas.backend(kind), 100_000, seed))
