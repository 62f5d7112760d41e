"""Words for a terminal: stored text made harmless, and instants, spans and sizes as people say them."""

import re
from datetime import UTC, datetime

from rich.cells import cell_len

_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f]).{0,4096}?(?:\x07|\x1b\\|\x9c)"  # OSC and its kin, to their end
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
_HIDDEN = "\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff"
_CONTROL = re.compile(f"[\x00-\x08\x0b-\x1f{_HIDDEN}]")
UNSAFE_IN_JSON = re.compile(f"[{_HIDDEN}]")


def clean(text: str) -> str:
    """Text that cannot move a cursor, recolour or reorder what is around it; lines and tabs stay."""
    return _CONTROL.sub("", _SEQUENCE.sub("", text.replace("\r\n", "\n"))).expandtabs(4)


def one_line(text: str) -> str:
    """The same on one line."""
    return " ".join(clean(text).split())


_PIECES = re.compile(r"`[^`]*`\S*|\S+")


def wrapped(text: str, width: int, hanging: int = 0) -> list[str]:
    """One line of text as lines of at most `width` columns, all but the first indented by `hanging`.

    A command in backquotes stays in one piece, also where it is wider than a line: people copy it.
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


def iso(instant: float) -> str:
    """An instant as ISO 8601 in UTC."""
    try:
        moment = datetime.fromtimestamp(instant, UTC)
    except (OverflowError, ValueError, OSError):
        return str(instant)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def span(seconds: float) -> str:
    """A time span in its two most telling units."""
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
    """An instant as seen from now."""
    away = instant - now
    return f"in {coarse(away)}" if away > 0 else f"{coarse(-away)} ago"


def coarse(seconds: float) -> str:
    """A time span in one unit."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def size(count: float) -> str:
    """Bytes."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def plural(count: int, noun: str) -> str:
    """`1 run`, `3 runs`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
