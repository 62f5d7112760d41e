"""The servers that a test suite uses: the required ones, and others that this machine has."""

import functools
import os
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from storekit.servers import binaries
from storekit.servers.pgbouncer import PgBouncer
from storekit.servers.postgres import PostgresServer
from storekit.servers.redis import RedisCluster, RedisServer
from storekit.servers.sentinel import RedisSentinel
from storekit.servers.server import HasUrl

Kind = Callable[[], AbstractContextManager[HasUrl]]


@dataclass(frozen=True)
class GivenServer:
    """A server that somebody else runs, named by an environment variable. Tests must not stop or empty it."""

    url: str


def redis_kinds() -> dict[str, Kind]:
    """Return the kinds of Redis by name, with a function that starts each. A missing required one fails at its
    start."""
    kinds: dict[str, Kind] = {
        "valkey-9": lambda: RedisServer(binaries.valkey_of_wheel()),
        "redis-6.2": lambda: RedisServer(binaries.redis_of_wheel()),
        "cluster": lambda: RedisCluster(binaries.valkey_of_wheel()),
        "sentinel": lambda: RedisSentinel(binaries.valkey_of_wheel()),
    }
    if (program := binaries.redis_of_machine()) is not None:
        kinds[f"redis-{program.major}"] = lambda: RedisServer(program)
    return {**kinds, **_given("redis-url", "ROTA_TEST_REDIS_URL")}


def postgres_kinds(templates: Path | None = None) -> dict[str, Kind]:
    """Return the kinds of PostgreSQL by name. In the folder `templates` each version makes its cluster only once."""

    def postgres(programs: binaries.Program) -> PostgresServer:
        return PostgresServer(programs, template=templates and templates / f"postgres-{programs.version}")

    kinds: dict[str, Kind] = {"postgres-18": lambda: postgres(binaries.postgres_of_wheel())}
    for programs in binaries.postgres_of_machine():
        kinds.setdefault(f"postgres-{programs.major}", functools.partial(postgres, programs))
    if (program := binaries.pgbouncer_of_machine()) is not None:
        kinds["pgbouncer"] = lambda: _pooled(program, postgres(binaries.postgres_of_wheel()))
    return {**kinds, **_given("postgres-url", "ROTA_TEST_POSTGRES_URL")}


def _given(name: str, variable: str) -> dict[str, Kind]:
    url = os.environ.get(variable)
    return {name: lambda: nullcontext(GivenServer(url))} if url else {}


@contextmanager
def _pooled(program: binaries.Program, postgres: PostgresServer) -> Generator[PgBouncer]:
    with postgres, PgBouncer(program, postgres) as pooler:
        yield pooler
