"""What a forked child may not share with its parent."""

import os
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class _Count:
    """How many forks lie between this process and the first. A pid alone may come again in a long line of forks."""

    forks = 0


def _forked() -> None:
    _Count.forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class PerProcess(Generic[T]):
    """One value per process: a forked child makes its own, whatever its parent was doing at the fork.

    An inherited lock may be held by a thread that the child does not have, an inherited loop has no thread that turns
    it. The child keeps what it inherited untouched: an asyncio transport that is thrown away takes its socket out of
    the epoll instance, and parent and child share that instance.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: dict[tuple[int, int], T] = {}

    def found(self) -> T | None:
        """This process's value, if there is one already."""
        return self._values.get((os.getpid(), _Count.forks))

    def get(self) -> T:
        """This process's value; safe from any thread. Of two that are made at once, all callers get the same."""
        process = os.getpid(), _Count.forks
        try:
            return self._values[process]
        except KeyError:
            return self._values.setdefault(process, self._make())
