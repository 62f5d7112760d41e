"""Log lines: which run and worker a line belongs to, and the two forms in which `rota worker` writes it.

An app that embeds rota keeps its own logging: only the commands call `configure`.
"""

import json
import logging
import os
import sys
from contextvars import ContextVar
from datetime import datetime
from typing import Literal

from msgspec import Struct

from rota.domain.run import Run
from rota.domain.text import clean
from rota.engine.context import context_here
from rota.engine.traces import trace_id

LogForm = Literal["text", "json"]
COLOURS = {logging.WARNING: "\x1b[33m", logging.ERROR: "\x1b[31m", logging.CRITICAL: "\x1b[31;1m"}
TRACE = "\nTraceback (most recent call last):\n"

worker_here: ContextVar[str | None] = ContextVar("rota worker", default=None)
"""The worker on whose behalf this code runs."""


class LogSetup(Struct, frozen=True):
    """How a process writes its log. `pid` names the process in each line of text. `replace`: also where the app has set
    up logging."""

    level: int = logging.INFO
    form: LogForm = "text"
    colours: bool = False
    pid: bool = False
    replace: bool = False


in_force: LogSetup | None = None
"""The setup of this process; its child processes get the same."""


def configure(setup: LogSetup) -> None:
    """Write the log lines of rota and of the app to stderr.

    An app that has set up logging while it was imported keeps its handlers. With `setup.replace`, those that write to
    the terminal get the form of `setup`, and the others of the root go. No record is written to the terminal twice.
    """
    global in_force
    root = logging.getLogger()
    logging.getLogger("rota").setLevel(setup.level)
    if root.handlers and not setup.replace:
        return
    form = JsonLines() if setup.form == "json" else TextLines(setup)
    if setup.replace:
        for logger in list(logging.Logger.manager.loggerDict.values()):
            for each in logger.handlers if isinstance(logger, logging.Logger) else ():
                if _on_terminal(each):
                    each.setFormatter(form)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(form)
    handler.addFilter(lambda record: not shown(record))
    root.handlers = [handler]
    root.setLevel(setup.level)
    in_force = setup


def shown(record: logging.LogRecord) -> bool:
    """Return whether a logger of the app, below the root, has a handler that writes `record` to the terminal."""
    logger = logging.getLogger(record.name)
    while logger.parent is not None:
        if any(_on_terminal(each) and record.levelno >= each.level and each.filter(record) for each in logger.handlers):
            return True
        logger = logger.parent
    return False


def _on_terminal(handler: logging.Handler) -> bool:
    stream: object = getattr(handler, "stream", None)
    return stream is not None and stream in (sys.stderr, sys.stdout)


def about(run: Run) -> dict[str, object]:
    """Return the `extra` of a log line about `run`, outside the call of its handler."""
    return {"rota_task": run.task, "rota_run": run.id, "rota_fence": run.fence}


def local(created: float) -> str:
    """Local time with its offset, to the millisecond."""
    return datetime.fromtimestamp(created).astimezone().isoformat(timespec="milliseconds")


class TextLines(logging.Formatter):
    """`time LEVEL logger: message`; with short times and colours for a person's eyes."""

    def __init__(self, setup: LogSetup) -> None:
        pid = f" [{os.getpid()}]" if setup.pid else ""
        super().__init__(f"%(asctime)s %(levelname)s{pid} %(name)s: %(message)s")
        self._colours = setup.colours

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        """Local time; short at a terminal, where a person knows the day and the zone."""
        return local(record.created)[11:19] if self._colours else local(record.created)

    def format(self, record: logging.LogRecord) -> str:
        line = clean(super().format(record)).rstrip()
        if not self._colours:
            return line
        clock, level, text = line.split(" ", 2)
        return f"\x1b[2m{clock}\x1b[0m {COLOURS.get(record.levelno, '')}{level.lower():<7}\x1b[0m {text}"


class JsonLines(logging.Formatter):
    """One JSON object per line; `task`, `run`, `fence`, `worker` and `trace` where they are known."""

    def format(self, record: logging.LogRecord) -> str:
        message, _, trace = record.getMessage().partition(TRACE)
        fields = {
            "ts": local(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": clean(message).rstrip(),
            **_whose(record),
        }
        if record.exc_info and record.exc_info[0] is not None:
            fields["traceback"] = clean(self.formatException(record.exc_info))
        elif trace:
            fields["traceback"] = clean(TRACE.lstrip() + trace).rstrip()
        return json.dumps(fields, ensure_ascii=False)


def _whose(record: logging.LogRecord) -> dict[str, object]:
    here, fields = context_here.get(), vars(record)
    run = here and here.run
    found = {
        "task": fields.get("rota_task") or (run and run.task),
        "run": fields.get("rota_run") or (run and run.id),
        "fence": fields.get("rota_fence") or (run and run.fence),
        "worker": worker_here.get() or (run and run.worker),
        "trace": trace_id(),
    }
    return {name: value for name, value in found.items() if value}
