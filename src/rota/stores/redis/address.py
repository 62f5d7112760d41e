"""RedisAddress: the server, the cluster or the sentinels that a URL names, and the namespace there."""

import re
from collections.abc import Mapping
from typing import Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct

from rota.domain.text import masked
from rota.errors import InvalidOptions

Kind = Literal["server", "socket", "sentinel", "cluster"]
Endpoint = tuple[str, int]

SCHEMES: dict[str, tuple[Kind, bool]] = {
    "redis": ("server", False),
    "rediss": ("server", True),
    "valkey": ("server", False),
    "valkeys": ("server", True),
    "unix": ("socket", False),
    "redis+sentinel": ("sentinel", False),
    "rediss+sentinel": ("sentinel", True),
    "redis+cluster": ("cluster", False),
    "rediss+cluster": ("cluster", True),
}
PORTS = {"server": 6379, "socket": 0, "sentinel": 26379, "cluster": 6379}
OPTIONS = ("namespace", "max_connections", "strict", "db", "ca_certs", "sentinel_username", "sentinel_password")
NAMESPACE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


class RedisAddress(Struct, frozen=True, kw_only=True):
    kind: Kind
    hosts: tuple[Endpoint, ...] = ()
    path: str = ""
    service: str = ""
    db: int = 0
    tls: bool = False
    ca_certs: str | None = None
    username: str | None = None
    password: str | None = None
    sentinel_username: str | None = None
    sentinel_password: str | None = None
    namespace: str = "rota"
    max_connections: int = 2
    strict: bool = False
    shown: str = ""
    """The URL with its password masked."""

    @property
    def root(self) -> str:
        """The prefix of every key: a hash tag, so that a cluster keeps all keys of a namespace in one slot."""
        return f"{{{self.namespace}}}"


def parse(url: str) -> RedisAddress:
    """Raises InvalidOptions; its message does not show the password."""
    shown = masked(url)
    parts = urlsplit(url)
    kind, tls = SCHEMES[parts.scheme]
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(options.keys() - set(OPTIONS)):
        raise InvalidOptions(f"{shown}: no option {', '.join(unknown)}; there are {', '.join(OPTIONS)}")
    login, _, hosts = parts.netloc.rpartition("@")
    username, _, password = login.partition(":")
    namespace = options.get("namespace", "rota")
    if not NAMESPACE.fullmatch(namespace):
        raise InvalidOptions(f"{shown}: a namespace is 1 to 64 letters, digits and _ . : -")
    path = unquote(parts.path)
    if kind == "sentinel" and not path.strip("/"):
        raise InvalidOptions(f"{shown}: name the service, as in redis+sentinel://host1:26379,host2:26379/mymaster")
    if kind == "socket" and len(path) < 2:
        raise InvalidOptions(f"{shown}: name the socket, as in unix:///run/redis/redis.sock")
    return RedisAddress(
        kind=kind,
        tls=tls,
        hosts=() if kind == "socket" else _hosts(hosts, PORTS[kind], shown),
        path=path if kind == "socket" else "",
        service=path.strip("/").split("/")[0] if kind == "sentinel" else "",
        db=_db(kind, path, options, shown),
        ca_certs=options.get("ca_certs"),
        username=unquote(username) or None,
        password=unquote(password) or None,
        sentinel_username=options.get("sentinel_username"),
        sentinel_password=options.get("sentinel_password"),
        namespace=namespace,
        max_connections=_number(options, "max_connections", 2, shown) or 1,
        strict=_flag(options, "strict", shown),
        shown=shown,
    )


def _hosts(text: str, port: int, shown: str) -> tuple[Endpoint, ...]:
    found: list[Endpoint] = []
    for item in text.split(",") if text else ["localhost"]:
        match = re.fullmatch(r"(\[[^\]]+\]|[^:\[\]]*)(?::(\d{1,5}))?", item)
        if match is None:
            raise InvalidOptions(f"{shown}: it names no host:port; a password is written percent-encoded")
        found.append((match[1].strip("[]") or "localhost", int(match[2] or port)))
    return tuple(found)


def _db(kind: Kind, path: str, options: Mapping[str, str], shown: str) -> int:
    parts = path.strip("/").split("/")
    in_path = {"server": parts[0], "sentinel": parts[1] if len(parts) > 1 else ""}.get(kind, "")
    db = _number({"db": in_path} if in_path else options, "db", 0, shown)
    if kind == "cluster" and db:
        raise InvalidOptions(f"{shown}: a cluster has only database 0")
    return db


def _number(options: Mapping[str, str], name: str, default: int, shown: str) -> int:
    text = options.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdecimal():
        raise InvalidOptions(f"{shown}: {name}={text!r} is no number")
    return int(text)


def _flag(options: Mapping[str, str], name: str, shown: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in ("true", "false", "1", "0", ""):
        raise InvalidOptions(f"{shown}: {name} is true or false")
    return text in ("true", "1", "")
