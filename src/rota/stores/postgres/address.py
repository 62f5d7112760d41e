"""Which server, database and schema a URL names, and how many connections it may have."""

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from msgspec import Struct

from rota.domain.text import masked
from rota.errors import InvalidOptions

SCHEMA_LIMIT = 48
"""Bytes in the name of a schema: the NOTIFY channel is named after it, and may have at most 63 bytes."""


class Login(Struct, frozen=True):
    """What the driver needs to connect."""

    dsn: str
    password: Callable[[], Awaitable[str]] | None = None
    """Asked for each new connection: a password that changes while the process runs. None: the URL has it."""


class Address(Struct, frozen=True):
    dsn: str
    """For the driver: the URL without the options of rota."""
    schema: str = "rota"
    max_connections: int = 4
    listen_dsn: str | None = None
    shown: str = ""
    """For people: the URL with masked secrets."""
    password: Callable[[], Awaitable[str]] | None = None

    @property
    def login(self) -> Login:
        return Login(self.dsn, self.password)

    @property
    def ear(self) -> Login | None:
        """Where to listen for hints, if the URL names another place for that."""
        return None if self.listen_dsn is None else Login(self.listen_dsn)

    @property
    def channel(self) -> str:
        return f"rota.{self.schema}"


def parse(url: str) -> Address:
    """`postgresql://user:password@host:5432/database?schema=rota&max_connections=4&listen_url=…`; other
    options go to the driver."""
    parts = urlsplit(url)
    options = parse_qsl(parts.query, keep_blank_values=True)
    ours = {name: value for name, value in options if name in ("schema", "max_connections", "listen_url")}
    theirs = urlencode([(name, value) for name, value in options if name not in ours], quote_via=quote)
    dsn = urlunsplit(("postgresql", parts.netloc, parts.path, theirs, ""))
    # An "@" after the host: the password has a "/", "?" or "#" that is not percent-encoded, and urlsplit cut it in two.
    cut = "@" in url.partition("://")[2].removeprefix(parts.netloc)
    shown = masked(url) if cut else _shown(parts.netloc, parts.path, options)
    most = ours.get("max_connections", "4")
    if not most.isascii() or not most.isdecimal() or not 1 <= int(most) <= 1000:
        raise InvalidOptions(f"{shown}: max_connections is a whole number from 1 to 1000")
    schema = ours.get("schema", "rota")
    if not 0 < len(schema.encode()) <= SCHEMA_LIMIT or schema.startswith("pg_") or not schema.isprintable():
        raise InvalidOptions(f"{shown}: schema is a name of 1 to {SCHEMA_LIMIT} bytes that does not begin with pg_")
    return Address(dsn, schema, int(most), ours.get("listen_url"), shown)


def _shown(netloc: str, path: str, options: list[tuple[str, str]]) -> str:
    login, at, host = netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    place = f"{user}:***@{host}" if colon else f"{login}{at}{host}"
    kept = [(name, value) for name, value in options if name in ("schema", "host", "port")]
    query = "&".join(f"{name}={unquote(value)}" for name, value in kept)
    return f"postgresql://{place}{path}" + (f"?{query}" if query else "")
