"""Backoff: how long to wait between tries, longer after each failure."""


class Backoff:
    """Pauses in seconds: `first`, then always twice the one before, and never more than `last`."""

    def __init__(self, first: float, last: float) -> None:
        self._first = first
        self._last = last
        self._pause = first

    def pause(self) -> float:
        """Return the pause before the next try, and double the one after it."""
        pause, self._pause = self._pause, min(self._pause * 2, self._last)
        return pause

    def reset(self) -> None:
        """Begin with `first` again: something went well."""
        self._pause = self._first
