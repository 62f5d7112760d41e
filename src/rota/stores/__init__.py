"""The stores. `connect(url)` returns a backend; it imports only the store that the URL names."""

from urllib.parse import urlsplit

from rota.errors import InvalidOptions, MissingExtra
from rota.store import Backend

REDIS = (
    "redis",
    "rediss",
    "valkey",
    "valkeys",
    "unix",
    "redis+sentinel",
    "rediss+sentinel",
    "redis+cluster",
    "rediss+cluster",
)


def connect(url: str) -> Backend:
    """The backend of a URL: `memory://`, `sqlite:///path/to/file.db`, `redis://host`, `postgresql://host/db`."""
    scheme = urlsplit(url).scheme
    if scheme == "memory":
        from rota.stores.memory import MemoryBackend

        return MemoryBackend()
    if scheme == "sqlite":
        from rota.stores.sqlite import SqliteBackend

        return SqliteBackend.from_url(url)
    if scheme in REDIS:
        try:
            from rota.stores.redis import RedisBackend
        except ImportError as error:
            raise MissingExtra(f'{scheme}:// needs a driver: pip install "rota[redis]"') from error
        return RedisBackend.from_url(url)
    if scheme in ("postgresql", "postgres"):
        try:
            from rota.stores.postgres import PostgresBackend
        except ImportError as error:
            raise MissingExtra(f'{scheme}:// needs a driver: pip install "rota[postgres]"') from error
        return PostgresBackend.from_url(url)
    if scheme == "django":
        raise InvalidOptions(f"{url}: only a Django project knows its DATABASES; use manage.py rota, or another URL")
    raise InvalidOptions(
        f"no store understands {scheme or url!r}; use memory://, sqlite:///path/to/file.db, redis://host:6379 "
        "or postgresql://host/database (ROTA_URL)"
    )
