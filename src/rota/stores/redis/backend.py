"""RedisBackend: opens stores in one namespace. Each open store has its own connections, on its own event loop."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from rota.domain.decision import Decision
from rota.domain.run import NewRun
from rota.errors import InvalidOptions, StoreUnavailable
from rota.store import Store
from rota.stores.redis.address import RedisAddress, parse
from rota.stores.redis.client import RedisClient
from rota.stores.redis.direct import DirectPuts
from rota.stores.redis.store import RedisStore
from rota.stores.redis.subscriber import Subscriber, prove

log = logging.getLogger("rota")

OLDEST = (6, 2)
POLL, POLL_WITHOUT_HINTS = 5.0, 1.0
"""Seconds between two claims of an idle worker."""


class RedisBackend:
    submits_within = None

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self.skew = 0.0
        self.latest = 0.0
        """The last time that a script answered. No script of this backend answers an earlier time, even if a failover
        leads to a server whose clock is behind: see lua/shared/clock.lua."""
        self.server_version = ""
        self._has_hints: bool | None = None
        self._direct = DirectPuts(address)

    @classmethod
    def from_url(cls, url: str) -> "RedisBackend":
        return cls(parse(url))

    @property
    def url(self) -> str:
        return self.address.shown

    @property
    def poll(self) -> float:
        return POLL_WITHOUT_HINTS if self._has_hints is False else POLL

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Store]:
        client = RedisClient(self.address)
        subscriber = Subscriber(client)
        try:
            await self._check(client)
            store = RedisStore(self, client, subscriber)
            self._direct.open()
            try:
                yield store
            finally:
                self._direct.close()
                await store.close()
        finally:
            await subscriber.close()
            await client.close()

    def put_directly(self, run: NewRun) -> Decision | None:
        answer = self._direct.put(run, self.skew, self.latest)
        if answer is None:
            return None
        now, decision = answer
        self.latest = max(self.latest, now)
        return decision

    async def _check(self, client: RedisClient) -> None:
        """Raises StoreUnavailable if no server answers, or if the server is too old."""
        await client.send("PING")
        facts = _facts(await client.send("INFO", "server"))
        version = _version(facts)
        if version < OLDEST:
            raise StoreUnavailable(
                f"{self.url} is version {'.'.join(map(str, version))}; rota needs Redis 6.2, Valkey, or newer",
                passing=False,
            )
        self.server_version = facts.get("valkey_version") or facts["redis_version"]
        client.modern = self._direct.modern = version >= (7, 0)
        if self._has_hints is None:
            await self._warn(client)
            self._has_hints = await prove(client)

    async def _warn(self, client: RedisClient) -> None:
        doubts: list[str] = []
        try:
            memory, persistence = [_facts(await client.send("INFO", part)) for part in ("memory", "persistence")]
        except StoreUnavailable:
            return  # a server need not answer these sections
        if (policy := memory.get("maxmemory_policy", "noeviction")) != "noeviction":
            doubts.append(f"maxmemory-policy is {policy}, so the server may throw runs away; set noeviction")
        if persistence.get("aof_enabled", "1") == "0":
            doubts.append("appendonly is off, so a restart forgets what came since the last snapshot")
        for doubt in doubts:
            if self.address.strict:
                raise StoreUnavailable(f"{self.url}: {doubt} (strict=true)", passing=False)
            log.warning("%s: %s", self.url, doubt)


def _facts(info: bytes) -> dict[str, str]:
    lines = info.decode(errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def _version(facts: dict[str, str]) -> tuple[int, int]:
    text = facts.get("redis_version", "")
    major, _, rest = text.partition(".")
    minor = rest.partition(".")[0]
    if not major.isdecimal():
        raise InvalidOptions(f"this is no Redis: it calls itself {text!r}")
    return int(major), int(minor) if minor.isdecimal() else 0
