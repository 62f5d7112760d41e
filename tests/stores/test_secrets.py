"""No word about a store shows its password, however it is written."""

import pytest

from rota.domain.text import masked
from rota.errors import RotaError
from rota.stores import connect

URLS = [
    "redis://:secret@host/0",
    "redis://:se/cret@host/0",
    "redis://ada:secret@host/0?bogus=1",
    "redis://host/0?password=secret",
    "redis+sentinel://host/mymaster?sentinel_password=secret",
    "postgresql://ada:secret@host/db",
    "postgresql://ada:se/cret@host/db",
    "postgresql://ada:se#cret@host/db",
    "postgresql://ada:secret@host/db?schema=pg_bad",
    "postgresql://host/db?password=secret",
]
"""Each holds a password."""


def test_an_address_to_listen_at_is_not_shown_with_its_password() -> None:
    assert "cret" not in masked("postgresql://host/db?listen_url=postgresql%3A%2F%2Fada%3Asecret%40host%2Fdb&schema=x")


@pytest.mark.parametrize("url", URLS)
def test_a_password_is_never_shown(url: str) -> None:
    try:
        shown = connect(url).url
    except RotaError as error:
        shown = str(error)
    assert "cret" not in shown
