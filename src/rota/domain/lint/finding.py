"""Finding: what is wrong with a schedule, how bad it is, and what to write instead."""

from typing import Literal, get_args

from msgspec import Struct

Level = Literal["error", "warning", "note"]
"""error: the schedule cannot do what it says; warning: probably not what its author means; note: good to know."""
LEVELS: tuple[str, ...] = get_args(Level)


class Finding(Struct, frozen=True):
    """`code` is for programs and never changes; `message` is one sentence; `hint` says what to write instead."""

    code: str
    level: Level
    message: str
    hint: str
