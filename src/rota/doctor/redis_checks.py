"""Checks of a Redis or Valkey: the server, persistence, eviction, and the rights of this user."""

from collections.abc import Mapping
from typing import Any

from rota.doctor.checks import Check, Verdict, good, latency
from rota.domain.text import size
from rota.errors import RotaError, StoreError
from rota.stores.redis import RedisBackend
from rota.stores.redis.client import RedisClient
from rota.stores.redis.subscriber import prove

OLDEST = (6, 2)
NEARLY_FULL = 0.9
DOCS = "docs/redis.md has the ACL"
APPENDFSYNC = {
    "always": "each write is on disk before it is acknowledged",
    "everysec": "a power cut may lose the last second or two",
}

TRIED: dict[str, str] = {
    "del": "",
    "time": "-",
    "get": "",
    "set": "v",
    "setrange": "0 v",
    "mget": "",
    "exists": "",
    "incr": "",
    "incrby": "1",
    "rpush": "v",
    "lpop": "",
    "lindex": "0",
    "sort": "ALPHA",
    "hget": "f",
    "hset": "f v",
    "hdel": "f",
    "hmget": "f",
    "hgetall": "",
    "hkeys": "",
    "hvals": "",
    "hlen": "",
    "hincrby": "f 1",
    "hscan": "0",
    "zadd": "1 m",
    "zrem": "m",
    "zrange": "0 1",
    "zrevrange": "0 1",
    "zrangebyscore": "0 1",
    "zrevrangebyscore": "1 0",
    "zrangebylex": "- +",
    "zremrangebyscore": "0 1",
    "zscore": "m",
    "zcard": "",
    "zcount": "0 1",
    "sadd": "m",
    "srem": "m",
    "smembers": "",
    "sismember": "m",
    "sinter": "",
    "publish": "v",
    "getrange": "0 1",
    "unlink": "",
    "xadd": "* f v",
    "xrange": "- +",
    "xtrim": "MAXLEN 1",
}
"""The commands that the scripts call, each with harmless arguments for a key that is deleted at the end."""

TRY = """
local refused = {}
for i = 1, #ARGV, 2 do
  local words = {ARGV[i]}
  if ARGV[i + 1] ~= '-' then
    words[2] = KEYS[1]
    for word in string.gmatch(ARGV[i + 1], '%S+') do words[#words + 1] = word end
  end
  local reply = redis.pcall(unpack(words))
  if type(reply) == 'table' and reply.err and (string.find(reply.err, 'NOPERM') or string.find(reply.err, 'ACL failure')
      or string.find(reply.err, 'run this command') or string.find(reply.err, 'access')) then
    refused[#refused + 1] = ARGV[i]
    if i == 1 then return refused end
  elseif i > 1 then
    redis.pcall('DEL', KEYS[1])
  end
end
return refused
"""


async def redis_checks(backend: RedisBackend) -> list[Check]:
    """Check the server, then persistence and eviction, then rights; stop at the first check that blocks."""
    client = RedisClient(backend.address)
    try:
        checks = [await _server(backend, client)]
        if not checks[-1].blocks:
            checks += [
                await latency(lambda: client.send("PING")),
                await _role(client),
                await _persistence(backend, client),
                await _eviction(backend, client),
                await _memory(client),
                await _permissions(client),
                await _hints(client),
            ]
    except RotaError as error:
        return [
            Check("server", Verdict.FAIL, str(error), "is it running, and is the url right? (ROTA_URL)", blocks=True)
        ]
    finally:
        await client.close()
    return checks


async def _server(backend: RedisBackend, client: RedisClient) -> Check:
    await client.send("PING")
    facts = await _facts(client, "server")
    name = "Valkey" if "valkey_version" in facts else "Redis"
    spelled = facts.get("valkey_version") or facts.get("redis_version", "?")
    detail = f"{name} {spelled} at {backend.url}"
    version = tuple(int(part) for part in facts.get("redis_version", "0").split(".")[:2] if part.isdecimal())
    if version < OLDEST:
        return Check("server", Verdict.FAIL, detail, "rota needs Redis 6.2, Valkey, or newer", blocks=True)
    return good("server", detail)


async def _role(client: RedisClient) -> Check:
    facts = await _facts(client, "replication")
    role = facts.get("role", "master")
    if role != "master":
        return Check("role", Verdict.FAIL, "a replica: it takes no writes", "name its primary, or its Sentinels")
    return good("role", f"primary, {facts.get('connected_slaves', '0')} replicas follow")


async def _persistence(backend: RedisBackend, client: RedisClient) -> Check:
    facts = await _facts(client, "persistence")
    if facts.get("aof_enabled") == "0":
        detail = "appendonly no: a restart forgets what came since the last snapshot"
        return Check("persistence", _doubt(backend), detail, "set appendonly yes and appendfsync everysec")
    if (failed := facts.get("aof_last_write_status", "ok")) != "ok":
        return Check("persistence", Verdict.FAIL, f"the last write to its file: {failed}", "is its disk full?")
    policy = await _setting(client, "appendfsync")
    if policy is None:
        return good("persistence", "appendonly yes; appendfsync may not be asked for (CONFIG GET)")
    if policy not in APPENDFSYNC:
        detail = f"appendonly yes, appendfsync {policy}: a power cut may lose half a minute"
        return Check("persistence", Verdict.WARN, detail, "set appendfsync everysec, or always")
    return good("persistence", f"appendonly yes, appendfsync {policy}: {APPENDFSYNC[policy]}")


async def _eviction(backend: RedisBackend, client: RedisClient) -> Check:
    policy = (await _facts(client, "memory")).get("maxmemory_policy", "noeviction")
    if policy == "noeviction":
        return good("eviction", policy)
    detail = f"maxmemory-policy {policy}: runs may be thrown away when memory runs out"
    return Check("eviction", _doubt(backend), detail, "set maxmemory-policy noeviction")


async def _memory(client: RedisClient) -> Check:
    facts = await _facts(client, "memory")
    used, limit = int(facts.get("used_memory", 0)), int(facts.get("maxmemory", 0))
    if not limit:
        return good("memory", f"{size(used)} used; no limit is set (maxmemory)")
    detail = f"{size(used)} of {size(limit)} used"
    advice = "raise maxmemory, start workers, or keep ended runs for less long (keep_*)"
    if used >= limit:
        return Check("memory", Verdict.FAIL, f"{detail}: submits are refused", advice)
    if used >= NEARLY_FULL * limit:
        return Check("memory", Verdict.WARN, detail, advice)
    return good("memory", detail)


async def _permissions(client: RedisClient) -> Check:
    """Try every command that a verb uses, on a key that exists neither before nor after."""
    words = [word for command in TRIED.items() for word in command]
    try:
        answer: Any = await client.send("EVAL", TRY, 1, f"{client.address.root}doctor", *words)
    except StoreError as error:
        return Check("permissions", Verdict.FAIL, str(error), DOCS, blocks=True)
    refused = [bytes(name).decode() for name in answer]
    if refused:
        detail = f"this user may not use {', '.join(refused)} in namespace {client.address.namespace}"
        return Check("permissions", Verdict.FAIL, detail, DOCS, blocks=True)
    return good("permissions", f"all that rota needs in namespace {client.address.namespace}")


async def _hints(client: RedisClient) -> Check:
    if await prove(client):
        return good("hints", "a message to oneself arrived")
    detail = "messages do not arrive: idle workers look every second"
    return Check("hints", Verdict.WARN, detail, f"allow &{client.address.root}* (ACL), or go round the proxy")


def _doubt(backend: RedisBackend) -> Verdict:
    """Return an error if `strict=true` makes a store refuse the server, else a warning."""
    return Verdict.FAIL if backend.address.strict else Verdict.WARN


async def _facts(client: RedisClient, part: str) -> Mapping[str, str]:
    info: bytes = await client.send("INFO", part)
    lines = info.decode(errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


async def _setting(client: RedisClient, name: str) -> str | None:
    """Return a server setting; None if CONFIG is forbidden, as on managed servers."""
    try:
        answer: Any = await client.send("CONFIG", "GET", name)
    except StoreError:
        return None
    return bytes(answer[1]).decode() if answer else None
