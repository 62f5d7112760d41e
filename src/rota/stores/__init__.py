"""Where runs live. `connect(url)` chooses the store; each is loaded only when it is asked for."""

from urllib.parse import urlsplit

from rota.errors import InvalidOptions
from rota.store import Backend


def connect(url: str) -> Backend:
    """The backend that a URL names: `memory://` or `sqlite:///path/to/file.db`."""
    scheme = urlsplit(url).scheme
    if scheme == "memory":
        from rota.stores.memory import MemoryBackend

        return MemoryBackend()
    if scheme == "sqlite":
        from rota.stores.sqlite import SqliteBackend

        return SqliteBackend.from_url(url)
    raise InvalidOptions(
        f"no store understands {scheme or url!r}; use memory:// or sqlite:///path/to/file.db (ROTA_URL)"
    )
