"""The Lua scripts: each verb's file behind the shared ones it names in its first line."""

import hashlib
import re
from functools import cache
from importlib import resources

from msgspec import Struct

from rota.stores.bounds import REDIS, constants

READS = frozenset({"runs", "rows", "stats", "depths"})
GROWS = frozenset({"put", "fire", "schedule", "mark"})
"""Refused when the server has no memory left; the other verbs go on, so that what is there can be worked off. What code
declares is small and bounded by the code, and no worker starts without it: that is not refused."""
FILES = {"schedule": "declare"}
"""Verbs that have the file of another: schedules that are put at run time are declared, but may be refused."""


class Script(Struct, frozen=True):
    name: str
    text: str
    sha: str


_VALUE = r"(?:\d+|ROOT \.\. \"\w+\")"
_CONSTANTS = re.compile(rf"^local ([A-Z][A-Z_0-9, ]*?) =\s*({_VALUE}(?:, {_VALUE})*)$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*\n", re.MULTILINE)


def compiled(text: str) -> str:
    """The text with its constants written out: those of its own lines, and the shared numbers.

    A script is run from its first line each time, and whatever a function takes from outside is looked for in the list
    of all that any function takes: with a hundred local names, that took longer than the work of a small verb.
    """
    written = constants(REDIS)
    for names, values in _CONSTANTS.findall(text):
        written |= dict(zip(names.split(", "), values.split(", "), strict=True))
    written = {name: f"({value})" if value.startswith("ROOT") else value for name, value in written.items()}
    text = _COMMENT.sub("", _CONSTANTS.sub("", text))
    return re.sub(r"\b[A-Z][A-Z_0-9]*\b", lambda word: written.get(word[0], word[0]), text)


@cache
def script(name: str, modern: bool) -> Script:
    """The verb's script; `modern` servers (7 and later) are told what it does."""
    folder = resources.files("rota.stores.redis") / "lua"
    verb = (folder / f"{FILES.get(name, name)}.lua").read_text()
    first = verb.partition("\n")[0]
    parts = [(folder / "shared" / f"{part}.lua").read_text() for part in first.removeprefix("-- with:").split()]
    flags = " flags=no-writes" if name in READS else "" if name in GROWS else " flags=allow-oom"
    text = (f"#!lua{flags}\n" if modern else "") + compiled("".join([*parts, verb]))
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())
