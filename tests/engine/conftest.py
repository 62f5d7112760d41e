"""The stores of the tests of the engine."""

from pathlib import Path

import pytest

from rota.store import Backend
from rota.stores import connect
from rota.stores.memory import MemoryBackend


@pytest.fixture(params=["memory", "sqlite", "redis", "postgres"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    match request.param:
        case "memory":
            return MemoryBackend()
        case "sqlite":
            return connect(f"sqlite:///{tmp_path}/rota.db")
        case "redis":
            namespace = request.getfixturevalue("namespace")
            url = request.getfixturevalue("valkey").url
            return connect(f"{url}{'&' if '?' in url else '?'}namespace={namespace}")
        case _:
            return request.getfixturevalue("postgres_backend")  # type: ignore[no-any-return]
