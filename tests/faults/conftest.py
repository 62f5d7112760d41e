"""The stores that processes share in these tests."""

from pathlib import Path

import pytest

from tests.server_fixtures import Servers


@pytest.fixture
def store_url(request: pytest.FixtureRequest, tmp_path: Path, namespace: str) -> str:
    """A store that nobody has used: SQLite, or on the kind of server that the test is given (`on`)."""
    kind: str = getattr(request, "param", "sqlite")
    if kind == "sqlite":
        return f"sqlite:///{tmp_path}/rota.db"
    servers: Servers = request.getfixturevalue("servers")
    return in_place(servers.get(kind).url, namespace)


def in_place(url: str, namespace: str) -> str:
    """The same server, with keys or a schema of one's own."""
    option = "schema" if url.startswith("postgresql:") else "namespace"
    return f"{url}{'&' if '?' in url else '?'}{option}={namespace}"
