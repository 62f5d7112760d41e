"""The log tail of an attempt: the end of what its handler logged, compressed, as it is stored with the attempt."""

import base64
import binascii
import zlib
from collections import deque

TAIL = 64 * 1024
"""Bytes of the log that an attempt keeps at most."""
CUT = "[earlier lines are left out]\n"
LINE = 4096
"""Characters of one line that are kept."""


class Tail:
    """The last lines of a log, TAIL bytes at most. Several threads may add lines."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        self._size = 0
        self._cut = False

    def add(self, line: str) -> None:
        line = line if len(line) <= LINE else f"{line[:LINE]}…"
        self._lines.append(line)
        self._size += _bytes(line)
        while self._size > TAIL - len(CUT) and len(self._lines) > 1:
            try:
                self._size -= _bytes(self._lines.popleft())
            except IndexError:  # another thread took it
                break
            self._cut = True

    def text(self) -> str:
        """Return the lines, each with its end. A note comes first if lines were left out."""
        return (CUT if self._cut else "") + "".join(f"{line}\n" for line in tuple(self._lines))


def _bytes(line: str) -> int:
    return len(line.encode(errors="replace")) + 1


def packed(text: str) -> str:
    """Return a log as it is stored: compressed, as text that every store can keep. Empty if there is none."""
    if not text:
        return ""
    return base64.b85encode(zlib.compress(text.encode(errors="replace")[-TAIL:])).decode()


def unpacked(stored: str) -> str:
    """Return a stored log as text; empty if it cannot be read. It never takes more than TAIL bytes."""
    if not stored:
        return ""
    try:
        return zlib.decompressobj().decompress(base64.b85decode(stored), TAIL).decode(errors="replace")
    except (zlib.error, ValueError, binascii.Error):
        return ""
