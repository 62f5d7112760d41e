"""The history of a chaos run: each process appends one JSON line per event to a file of its own.

A line is one `write` call on a file that is open for appending. The kernel keeps the line when the process is killed.
"""

import json
import os
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = "CHAOS_HISTORY"
"""The environment variable that names the folder of the history files."""

Event = dict[str, Any]
"""One line. `event` names its kind, `wall` and `mono` are the times of day and of the monotonic clock, which all the
processes of a machine share, and `pid` is the process that wrote the line."""


@cache
def _file(pid: int) -> int:
    path = Path(os.environ[FOLDER], f"{pid}.jsonl")
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def write(event: str, **values: object) -> None:
    """Append one event of this process."""
    pid = os.getpid()
    line = {"event": event, "wall": time.time(), "mono": time.monotonic(), "pid": pid, **values}
    os.write(_file(pid), json.dumps(line).encode() + b"\n")


def read(folder: Path) -> Iterator[Event]:
    """Every event of every process, in the order of the monotonic clock. A last line that was cut off is left out."""
    lines = [line for path in folder.glob("*.jsonl") for line in path.read_bytes().split(b"\n")[:-1]]
    return iter(sorted((json.loads(line) for line in lines), key=lambda event: event["mono"]))
