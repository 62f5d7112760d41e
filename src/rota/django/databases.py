"""Databases: `django://ALIAS`, a store in a PostgreSQL database that the setting DATABASES names.

`django://default?schema=jobs&max_connections=8`: the options are those of `postgresql://`. The password is asked of
Django for each new connection: an engine that makes tokens gives a fresh one.
"""

import asyncio
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from django.db import connections
from msgspec.structs import replace

from rota.django.conf import in_tests
from rota.domain.text import did_you_mean
from rota.errors import InvalidOptions, MissingExtra
from rota.store import Backend
from rota.stores import connect as connect_url

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

SCHEME = "django"
TAKEN = frozenset(
    {
        *("service", "passfile", "sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslpassword"),
        *("sslnegotiation", "ssl_min_protocol_version", "ssl_max_protocol_version", "target_session_attrs"),
        *("krbsrvname", "gsslib", "options", "application_name"),
    }
)
"""The parameters of a connection that mean the same to the driver of the store."""
OF_DJANGO = frozenset(
    {
        *("client_encoding", "context", "cursor_factory", "row_factory", "prepare_threshold", "autocommit"),
        *("connect_timeout", "tcp_user_timeout"),
        *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
    }
)
"""The parameters that say how Django uses its own connections: those of the store have their own ways."""
CLOSES = "_rota_closes"
"""The attribute of a method that closes the store first."""
PLACE = frozenset({"dbname", "user", "password", "host", "port"})


def current(url: str) -> str:
    """Return `url` with the name that the database of a `django://` URL has now; any other URL as it is. A test runner
    gives the database another name."""
    parts = urlsplit(url)
    if parts.scheme != SCHEME or parts.path.strip("/"):
        return url
    name = str(_connection(url).settings_dict["NAME"] or "")
    return f"{SCHEME}://{parts.netloc}/{quote(name, safe='')}" + (f"?{parts.query}" if parts.query else "")


def connect(url: str) -> Backend:
    """Return the backend of any URL; also in a process that has not set Django up yet, such as the renewer."""
    parts = urlsplit(url)
    if parts.scheme != SCHEME:
        return connect_url(url)
    import django
    from django.apps import apps

    if not apps.ready:
        django.setup()
    try:
        from rota.stores.postgres import PostgresBackend
        from rota.stores.postgres.address import parse
    except ImportError as error:
        raise MissingExtra(f'{url} needs a driver: pip install "rota[postgres]"') from error
    if in_tests():
        _close_before_drop(type(_connection(url).creation))
    params = _params(url)
    address = parse(_joined(dsn_of(url, params), parts.query))
    if params.get("password"):
        address = replace(address, password=lambda: asyncio.to_thread(_password, url))
    return PostgresBackend(address)


def _close_before_drop(creation: Any) -> None:
    """Let the runner of tests close the store of this process before it drops the database that the store is in."""
    drop = creation._destroy_test_db
    if hasattr(drop, CLOSES):
        return

    def close_and_drop(self: Any, *args: Any, **kwargs: Any) -> Any:
        from rota.app.core import core_of
        from rota.django.project import app

        app().portal.call(core_of(app()).client.close)
        return drop(self, *args, **kwargs)

    setattr(close_and_drop, CLOSES, True)
    creation._destroy_test_db = close_and_drop


def dsn_of(url: str, params: Mapping[str, Any] | None = None) -> str:
    """Return the database of a `django://` URL as a `postgresql://` one, without its password; raise InvalidOptions
    if Django connects in a way that the driver of the store does not have."""
    given = dict(_params(url) if params is None else params)
    if renamed := unquote(urlsplit(url).path.strip("/")):
        given["dbname"] = renamed
    role = _connection(url).settings_dict["OPTIONS"].get("assume_role")
    options = {name: str(given[name]) for name in sorted(TAKEN & given.keys()) if given[name] is not None}
    if role:
        options["role"] = str(role)
    if unknown := {name for name in given.keys() - TAKEN - OF_DJANGO - PLACE if given[name] is not None}:
        named = ", ".join(sorted(unknown))
        raise InvalidOptions(
            f"{SCHEME}://{urlsplit(url).netloc}: OPTIONS has {named}, which the store's driver does not know; "
            "write the URL of the store as postgresql://…"
        )
    host, port = str(given.get("host") or ""), str(given.get("port") or "")
    if re.fullmatch(r"[\w.-]*", host):
        place = f"{host}:{port}" if host and port else host
    else:  # a folder of sockets, an IPv6 address, several hosts
        place = ""
        options = {"host": f"[{host}]" if ":" in host and "/" not in host and "," not in host else host, **options}
    if port and not place:
        options["port"] = port
    user = quote(str(given.get("user") or ""), safe="")
    name = quote(str(given.get("dbname") or ""), safe="")
    query = urlencode(options, quote_via=quote, safe="/")
    return f"postgresql://{user}{'@' if user else ''}{place}/{name}" + (f"?{query}" if query else "")


def _password(url: str) -> str:
    found = _params(url).get("password")
    return str(found() if callable(found) else found or "")


def _params(url: str) -> dict[str, Any]:
    """Return what Django gives its own driver, by the name of libpq."""
    found: Any = _connection(url)
    return cast("dict[str, Any]", found.get_connection_params())


def _connection(url: str) -> "BaseDatabaseWrapper":
    alias = unquote(urlsplit(url).netloc)
    if alias not in connections.settings:
        known = sorted(connections.settings)
        hint = did_you_mean(alias, known, f"; there are: {', '.join(known)}")
        raise InvalidOptions(f"{url}: DATABASES has no alias {alias!r}{hint}")
    found = connections[alias]
    if found.vendor != "postgresql":
        raise InvalidOptions(
            f"{url}: the database is {found.vendor}, and a store can only be in a PostgreSQL one; "
            'leave ROTA["URL"] out for an SQLite file of its own, or name a server'
        )
    return found


def _joined(dsn: str, query: str) -> str:
    ours = urlencode(parse_qsl(query, keep_blank_values=True), quote_via=quote)
    return dsn if not ours else f"{dsn}{'&' if '?' in dsn else '?'}{ours}"
