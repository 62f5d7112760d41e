"""The library: the verbs as functions that the server keeps (FUNCTION, of Redis 7 and Valkey).

A server runs a script from its first line each time, and so makes all its functions anew. It makes those of a library
once. The library is made of the same files as the scripts: its functions come first, and what a verb does besides is
done at each call. Its name is a digest of its text. So each version of rota calls its own, and versions that serve one
server at the same time do not meet.

A line of a verb that ends with `-- ahead` is done ahead of the lines `-- anew` of all shared files but the clock: what
a call does by itself there, it does without their tables, which it finds as the call before left them.
"""

import hashlib
import re
from functools import cache

from msgspec import Struct

from rota.stores.redis.scripts import YIELD, compiled, constants, flag, shared_source, source, verbs

PREFIX = "rota_"
AHEAD = " -- ahead"
"""The end of a line of a verb that is done when only the clock has begun, ahead of the other shared files."""

_ANEW = re.compile(r"^(.*) -- anew$", re.MULTILINE)
_LOCAL = re.compile(r"local (\w+(?:, \w+)*)(?: =(.*?))?(?: -- .*)?$")


class Library(Struct, frozen=True):
    name: str
    text: str
    functions: dict[str, str]
    """The name of the function of each verb."""


@cache
def library() -> Library:
    modules: dict[str, None] = {}
    for verb in sorted(verbs(), key=lambda verb: -len(source(verb)[0])):
        modules.update(dict.fromkeys(source(verb)[0]))
    known = {name: value for module in modules for name, value in constants(shared_source(module)).items()}
    parts = [_shared(module, known) for module in modules] + [_verb(verb, known) for verb in verbs()]
    text = "local KEYS, ARGV\n" + "".join(parts)
    name = PREFIX + hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:16]
    functions = {verb: f"{name}_{verb}" for verb in verbs()}
    return Library(name, f"#!lua name={name}\n" + text.replace(f'"{PREFIX}', f'"{name}_'), functions)


def _shared(module: str, known: dict[str, str]) -> str:
    """The text of a shared file. Its lines `-- anew` are in a function `begin_<module>`, which each call does first."""
    declared: list[str] = []
    begin: list[str] = []

    def move(line: re.Match[str]) -> str:
        names = _assigned(line[1], declared)
        begin.append(names)
        return ""

    text = _ANEW.sub(move, shared_source(module))
    head = f"local {', '.join(declared)}\n" if declared else ""
    return compiled(f"{head}{text}\nlocal function begin_{module}()\n" + "\n".join(begin) + "\nend\n", known)


def _verb(verb: str, known: dict[str, str]) -> str:
    """The text of a verb: its functions, then one that does everything else, which the server calls."""
    shared, text = source(verb)
    text = compiled(text, known)
    declared, functions, ahead, main = list[str](), list[str](), list[str](), list[str]()
    within = False
    for line in text.splitlines():
        if within or line.startswith("local function "):
            functions.append(line)
            within = line != "end" and (within or not line.endswith(" end"))
        elif line.endswith(AHEAD):
            ahead.append(_assigned(line.removesuffix(AHEAD), declared))
        else:
            main.append(_assigned(line, declared))
    variables = f"local {', '.join(declared)}\n" if declared else ""
    begins = [f"begin_{module}()" for module in shared]
    flags = f', flags = {{ "{flag(verb)}" }}' if flag(verb) else ""
    head = f'redis.register_function{{ function_name = "{PREFIX}{verb}"{flags}, callback = function(keys, args)'
    ahead = ahead if verb == "plan" else [YIELD, *ahead]
    begin = [begins[0], *ahead, " ".join(begins[1:])]
    body = "\n".join([*functions, head, "KEYS, ARGV = keys, args", *begin, *main, "end }"])
    return f"do\n{variables}{body}\nend\n"


def _assigned(line: str, declared: list[str]) -> str:
    """Return `line` as an assignment if it defines local variables; add their names to `declared`."""
    found = _LOCAL.match(line)
    if not found:
        return line
    declared += [name for name in found[1].split(", ") if name not in declared]
    return f"{found[1]} ={' nil' if found[2] is None else found[2]}"
