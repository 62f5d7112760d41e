"""The Lua scripts: a script is the shared files that the first line of its verb's file names, then that file.

A line of a shared file that ends with `-- anew` gives a variable the value that it has when a verb begins. For a script
this is a comment, because a server runs a script from its first line each time. `library.py` makes functions of the
same files: the server keeps these, and does the lines `-- anew` at each call.

A Lua file names constants in capitals: the places of the fields in a run, a put, a settlement, a lease and a row, and
the numbers of the port. `words` takes them from `stores/fields.py`, `rows.py` and `stores/bounds.py`, and `compiled`
writes the value in place of each name.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources

from msgspec import Struct

from rota.store import SLOTS_KEPT
from rota.stores import bounds, fields
from rota.stores.redis import rows

READS = frozenset({"runs", "rows", "stats", "depths", "due", "rate"})
GROWS = frozenset({"put", "fire", "schedule", "mark", "fan", "stage"})
"""Verbs that a server refuses when its memory is full. It runs all others, so that workers can end the runs that are
there. `declare` is not refused, because no worker starts without it; what it adds is small and bounded by the code."""
YIELD = "if planning then return planning end"
"""What each verb does before anything else, but for `plan`, which carries out the plan that is under way."""
FILES = {"schedule": "declare"}
"""Verbs that use the file of another verb: `schedule` declares schedules that are put at run time; it is in GROWS."""

FIRST_IN_ITEM = (
    *("id", "task", "priority", "tail", "delay", "at", "expires_after", "expires_at"),
    *("key", "unique_key", "needs", "group"),
)
ITEM = (
    *FIRST_IN_ITEM,
    *(name for name in fields.names(fields.PUT) if name not in (*FIRST_IN_ITEM, "writes_mark", "body")),
    "apart",
)
"""The fields of a put as the scripts get it. `tail` is packed already: the last fields of form "a". `apart` is a body
that is too long for the record. Fields that most runs do not have come last, because empty fields at the end are not
sent."""
SETTLEMENT = ("outcome", *fields.SETTLEMENT)
"""The fields of a settlement as the scripts get it; `attempt` is JSON that no script reads."""

BUCKET = 92
"""So many runs have their ids in one key o:<bucket>, by arrival number: 4 KiB, which is a size of allocators."""
KEY_BLOCK, KEY_BLOCKS = 40 * BUCKET, 100
"""So many runs have the hashes of their keys in one string kh:<block>, and one script reads so many of these."""


class Script(Struct, frozen=True):
    text: str
    sha: str


def _places(prefix: str, names: Iterable[str], first: int = 1) -> dict[str, str]:
    return {prefix + name.upper(): str(place) for place, name in enumerate(names, first)}


def _statements() -> dict[str, str]:
    """Statements of Lua that follow from the fields of a record; they use the variable `run`."""
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
    """All names in capitals that a Lua file may use without defining them, with their values."""
    return {
        **bounds.constants(bounds.REDIS),
        "BUCKET": str(BUCKET),
        "KEY_BLOCK": str(KEY_BLOCK),
        "KEY_BLOCKS": str(KEY_BLOCKS),
        "NO_KEY": r'"\255\255"',
        "NO_HASH": r'"\0\0"',
        "SLOTS_KEPT": ", ".join(f"{{ {every}, {most} }}" for every, most in SLOTS_KEPT.items()),
        **_places("", fields.names(fields.RECORD), 2),
        **_places("L_", fields.LEASE),
        **_places("I_", ITEM),
        **_places("E_", SETTLEMENT),
        **_places("S_", rows.SpecRow.__struct_fields__),
        **_places("M_", rows.MarkFields.__struct_fields__),
        **_places("D_", rows.DecisionRow.__struct_fields__),
        **_places("SCHED_", rows.ScheduleRow.__struct_fields__),
        **_places("F_", rows.FanRow.__struct_fields__),
        **_places("T_", rows.TickRow.__struct_fields__),
        **_statements(),
    }


_VALUE = r"(?:\d+|ROOT \.\. \"\w+\")"
_CONSTANTS = re.compile(rf"^local ([A-Z][A-Z_0-9, ]*?) =\s*({_VALUE}(?:, {_VALUE})*)$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*\n| -- anew$", re.MULTILINE)


def constants(text: str) -> dict[str, str]:
    """The constants that `text` defines, with their values."""
    found: dict[str, str] = {}
    for names, values in _CONSTANTS.findall(text):
        found |= dict(zip(names.split(", "), values.split(", "), strict=True))
    return found


def compiled(text: str, others: Mapping[str, str] | None = None) -> str:
    """Return `text` with a value in place of each constant: the shared ones, those of `others`, and those that `text`
    defines.

    A server runs a script from its first line each time. Lua 5.1 then makes each function anew, and searches the list
    of all open upvalues for each local variable that the function uses. With a hundred local variables, that took
    longer than the work of a small verb.
    """
    written = {**words(), **(others or {}), **constants(text)}
    written = {name: f"({value})" if value.startswith("ROOT") else value for name, value in written.items()}
    text = _COMMENT.sub("", _CONSTANTS.sub("", text))
    return re.sub(r"\b[A-Z][A-Z_0-9]*\b", lambda word: written.get(word[0], word[0]), text)


def asleep(module: str, text: str) -> str:
    """Return the text of a shared file with the functions behind its line `-- seldom` asleep: they are made when one of
    them is used first. A plain put uses half of the functions of its script, and to make the others took a fifth of its
    time."""
    often, marker, seldom = text.partition("\n-- seldom\n")
    if not marker:
        return text
    wake = f"setmetatable({module}, nil)\n{seldom}\nreturn {module}[name]"
    return f"{often}\nsetmetatable({module}, {{ __index = function(_, name)\n{wake}\nend }})\n"


_FOLDER = resources.files("rota.stores.redis") / "lua"


def verbs() -> list[str]:
    """All verbs that have a script."""
    return sorted([*FILES, *(file.name[:-4] for file in _FOLDER.iterdir() if file.name.endswith(".lua"))])


def source(verb: str) -> tuple[list[str], str]:
    """The names of the shared files that the file of `verb` needs, in their order, and its text."""
    text = (_FOLDER / f"{FILES.get(verb, verb)}.lua").read_text()
    return text.partition("\n")[0].removeprefix("-- with:").split(), text


def shared_source(module: str) -> str:
    return (_FOLDER / "shared" / f"{module}.lua").read_text()


def flag(verb: str) -> str:
    """The flag that tells the server what `verb` does; empty if the server takes it for a write that needs memory."""
    return "no-writes" if verb in READS else "" if verb in GROWS else "allow-oom"


@cache
def script(name: str, modern: bool) -> Script:
    """The script of the verb `name`; for `modern` servers (7 and later) it begins with its flags."""
    shared, verb = source(name)
    parts = [asleep(part, shared_source(part)) for part in shared]
    parts += [f"{YIELD}\n"] if name != "plan" else []
    flags = flag(name) and f" flags={flag(name)}"
    text = (f"#!lua{flags}\n" if modern else "") + compiled("".join([*parts, verb]))
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())
