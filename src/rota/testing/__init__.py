"""For those who test: a simulation in virtual time, helpers for tests of tasks, and what every store must do.

    from rota.testing import assert_submitted, drain, simulate

What needs more than rota itself is imported by its full name: `storekit.contract` needs pytest and
pytest-asyncio. pytest finds `rota.testing.plugin` by itself. `storekit.comparison` compares a store with the model.
There are also real servers, `storekit.servers`, and a proxy that loses replies, `storekit.proxy`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.testing.clock import StoreClock
    from rota.testing.draining import drain
    from rota.testing.simulation import Simulation, simulate
    from rota.testing.submissions import assert_not_submitted, assert_submitted

__all__ = ["Simulation", "StoreClock", "assert_not_submitted", "assert_submitted", "drain", "simulate"]

_HOMES = {
    "Simulation": "simulation",
    "StoreClock": "clock",
    "assert_not_submitted": "submissions",
    "assert_submitted": "submissions",
    "drain": "draining",
    "simulate": "simulation",
}


def __getattr__(name: str) -> object:
    """Loaded when asked for: pytest imports this package at every start, for its plugin."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
