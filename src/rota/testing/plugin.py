"""The pytest plugin: `rota_app`, an app in a store of its own, and `rota_clock`, which moves that store's time.

pytest finds it by itself once rota is installed. To test your own app, bind it to a fresh store in conftest.py:

    @pytest.fixture
    def rota_app():
        with shop.tasks.app.bound_to("memory://") as app:
            yield app
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # pytest imports this at every start: nothing heavy before a fixture is used
    from rota.app.app import Rota
    from rota.testing.clock import StoreClock


@pytest.fixture
def rota_app() -> "Rota":
    """A new app with an empty store in memory, for this test alone."""
    from rota.app.app import Rota

    return Rota("memory://")


@pytest.fixture
def rota_clock(rota_app: "Rota") -> "Iterator[StoreClock]":
    """The clock of `rota_app`'s store: `rota_clock.move(hours=1)`, `rota_clock.move_to(instant)`."""
    from rota.testing.clock import StoreClock

    backend, before = rota_app.backend, rota_app.backend.skew
    yield StoreClock(backend)
    backend.skew = before
