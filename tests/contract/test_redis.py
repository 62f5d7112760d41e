"""The Redis store keeps the contract on Valkey 9, whole."""

import itertools

import pytest

from rota.store import Backend
from rota.stores import connect
from rota.testing.contract import StoreContract
from rota.testing.servers import RedisServer

_numbers = itertools.count()


class TestValkey(StoreContract):
    @pytest.fixture
    def backend(self, valkey: RedisServer) -> Backend:
        return connect(f"{valkey.url}&namespace=t{next(_numbers)}")
