"""What the tests of the Redis store have in common: a place of their own on a server, and a stage there."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from rota.stores.redis import RedisBackend
from storekit.contract import Stage


def at(url: str, namespace: str, **options: str) -> RedisBackend:
    """A backend in a namespace; options as a URL has them."""
    query = "&".join(f"{name}={value}" for name, value in {"namespace": namespace, **options}.items())
    return RedisBackend.from_url(f"{url}{'&' if '?' in url else '?'}{query}")


@asynccontextmanager
async def staged(backend: RedisBackend) -> AsyncGenerator[Stage]:
    async with backend.open() as store:
        yield Stage(backend, store)
