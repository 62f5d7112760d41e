"""Text for people: no control characters, no passwords, counts with their nouns, durations and sizes, suggestions for
mistyped names."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f]).{0,4096}?(?:\x07|\x1b\\|\x9c)"  # OSC and its kin, to their end
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
HIDDEN = "\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff"
_CONTROL = re.compile(f"[\x00-\x08\x0b-\x1f{HIDDEN}]")


def clean(text: str) -> str:
    """Return text without terminal sequences and hidden characters, so that it cannot move the cursor, change colours
    or reorder the text around it. Lines and tabs stay."""
    return _CONTROL.sub("", _SEQUENCE.sub("", text.replace("\r\n", "\n"))).expandtabs(4)


def one_line(text: str) -> str:
    """`text` cleaned, with every run of white space as one space."""
    return " ".join(clean(text).split())


def plural(count: int, noun: str) -> str:
    """`1 run`, `3 runs`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def span(seconds: float) -> str:
    """Return a duration in two units."""
    if seconds < 0.00995:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, over = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {over:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} m" if hours < 48 else f"{hours // 24} d {hours % 24:02d} h"


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


_PASSWORD = re.compile(
    r"^([^:/?#]+://[^:@/?#]*):"
    r"(?!\d{1,5}(?:[/?#]|$))"  # a port
    r"(?:[^/?#]*@|.*@)",  # for a password that is not percent-encoded
    re.DOTALL,
)
_SECRET = re.compile(r"([?&][^=&#]*(?:password|passwd|secret|token|listen_url)[^=&#]*=)[^&#]*", re.IGNORECASE)


def masked(url: str) -> str:
    """Return the URL with *** for its password and for each parameter that looks like a password."""
    return _SECRET.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))


def closest(word: str, known: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return at most `most` of the `known` names that resemble `word`, the most similar first, whatever their case."""
    names = {name.lower(): name for name in sorted(known)}
    return [names[name] for name in get_close_matches(word.lower(), names, most, cutoff)]


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return `; did you mean NAME?` to end a sentence with, or `otherwise` if no known name resembles `word`."""
    near = closest(word, known)
    return f"; did you mean {near[0]}?" if near else otherwise
