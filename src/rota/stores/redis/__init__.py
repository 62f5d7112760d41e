"""The store in Redis or Valkey: every verb one Lua script, one namespace in one slot."""

from rota.stores.redis.backend import RedisBackend

__all__ = ["RedisBackend"]
