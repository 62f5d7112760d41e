"""The Redis store keeps the contract: whole on Valkey 9 (and, among the long tests, Redis 6.2), its verbs elsewhere."""

import itertools
import os

import pytest

from rota.store import Backend
from rota.stores import connect
from rota.testing.contract import StoreContract
from rota.testing.contract.asking import AskContract
from rota.testing.contract.claiming import ClaimContract
from rota.testing.contract.deciding import RowContract
from rota.testing.contract.declaring import DeclareContract
from rota.testing.contract.firing import FireContract
from rota.testing.contract.flowing import FlowContract, GroupContract
from rota.testing.contract.guarding import UniqueContract
from rota.testing.contract.hinting import HintContract
from rota.testing.contract.keeping import SweepContract
from rota.testing.contract.leasing import LeaseContract
from rota.testing.contract.limiting import LimitContract
from rota.testing.contract.marking import MarkContract
from rota.testing.contract.needing import BehindContract
from rota.testing.contract.planning import PlanContract
from rota.testing.contract.putting import PutContract
from rota.testing.contract.settling import SettleContract
from rota.testing.servers import redis_kinds
from tests.server_fixtures import Servers

_numbers = itertools.count()
ELSEWHERE = [kind for kind in redis_kinds() if kind not in ("valkey-9", "redis-6.2")]


def a_namespace_of(url: str) -> Backend:
    """An empty part of a server that other tests use as well."""
    return connect(f"{url}{'&' if '?' in url else '?'}namespace=t{os.getpid()}-{next(_numbers)}")


class TestValkey(StoreContract):
    @pytest.fixture
    def backend(self, servers: Servers) -> Backend:
        return a_namespace_of(servers.get("valkey-9").url)


class TestElsewhere(
    PutContract, UniqueContract, ClaimContract, LimitContract, LeaseContract, SettleContract, HintContract
):
    """The verbs that work is made of, on a Cluster, behind Sentinels, and on what else this machine has."""

    @pytest.fixture(params=ELSEWHERE)
    def backend(self, request: pytest.FixtureRequest, servers: Servers) -> Backend:
        return a_namespace_of(servers.get(request.param).url)


class OnRedis62:
    @pytest.fixture
    def backend(self, servers: Servers) -> Backend:
        return a_namespace_of(servers.get("redis-6.2").url)


class TestRedis62(
    OnRedis62,
    PutContract,
    UniqueContract,
    BehindContract,
    ClaimContract,
    LimitContract,
    LeaseContract,
    SettleContract,
    HintContract,
    AskContract,
    DeclareContract,
    FireContract,
    MarkContract,
    RowContract,
    SweepContract,
    FlowContract,
    GroupContract,
    PlanContract,
):
    """The oldest server: every verb."""


@pytest.mark.soak
class TestWholeOnRedis62(OnRedis62, StoreContract):
    """And all there is to say of them."""
