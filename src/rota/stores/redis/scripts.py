"""The Lua scripts: the file of each verb behind the shared files that its first line names.

The scripts know runs, puts, settlements and leases by place, and they know numbers of the port. `WORDS` has all of
these by name, from `stores/fields.py` and `stores/bounds.py`: a word in capitals in a Lua file is replaced by what it
stands for.
"""

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from importlib import resources

from msgspec import Struct

from rota.stores import bounds, fields

READS = frozenset({"runs", "rows", "stats", "depths"})
GROWS = frozenset({"put", "fire", "schedule", "mark"})
"""Verbs that a server without memory refuses. It does the others, so that workers can work off what is there. A
declaration is small and bounded by the code, and no worker starts without it: so `declare` is not refused."""
FILES = {"schedule": "declare"}
"""Verbs that have the file of another: `schedule` declares schedules that are put at run time, and may be refused."""

FIRST_IN_ITEM = (
    *("id", "task", "priority", "tail", "delay", "at", "expires_after", "expires_at"),
    *("key", "unique_key", "needs", "group"),
)
ITEM = (
    *FIRST_IN_ITEM,
    *(name for name in fields.names(fields.PUT) if name not in (*FIRST_IN_ITEM, "writes_mark", "body")),
    "apart",
)
"""A put as the scripts take it. `tail` is packed already: the last fields of form "p". `apart` is a body that is too
long for the record. What most runs do not have comes last, and is left off."""
ENDING = ("outcome", *fields.SETTLEMENT)
"""A settlement as the scripts take it; `attempt` is the JSON of what no script reads."""


class Script(Struct, frozen=True):
    name: str
    text: str
    sha: str


def _places(prefix: str, names: Iterable[str], first: int = 1) -> dict[str, str]:
    return {prefix + name.upper(): str(place) for place, name in enumerate(names, first)}


def _statements() -> dict[str, str]:
    """Pieces of Lua that are written from the fields of a record; `run` is the run that they are about."""
    forms = list(fields.FORMS.items())
    places = {field.name: place for place, field in enumerate(fields.RECORD, 2)}
    later = {form: [field for field in fields.RECORD if field.form == form] for form, _ in forms[1:]}
    fill = choose = ""
    for form, count in forms[1:]:
        targets = ", ".join(f"run[{places[field.name]}]" for field in later[form])
        fill += f"if count < {count} then {targets} = {', '.join(field.blank for field in later[form])} end\n"
        if not choose:
            choose = f'local form, last = "{form}", {count + 1}\n'
        else:
            given = " or ".join(f"run[{places[field.name]}] ~= {field.blank}" for field in later[form])
            choose += f'if {given} then form, last = "{form}", {count + 1} end\n'
    kept = {places[field.name]: ITEM.index(field.name) + 1 for field in fields.KEPT}
    second = later[forms[1][0]]
    return {
        "FORM_FIELDS": "{ " + ", ".join(f"{form} = {count}, {form.upper()} = {count}" for form, count in forms) + " }",
        "ALL_FIELDS": str(len(fields.RECORD)),
        "FILL_BLANKS": fill,
        "CHOOSE_FORM": choose,
        "LATER_FIELDS": ", ".join(fields.names(second)),
        "LATER_BLANKS": ", ".join(field.blank for field in second),
        "KEPT_GIVEN": " or ".join(f"item[{item}] ~= nil" for item in kept.values()) or "false",
        "KEEP_GIVEN": "\n".join(
            f"if item[{item}] ~= nil then run[{run}] = item[{item}] end" for run, item in kept.items()
        ),
    }


def words() -> dict[str, str]:
    """All words in capitals that a Lua file may use without saying what they stand for."""
    return {
        **bounds.constants(bounds.REDIS),
        **_places("", fields.names(fields.RECORD), 2),
        **_places("L_", fields.LEASE),
        **_places("I_", ITEM),
        **_places("E_", ENDING),
        **_statements(),
    }


_VALUE = r"(?:\d+|ROOT \.\. \"\w+\")"
_CONSTANTS = re.compile(rf"^local ([A-Z][A-Z_0-9, ]*?) =\s*({_VALUE}(?:, {_VALUE})*)$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*\n", re.MULTILINE)


def compiled(text: str) -> str:
    """The text with its constants written out: those of its own lines, and the shared ones.

    A server runs a script from its first line each time, and looks up whatever a function takes from outside in the
    list of all that any function takes: with a hundred local names, that took longer than the work of a small verb.
    """
    written = words()
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
