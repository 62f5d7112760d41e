"""A finding: what is wrong, how bad that is, and what to write instead."""

from typing import Literal, get_args

from msgspec import Struct

Level = Literal["error", "warning", "note"]
"""error: it cannot do what it says; warning: likely not what was meant; note: good to know."""
LEVELS: tuple[str, ...] = get_args(Level)


class Finding(Struct, frozen=True):
    """`code` is for machines and stays; `message` is one sentence; `hint` says what to write instead."""

    code: str
    level: Level
    message: str
    hint: str
