"""A handler whose module waits, where SLOW_START names a pipe, until nobody has the pipe open for writing."""

import os
from pathlib import Path

if "SLOW_START" in os.environ:
    Path(os.environ["SLOW_START"]).read_bytes()


def double(number: int) -> int:
    return 2 * number
