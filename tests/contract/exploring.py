"""Searches for a story that a store and the model tell differently. The same seed tells the same stories."""

import time
from collections.abc import Callable

from hypothesis import seed, settings
from hypothesis.stateful import run_state_machine_as_test

from rota.store import Backend
from rota.testing.comparison import compare

Make = Callable[[], Backend]


def explore(make: Make, start: int, examples: int, steps: int = 40) -> None:
    machine = seed(start)(compare(make))
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=steps))


def explore_for(make: Make, start: int, seconds: float) -> None:
    """One search after another: what hypothesis remembers of a search grows with it, by gigabytes and minutes."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        explore(make, start, 50, 100)
        start += 1
