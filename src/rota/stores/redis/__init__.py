"""The store in Redis or Valkey. Every verb is one Lua script; all keys of a namespace are in one slot."""

from rota.stores.redis.backend import RedisBackend

__all__ = ["RedisBackend"]
