"""The Redis store keeps the contract: whole on Valkey 9 (and, among the long tests, Redis 6.2), its verbs elsewhere."""

import itertools
import os
from collections.abc import Iterator

import pytest

from rota.store import Backend
from rota.stores import connect
from rota.stores.redis import plans, subscriber
from storekit.contract import StoreContract
from storekit.contract.claiming import ClaimContract
from storekit.contract.controlling import ControlContract
from storekit.contract.deciding import RowContract
from storekit.contract.declaring import DeclareContract
from storekit.contract.firing import FireContract
from storekit.contract.flowing import FlowContract, GroupContract
from storekit.contract.guarding import UniqueContract
from storekit.contract.hinting import HintContract
from storekit.contract.keeping import SweepContract
from storekit.contract.leasing import LeaseContract
from storekit.contract.limiting import LimitContract
from storekit.contract.marking import MarkContract
from storekit.contract.needing import BehindContract
from storekit.contract.planning import PlanContract
from storekit.contract.putting import PutContract
from storekit.contract.recording import EventContract, EventMemoryContract
from storekit.contract.settling import SettleContract
from storekit.servers import redis_kinds
from tests.server_fixtures import Servers

_numbers = itertools.count()
ELSEWHERE = [kind for kind in redis_kinds() if kind not in ("valkey-9", "redis-6.2")]


@pytest.fixture(scope="module", autouse=True)
def patience() -> Iterator[None]:
    """A busy machine may stand still for seconds: whoever stops waiting for its subscription misses hints."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(subscriber, "PROOF", 60.0)
        yield


def a_namespace_of(url: str) -> Backend:
    """An empty part of a server that other tests use as well."""
    return connect(f"{url}{'&' if '?' in url else '?'}namespace=t{os.getpid()}-{next(_numbers)}")


class TestValkey(StoreContract):
    @pytest.fixture
    def backend(self, servers: Servers) -> Backend:
        return a_namespace_of(servers.get("valkey-9").url)


class TestElsewhere(
    PutContract,
    UniqueContract,
    ClaimContract,
    LimitContract,
    LeaseContract,
    SettleContract,
    HintContract,
    EventContract,
):
    """The verbs that work is made of, on a Cluster, behind Sentinels, and on what else this machine has."""

    @pytest.fixture(params=ELSEWHERE)
    def backend(self, request: pytest.FixtureRequest, servers: Servers) -> Backend:
        return a_namespace_of(servers.get(request.param).url)


class TestPlansInParts(PlanContract):
    """Plans as thousands of runs go: staged, and carried out in parts."""

    @pytest.fixture
    def backend(self, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Backend:
        monkeypatch.setattr(plans, "SHORT", -1)
        monkeypatch.setattr(plans, "MOST", 2)
        return a_namespace_of(servers.get("valkey-9").url)


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
    ControlContract,
    DeclareContract,
    FireContract,
    MarkContract,
    RowContract,
    SweepContract,
    FlowContract,
    GroupContract,
    PlanContract,
    EventContract,
    EventMemoryContract,
):
    """The oldest server: every verb."""


@pytest.mark.soak
class TestWholeOnRedis62(OnRedis62, StoreContract):
    """And all there is to say of them."""
