"""The `rota` logger on a terminal or into a file: one line per event, harmless whatever the event quotes."""

import logging
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

from rota.cli.text import clean, iso, one_line

_COLOUR = {logging.WARNING: "\x1b[33m", logging.ERROR: "\x1b[31m", logging.CRITICAL: "\x1b[31;1m"}


class Lines(logging.Formatter):
    """`time level message`; with short times and colours for a person's eyes."""

    def __init__(self, colours: bool) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self.colours = colours

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        """The local clock for a person, UTC for a file."""
        if self.colours:
            return time.strftime("%H:%M:%S", time.localtime(record.created))
        return iso(record.created)

    def format(self, record: logging.LogRecord) -> str:
        line = clean(super().format(record)).rstrip()
        if not self.colours:
            return line
        clock, level, rest = line.split(" ", 2)
        return f"\x1b[2m{clock}\x1b[0m {_COLOUR.get(record.levelno, '')}{level.lower():<7}\x1b[0m {rest}"


class _Notes(logging.Handler):
    """Warnings of a command that has no log of its own, as `rota: …` on stderr."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Not where the app's own logging shows them."""
        return not logging.getLogger().handlers

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"rota: {one_line(record.getMessage())}\n")
        sys.stderr.flush()


@contextmanager
def warnings_to_stderr() -> Generator[None]:
    """While a command runs, what `rota` warns of is told in one line each."""
    logger, notes = logging.getLogger("rota"), _Notes(logging.WARNING)
    logger.addHandler(notes)
    try:
        yield
    finally:
        logger.removeHandler(notes)


def log_to_stderr(level: int = logging.INFO) -> None:
    """The engine's own words; the app's other loggers stay as the app set them."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(colours=sys.stderr.isatty() and not os.environ.get("NO_COLOR")))
    route(handler, level)


def route(handler: logging.Handler, level: int) -> None:
    """All that `rota` logs goes to this handler and nowhere else."""
    logger = logging.getLogger("rota")
    logger.handlers = [handler]
    logger.setLevel(level)
    logger.propagate = False
