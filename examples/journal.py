"""What an example says while it is played in virtual time, each line with the time of the story."""

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby


@contextmanager
def listening(log: logging.Logger, tell: Callable[[str], None]) -> Generator[None]:
    """Give every line of a log to `tell`, while the block runs."""
    listener, level = _Listener(tell), log.level
    log.addHandler(listener)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(listener)
        log.setLevel(level)


class _Listener(logging.Handler):
    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(record.getMessage())


def journal(lines: Sequence[str]) -> Iterator[str]:
    """The lines of a day, `13:40  …`: the same thing in a row once."""
    for said, group in groupby(lines, key=lambda line: line[5:]):
        times = [line[:5] for line in group]
        yield f"{times[0]}{said}" + (f"  ({len(times)} times, until {times[-1]})" if len(times) > 1 else "")
