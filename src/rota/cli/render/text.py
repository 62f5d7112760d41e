"""Text for a terminal: stored text without control characters; instants, durations and sizes for people."""

import re

from rich.cells import cell_len

from rota.domain.text import HIDDEN, clean, coarse, one_line, plural, size, span
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


def relative(instant: float, now: float) -> str:
    """Return `instant` relative to `now`: `in 5 m`, `3 h ago`."""
    away = instant - now
    return f"in {coarse(away)}" if away > 0 else f"{coarse(-away)} ago"
