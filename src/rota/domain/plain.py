"""Plain text for people: text without control characters, and counts with their nouns."""

import re

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
