"""URLs of stores: the default, from ROTA_REDIS_* variables, from another variable, and with a namespace."""

import os
import re
from collections.abc import Mapping
from urllib.parse import parse_qs, quote, urlsplit

from rota.domain.text import masked
from rota.errors import InvalidOptions
from rota.settings.project import DATABASE, project_folder

REDIS_PARTS = tuple(f"ROTA_REDIS_{part}" for part in ("HOST", "PORT", "USERNAME", "PASSWORD", "DB"))

_OPTION = {
    **dict.fromkeys(("redis", "rediss", "valkey", "valkeys", "unix"), "namespace"),
    **dict.fromkeys(("redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster"), "namespace"),
    **dict.fromkeys(("postgresql", "postgres"), "schema"),
    "memory": "namespace",
    "django": "schema",
}
"""The option of the URL that separates several apps in one store, by scheme."""


def sqlite_url() -> str:
    """Return an SQLite file in `.rota/` beside the project's pyproject.toml or rota.toml."""
    return f"sqlite:///{quote(str(project_folder() / DATABASE))}"


def from_environment(url: str, quoted: str) -> str:
    """Return the value of the variable NAME for `env:NAME`; any other URL as it is. Errors quote the URL as
    `quoted`."""
    if not url.startswith("env:"):
        return url
    name = url.removeprefix("env:")
    found = os.environ.get(name, "").strip()
    if not found:
        raise InvalidOptions(f"{quoted}: the variable {name or '(none)'} is not set; set it to the URL of a store")
    return found


def lacks_namespace(url: str) -> bool:
    """Return whether the store of `url` has namespaces and `url` names none."""
    parts = urlsplit(url)
    option = _OPTION.get(parts.scheme)
    return option is not None and option not in parse_qs(parts.query, keep_blank_values=True)


def in_namespace(url: str, namespace: str, quoted: str) -> str:
    """Return the URL with the namespace in it. Errors quote the namespace as `quoted`."""
    parts = urlsplit(url)
    option = _OPTION.get(parts.scheme)
    if option is None:
        raise InvalidOptions(
            f"{quoted}: {masked(url)} has no namespaces, as Redis and PostgreSQL have; give the app a store of its own"
        )
    there = parse_qs(parts.query, keep_blank_values=True).get(option)
    if there is None:
        return f"{url}{'&' if parts.query else '?'}{option}={quote(namespace, safe='')}"
    if there != [namespace]:
        raise InvalidOptions(f"{quoted}: {masked(url)} names another {option}; say it in one place")
    return url


def redis_url(parts: Mapping[str, str]) -> str | None:
    """Return the URL that ROTA_REDIS_HOST, _PORT, _USERNAME, _PASSWORD and _DB make; None if `parts` has none of
    them."""
    if not parts:
        return None
    host = parts.get("ROTA_REDIS_HOST")
    if host is None:
        raise InvalidOptions(f"{next(iter(parts))} is set and ROTA_REDIS_HOST is not; set it, or ROTA_URL instead")
    if not re.fullmatch(r"[\w.-]+|\[?[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*\]?", host):
        raise InvalidOptions(
            f"ROTA_REDIS_HOST={masked(host)!r}: expected a host name or address; a whole URL goes into ROTA_URL"
        )
    if ":" in host:
        host = f"[{host.strip('[]')}]"
    port = _number(parts, "ROTA_REDIS_PORT", "6379", 1, 65_535)
    user = quote(parts.get("ROTA_REDIS_USERNAME", ""), safe="")
    password = quote(parts.get("ROTA_REDIS_PASSWORD", ""), safe="")
    login = f"{user}:{password}@" if password else f"{user}@" if user else ""
    return f"redis://{login}{host}:{port}/{_number(parts, 'ROTA_REDIS_DB', '0', 0, 1_000_000)}"


def _number(parts: Mapping[str, str], name: str, default: str, least: int, most: int) -> int:
    text = parts.get(name, default)
    if not text.isascii() or not text.isdecimal() or not least <= int(text) <= most:
        raise InvalidOptions(f"{name}={text!r:.80}: expected a whole number from {least} to {most}")
    return int(text)
