"""Logging of commands: the options of `rota worker`, and warnings of commands that do not log."""

import logging
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Literal

from cyclopts import Parameter

from rota.cli.options.parameters import Flag
from rota.cli.render.text import one_line
from rota.engine.logs import LogForm, LogSetup, configure, shown
from rota.errors import InvalidOptions
from rota.settings import Settings

Level = Literal["debug", "info", "warning", "error"]

LogLevel = Annotated[
    Level | None, Parameter(help="The least level that is logged, of the app's loggers too [ROTA_LOG_LEVEL].")
]
LogFormat = Annotated[
    LogForm | None, Parameter(help="Lines of text, or a JSON object per line [ROTA_LOG_FORMAT].", show_default=False)
]
Verbose = Annotated[bool, Flag, Parameter(name=("--verbose", "-v"), help="The same as --log-level debug.")]
Quiet = Annotated[bool, Flag, Parameter(name=("--quiet", "-q"), help="The same as --log-level warning.")]


def chosen_level(level: Level | None, verbose: bool, quiet: bool) -> Level | None:
    """Return the level that the options choose; None if they choose none."""
    if (level is not None) + verbose + quiet > 1:
        raise InvalidOptions("--log-level, --verbose and --quiet each say what is logged; give one of them")
    if verbose:
        return "debug"
    return "warning" if quiet else level


def log_options(level: Level | None, form: LogForm | None) -> dict[str, object]:
    """Return the same options for a child process."""
    return {"log-level": level, "log-format": form}


def log_to_stderr(settings: Settings, level: Level | None, form: LogForm | None, pid: bool = False) -> None:
    """Log to stderr, with the level and form of the options, else of the settings."""
    form_chosen = form is not None or settings.source("log_format") != "default"
    setup = LogSetup(
        level=logging.getLevelNamesMapping()[(level or settings.log_level).upper()],
        form=form or settings.log_format,
        colours=sys.stderr.isatty() and not os.environ.get("NO_COLOR"),
        pid=pid,
        replace=form_chosen,
    )
    configure(setup)
    if level is not None or settings.source("log_level") != "default":
        logging.getLogger().setLevel(setup.level)


def has_banner(form: str, level: str) -> bool:
    """Return whether a plain line on stdout may say that the worker is up. Programs that read JSON lines often merge
    stdout and stderr; and a user who asks for warnings alone wants no banner."""
    return form == "text" and level in ("debug", "info")


class _Notes(logging.Handler):
    """Writes warnings as `rota: …` to stderr, for commands that do not log."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Drop a record that a log handler already shows."""
        return not logging.getLogger().handlers and not shown(record)

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"rota: {one_line(record.getMessage())}\n")
        sys.stderr.flush()


@contextmanager
def warnings_to_stderr() -> Generator[None]:
    """While this is open, write each warning of `rota` to stderr in one line."""
    logger, notes = logging.getLogger("rota"), _Notes(logging.WARNING)
    logger.addHandler(notes)
    try:
        yield
    finally:
        logger.removeHandler(notes)


def hush_interrupts() -> None:
    """Drop asyncio's complaint about an exception that was never retrieved. A second Ctrl-C during the handling of the
    first interrupts some task of the event loop, and causes that complaint."""
    logging.getLogger("asyncio").addFilter(_is_no_interrupt)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], KeyboardInterrupt))


def route(handler: logging.Handler, level: int) -> None:
    """Send all log records of `rota` to `handler` alone."""
    logger = logging.getLogger("rota")
    logger.handlers = [handler]
    logger.setLevel(level)
    logger.propagate = False
