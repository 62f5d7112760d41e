"""Log tails: what the handlers of tasks with `logs=True` log goes into the tails of their attempts too."""

import logging
from collections.abc import Callable

from rota.engine.context import context_here
from rota.engine.logs import local


class TailHandler(logging.Handler):
    """Adds each record to the tail of the run whose handler logs it: in its coroutine, its thread or its child process.
    Lines of rota itself are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(_Lines())

    def emit(self, record: logging.LogRecord) -> None:
        context = context_here.get()
        if context is None or context.tail is None or record.name.partition(".")[0] == "rota":
            return
        try:
            context.log_line(self.format(record))
        except Exception:  # arguments that do not fit the message
            self.handleError(record)


class _Lines(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        return local(record.created)


_handler = TailHandler()
_users = 0
"""Workers of this process that keep tails."""


def keep_tails() -> Callable[[], None]:
    """Keep tails in this process from now on. Return what ends it for the caller."""
    global _users
    _users += 1
    if _users == 1:
        logging.getLogger().addHandler(_handler)
    return _leave


def _leave() -> None:
    global _users
    _users -= 1
    if _users == 0:
        logging.getLogger().removeHandler(_handler)
