"""Text for a terminal: stored text without control characters; instants, durations and sizes for people."""

import re

from rich.cells import cell_len

from rota.domain.text import HIDDEN, clean, one_line, plural
from rota.views.values import iso

__all__ = ["clean", "coarse", "iso", "one_line", "plural", "relative", "size", "span", "wrapped"]

UNSAFE_IN_JSON = re.compile(f"[{HIDDEN}]")


_PIECES = re.compile(r"`[^`]*`\S*|\S+")


def wrapped(text: str, width: int, hanging: int = 0) -> list[str]:
    """Return one line of text as lines of at most `width` columns, all but the first indented by `hanging`.

    A command in backquotes stays in one piece, even if it is wider than a line, because people copy it.
    """
    lines, line = list[str](), ""
    for found in _PIECES.finditer(text):
        piece = found[0]
        if line.strip() and cell_len(line) + 1 + cell_len(piece) > width:
            lines.append(line)
            line = " " * hanging + piece
        else:
            line = f"{line} {piece}" if line.strip() else f"{line}{piece}"
    return [*lines, line]


def span(seconds: float) -> str:
    """Return a duration in two units."""
    if seconds < 0.00995:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} m" if hours < 48 else f"{hours // 24} d {hours % 24:02d} h"


def relative(instant: float, now: float) -> str:
    """Return `instant` relative to `now`: `in 5 m`, `3 h ago`."""
    away = instant - now
    return f"in {coarse(away)}" if away > 0 else f"{coarse(-away)} ago"


def coarse(seconds: float) -> str:
    """Return a duration in one unit."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def size(count: float) -> str:
    """Return `count` bytes in a readable unit."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
