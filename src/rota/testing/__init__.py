"""For tests of apps that use rota: a simulation in virtual time, `drain`, and asserts about submitted runs.

    from rota.testing import assert_submitted, drain, simulate

pytest finds the plugin `rota.testing.plugin` by itself.
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


if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts every name, also a misspelt one

    def __getattr__(name: str) -> object:
        """Load a name when code first uses it: pytest imports this package at every start, for the plugin."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
