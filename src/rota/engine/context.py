"""Context: what a handler may know of the run it serves."""

from rota.domain.run import Run


class Context:
    """Given to a handler whose first parameter is annotated `Context`; never passed at submit."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._stopping = False
        self._noticed = False

    @property
    def fence(self) -> int:
        """Grows with every claim of this run: hand it to systems that can refuse an older one."""
        return self.run.fence

    @property
    def attempt(self) -> int:
        """1 for the first call, one more after every failure or loss."""
        return self.run.failures + self.run.losses + 1

    @property
    def stopping(self) -> bool:
        """True once the run is cancelled or the worker stops. A handler in a thread looks here and returns early;
        having seen it, its run does not count as succeeded."""
        self._noticed = self._noticed or self._stopping
        return self._stopping

    @property
    def noticed(self) -> bool:
        """Has the handler seen that it should stop?"""
        return self._noticed

    def stop(self) -> None:
        self._stopping = True
